"""LangChain's decision models, which came with langchain-core 1.8: the one place that they are imported from."""

from __future__ import annotations

from adaptllm_chain.errors import MissingExtraError

try:
    from langchain_core.decisions import (
        Answer,
        BaseDecisionModel,
        Choice,
        ChoiceAnswer,
        ClassifierRequest,
        ClassifierResponse,
        Noul,
        NoulAnswer,
        Question,
        State,
    )
except ImportError as error:
    raise MissingExtraError(
        "the installed langchain-core has no decision models (langchain_core.decisions)",
        expected="langchain-core 1.8 or later",
        hint="pip install -U 'langchain-core>=1.8'",
    ) from error

__all__ = [
    "Answer",
    "BaseDecisionModel",
    "Choice",
    "ChoiceAnswer",
    "ClassifierRequest",
    "ClassifierResponse",
    "Noul",
    "NoulAnswer",
    "Question",
    "State",
]
