"""The steps of an answer, as they are told while it comes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from langchain_core.documents import Document

from adaptllm_chain.records import AdaptiveAnswer, Decision


@dataclass(frozen=True, slots=True)
class Decided:
    """It was decided whether to retrieve; nothing has been searched for yet.

    Attributes:
        decision: The decision. That of the result may have a longer reason, if retrieval brought nothing.
        probability: P(<RET>), as in the chain's result.
    """

    decision: Decision
    probability: float | None


@dataclass(frozen=True, slots=True)
class Found:
    """The passages of the answer are known.

    Attributes:
        passages: The passages, best first; none for an answer from memory.
    """

    passages: list[Document]


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of the answer.

    Attributes:
        text: Its text.
    """

    text: str


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of all calls of the model for one question.

    Attributes:
        prompt_tokens: Those that it read.
        completion_tokens: Those that it wrote.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.prompt_tokens + other.prompt_tokens, self.completion_tokens + other.completion_tokens)


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer is complete.

    Attributes:
        result: The chain's result.
        seconds: How long it took, waiting included.
        usage: The tokens that it took, if the model said so.
    """

    result: AdaptiveAnswer
    seconds: float
    usage: Usage | None


Progress: TypeAlias = Decided | Found | Piece | Answered
