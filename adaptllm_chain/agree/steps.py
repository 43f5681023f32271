"""What AGREE's plans ask for beside the chain's steps.

============  ==============  ======================================================  =========================
step          is a            what is done                                            reply
============  ==============  ======================================================  =========================
``Draft``     ``Ask``         the model that cites is asked                           the ``Opening``
``Find``      ``Errand``      the retriever is called for several queries             the passages of each
``Weigh``     ``Errand``      the judge of entailment is asked about several pairs    a score for each
``Report``    ``Announce``    listeners are told of a draft                           nothing
============  ==============  ======================================================  =========================
"""

from __future__ import annotations

from dataclasses import dataclass

from adaptllm_chain.chain.plan import Announce, Ask, Errand
from adaptllm_chain.entailment.scorer import Pair


@dataclass(frozen=True, slots=True)
class Draft(Ask):
    """Put a prompt to the model that cites, which may be another than the one that decides.

    Attributes:
        kind: ``"grounded"``, or ``"closed_book"`` for one without passages.
        prompt: Its text.
    """


@dataclass(frozen=True, slots=True)
class Find(Errand):
    """Search for passages with several queries at once.

    Attributes:
        queries: What to search for.
        k: How many passages a query is to bring, if the retriever can be told.
    """

    queries: tuple[str, ...]
    k: int


@dataclass(frozen=True, slots=True)
class Weigh(Errand):
    """Ask whether premises entail hypotheses.

    Attributes:
        pairs: Premises and hypotheses.
    """

    pairs: tuple[Pair, ...]


@dataclass(frozen=True, slots=True)
class Report(Announce):
    """Tell listeners of a draft and of what was searched for after it.

    Attributes:
        what: The ``GroundingStep``.
    """
