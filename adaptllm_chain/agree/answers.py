"""What AGREE's chains return."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.documents import Document

# Pydantic reads the schema of a TypedDict on Python < 3.12 only from typing_extensions.
from typing_extensions import TypedDict

from adaptllm_chain.chain.inputs import Asked
from adaptllm_chain.metrics.citations import CitedSentence
from adaptllm_chain.records import Decision

# Why a grounding loop ended: every sentence cites a passage; the model calls are used up; searches bring nothing new.
Stopped = Literal["supported", "budget", "nothing_new"]
# What an answer rests on: passages that the model was shown; its memory; its memory, looked up afterwards.
Basis = Literal["passages", "memory", "checked"]


class GroundedAnswer(TypedDict, total=False):
    """An answer whose sentences cite passages; other keys of a mapping that was the input are carried over.

    Attributes:
        input: The question.
        context: The passages that the answer could cite; number i stands at place i - 1.
        answer: The answer with its marks, as the model wrote it.
        sentences: The sentences of the answer without marks, and what each cites.
        unsupported: The statements that no passage supports.
        rejected_citations: How many marks pointed nowhere.
    """

    input: str
    context: list[Document]
    answer: str
    sentences: list[CitedSentence]
    unsupported: list[str]
    rejected_citations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroundingStep:
    """One draft of a grounding loop and what was searched for after it.

    Attributes:
        call: The number of the model call, from 1.
        context: The passages that the model was shown.
        answer: The draft, with its marks.
        unsupported: The statements that it says no passage supports.
        queries: What was searched for because of it; empty for the last draft.
        new: How many passages that brought which had not been shown.
    """

    call: int
    context: Sequence[Document]
    answer: str
    unsupported: Sequence[str]
    queries: Sequence[str] = ()
    new: int = 0

    def __add__(self, later: GroundingStep) -> GroundingStep:
        """Add up the chunks of a stream: the later step takes the place of the earlier."""
        return later


class LoopedAnswer(GroundedAnswer, total=False):
    """The last draft of a grounding loop, and how it came about.

    Attributes:
        step: The last draft; in a stream, each draft as it is done.
        steps: The drafts, in order.
        stopped: Why there were no more.
        calls: How many model calls it took.
        searches: How many queries were searched for.
    """

    step: GroundingStep
    steps: list[GroundingStep]
    stopped: Stopped
    calls: int
    searches: int


class AdaptiveGroundedAnswer(LoopedAnswer, total=False):
    """A grounded answer, or one from memory, and why.

    Attributes:
        retrieved: Whether passages were asked for before the answer.
        ret_probability: The probability of ``<RET>``, if it is known.
        decision: The decision.
        basis: What the answer rests on.
    """

    retrieved: bool
    ret_probability: float | None
    decision: Decision
    basis: Basis


_OWN_KEYS = AdaptiveGroundedAnswer.__annotations__.keys()


def told_first(asked: Asked) -> dict[str, Any]:
    """Make the first keys of a result: the question and what came with it.

    Args:
        asked: The question as it was put.

    Returns:
        The input's other keys, without those that the result has itself, and ``input``.
    """
    carried = {key: value for key, value in asked.carried.items() if key not in _OWN_KEYS}
    return {**carried, "input": asked.question}


def told_last(sentences: Sequence[CitedSentence], unsupported: Sequence[str], rejected: int) -> dict[str, Any]:
    """Make the keys that are known when an answer is complete.

    Args:
        sentences: The sentences and what they cite.
        unsupported: The statements that no passage supports.
        rejected: How many marks pointed nowhere.

    Returns:
        The keys.
    """
    return {"sentences": list(sentences), "unsupported": list(unsupported), "rejected_citations": rejected}
