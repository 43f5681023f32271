"""Retrieval only when it helps: Adapt-LLM (arXiv:2404.19705) as a LangChain component.

Names are loaded when they are first used, so importing this package loads neither torch nor faiss.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from adaptllm_chain.agree import AdaptiveGroundedChain, GroundedAnswerChain, GroundingLoop, PostHocAttribution
    from adaptllm_chain.chain import AdaptiveRetrievalChain, condense_question
    from adaptllm_chain.chain.ret_decision_model import RetDecisionModel
    from adaptllm_chain.llms import LocalLLM, TransformersDecisionModel
    from adaptllm_chain.prompts import PromptSpec, PromptTemplates
    from adaptllm_chain.records import AdaptiveAnswer, Decision
    from adaptllm_chain.ret import Adaptive, AlwaysRetrieve, DecisionModelPolicy, NeverRetrieve, PopularityThreshold
    from adaptllm_chain.retrieval import ContrieverEmbeddings, FaissPassageStore, embedded_embeddings

_HOMES = {
    "Adaptive": "ret",
    "AdaptiveAnswer": "records",
    "AdaptiveGroundedChain": "agree",
    "AdaptiveRetrievalChain": "chain",
    "AlwaysRetrieve": "ret",
    "ContrieverEmbeddings": "retrieval",
    "Decision": "records",
    "DecisionModelPolicy": "ret",
    "FaissPassageStore": "retrieval",
    "GroundedAnswerChain": "agree",
    "GroundingLoop": "agree",
    "LocalLLM": "llms",
    "NeverRetrieve": "ret",
    "PopularityThreshold": "ret",
    "PostHocAttribution": "agree",
    "PromptSpec": "prompts",
    "PromptTemplates": "prompts",
    "RetDecisionModel": "chain.ret_decision_model",
    "TransformersDecisionModel": "llms",
    "condense_question": "chain",
    "embedded_embeddings": "retrieval",
}

__all__ = [
    "Adaptive",
    "AdaptiveAnswer",
    "AdaptiveGroundedChain",
    "AdaptiveRetrievalChain",
    "AlwaysRetrieve",
    "ContrieverEmbeddings",
    "Decision",
    "DecisionModelPolicy",
    "FaissPassageStore",
    "GroundedAnswerChain",
    "GroundingLoop",
    "LocalLLM",
    "NeverRetrieve",
    "PopularityThreshold",
    "PostHocAttribution",
    "PromptSpec",
    "PromptTemplates",
    "RetDecisionModel",
    "TransformersDecisionModel",
    "condense_question",
    "embedded_embeddings",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
