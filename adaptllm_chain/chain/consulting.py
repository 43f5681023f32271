"""Asking decision models."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from langchain_core.runnables import RunnableConfig

from adaptllm_chain.chain.batched_calls import BatchedCall
from adaptllm_chain.chain.plan import Consult
from adaptllm_chain.chain.service import Service
from adaptllm_chain.records import RetSignal


class Consulting(Service[Consult]):
    """Puts questions to the decision models of their policies, those for the same model together."""

    def batch(self, errands: Sequence[Consult], configs: Sequence[RunnableConfig]) -> list[RetSignal | Exception]:
        """Ask about several questions.

        Args:
            errands: The questions.
            configs: The config for the children of each one's run.

        Returns:
            What the decision models said, in order; an exception stands for the question that failed.
        """
        said: dict[int, RetSignal | Exception] = {}
        for places in _by_model(errands):
            some, own = [errands[place] for place in places], [configs[place] for place in places]
            said.update(zip(places, _asking(some).batch(some, own), strict=True))
        return [said[place] for place in range(len(errands))]

    async def abatch(
        self, errands: Sequence[Consult], configs: Sequence[RunnableConfig]
    ) -> list[RetSignal | Exception]:
        """Ask about several questions.

        Args:
            errands: The questions.
            configs: The config for the children of each one's run.

        Returns:
            What the decision models said, in order; an exception stands for the question that failed.
        """
        said: dict[int, RetSignal | Exception] = {}
        for places in _by_model(errands):
            some, own = [errands[place] for place in places], [configs[place] for place in places]
            said.update(zip(places, await _asking(some).abatch(some, own), strict=True))
        return [said[place] for place in range(len(errands))]


def _by_model(errands: Sequence[Consult]) -> Iterator[list[int]]:
    # By identity: LangChain's Runnables have no hash.
    places: dict[int, list[int]] = defaultdict(list)
    for place, errand in enumerate(errands):
        places[id(errand.judge.model)].append(place)
    yield from places.values()


def _asking(errands: Sequence[Consult]) -> BatchedCall[Consult, RetSignal]:
    """The call of the model that all of these are for."""
    judge = errands[0].judge
    return BatchedCall(
        judge.model, "adaptllm:consult", prepare=lambda errand: errand.judge.request(errand.question), read=judge.read
    )
