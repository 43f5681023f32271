"""One question followed through the chain, and told in the words of the service."""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document

from adaptllm_chain.chain import AdaptiveRetrievalChain
from adaptllm_chain.chain.announcing import DECISION_EVENT
from adaptllm_chain.records import AdaptiveAnswer, Decision
from adaptllm_chain.serve.usage import Usage, UsageListener
from adaptllm_chain.serve.variants import Way


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


def follow(
    chain: AdaptiveRetrievalChain, value: dict[str, Any], way: Way, started: float
) -> Generator[Progress, None, None]:
    """Answer a question and tell of each step.

    Args:
        chain: The chain.
        value: The question, as the chain takes it.
        way: How to answer.
        started: When it was asked, by ``time.perf_counter``.

    Yields:
        What was decided, what was found, the answer piece by piece, and the whole of it.
    """
    usage, decisions = UsageListener(), _DecisionListener()
    total: Any = None
    for part in chain.stream(value, {"callbacks": [usage, decisions]}, **way.arguments(chain)):
        total = part if total is None else total + part
        if "retrieved" in part:
            yield Decided(decisions.taken, part["ret_probability"])
        if "context" in part:
            yield Found(part["context"])
        if piece := part.get("answer"):
            yield Piece(piece)
    yield Answered(cast("AdaptiveAnswer", total), time.perf_counter() - started, usage.usage)


class _DecisionListener(BaseCallbackHandler):
    """Hears the decision when it is taken: the result tells it only together with the passages."""

    taken: Decision

    def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
        """Take the decision.

        Args:
            name: What the event is called.
            data: What it tells.
            **kwargs: Not used.
        """
        if name == DECISION_EVENT:
            self.taken = data
