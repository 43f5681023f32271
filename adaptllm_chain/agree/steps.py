"""What AGREE's plans ask for beside the chain's steps. Each is a step of the chain's own, so its drivers carry it out.

=========  ==============  ======================================================  =====================
step       is a            what is done                                            reply
=========  ==============  ======================================================  =====================
``Heard``  ``Ask``         the chain's model is asked                              ``Opening``
``Draft``  ``Heard``       the model that cites is asked                           ``Opening``
``Find``   ``Consult``     the retriever is called for several queries             the passages of each
``Weigh``  ``Consult``     the judge of entailment is asked about several pairs    a score for each
``Note``   ``Consult``     listeners are told                                      nothing
=========  ==============  ======================================================  =====================
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from adaptllm_chain.chain.plan import Ask, Consult
from adaptllm_chain.entailment.scorer import Pair


@dataclass(frozen=True, slots=True)
class Heard(Ask):
    """A prompt whose output the plan reads too, not only the driver.

    Attributes:
        kind: Which prompt it is.
        prompt: Its text.
        said: What the model has said, piece by piece; whoever calls the model fills it in.
    """

    said: list[str] = field(default_factory=list, compare=False)

    @property
    def text(self) -> str:
        """The output; complete when the answer is taken."""
        return "".join(self.said)


@dataclass(frozen=True, slots=True)
class Draft(Heard):
    """A prompt for a response with citations. The driver gets the response; ``text`` holds what follows it too.

    Attributes:
        kind: Which prompt it is.
        prompt: Its text.
        said: What the model has said, piece by piece.
        aloud: Whether a stream passes the response on while it comes; otherwise the output comes whole, before the
            plan goes on.
    """

    aloud: bool = True


@dataclass(frozen=True, slots=True)
class Find(Consult):
    """Search for passages with several queries at once.

    Attributes:
        question: The question that they are to answer.
        queries: What to search for.
        k: How many passages a query is to bring, if the retriever can be told.
    """

    queries: tuple[str, ...]
    k: int


@dataclass(frozen=True, slots=True)
class Weigh(Consult):
    """Ask whether premises entail hypotheses.

    Attributes:
        question: The question that they belong to.
        pairs: Premises and hypotheses.
    """

    pairs: tuple[Pair, ...]


@dataclass(frozen=True, slots=True)
class Note(Consult):
    """Tell listeners what has been done.

    Attributes:
        question: The question.
        data: What they are told.
    """

    data: Any
