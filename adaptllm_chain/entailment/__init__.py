"""Entailment: how probable it is that a passage supports a statement. Importing this room loads no heavy library."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from adaptllm_chain.entailment.judge import JudgeScorer
from adaptllm_chain.entailment.scorer import EntailmentScorer, Pair

if TYPE_CHECKING:
    from adaptllm_chain.entailment.classifier import ClassifierScorer
    from adaptllm_chain.entailment.embedded import embedded_scorer
    from adaptllm_chain.entailment.true_nli import TrueNliScorer

__all__ = ["ClassifierScorer", "EntailmentScorer", "JudgeScorer", "Pair", "TrueNliScorer", "embedded_scorer"]

_HOMES = {"ClassifierScorer": "classifier", "TrueNliScorer": "true_nli", "embedded_scorer": "embedded"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
