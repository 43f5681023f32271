"""Local models as LangChain LLMs. Importing this room loads torch only when a model is named."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from adaptllm_chain.llms.decision_pipeline import TransformersDecisionModel
    from adaptllm_chain.llms.embedded import EMBEDDED, embedded_adapter, embedded_base
    from adaptllm_chain.llms.local import LocalLLM

__all__ = ["EMBEDDED", "LocalLLM", "TransformersDecisionModel", "embedded_adapter", "embedded_base"]

_HOMES = {
    "EMBEDDED": "embedded",
    "LocalLLM": "local",
    "TransformersDecisionModel": "decision_pipeline",
    "embedded_adapter": "embedded",
    "embedded_base": "embedded",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
