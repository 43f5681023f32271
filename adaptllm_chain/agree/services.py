"""Carrying out AGREE's errands: several searches at once, a judge of entailment, notes to listeners."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from langchain_core.callbacks.manager import adispatch_custom_event, dispatch_custom_event
from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig

from adaptllm_chain.agree.steps import Find, Note, Weigh
from adaptllm_chain.chain.isolation import aisolated, isolated
from adaptllm_chain.chain.passage_count import check_k
from adaptllm_chain.chain.plan import Consult, Search
from adaptllm_chain.chain.services import Services
from adaptllm_chain.entailment.scorer import EntailmentScorer, Pair
from adaptllm_chain.errors import InvalidInputError

# The name of the custom event that listeners get for each draft of a grounding loop.
GROUNDING_EVENT = "grounding_step"

Configs: TypeAlias = Sequence[RunnableConfig]
Passages: TypeAlias = list[Document]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroundingServices(Services):
    """The chain's services and a judge of entailment.

    Attributes:
        model: The models.
        retriever: The retriever.
        judge: The decision model that a policy asks, if it asks one.
        stops: Texts at which an answer ends.
        marker: How a model spells its request for retrieval.
        takes_k: Whether the retriever can be told how many passages to bring; another brings as many as it was made
            to, and plans take the first.
        scorer: The judge of entailment, for plans that ask one.
    """

    takes_k: bool
    scorer: EntailmentScorer | None = None

    def consult(self, steps: Sequence[Consult], configs: Configs) -> list[Any]:
        """Carry out errands, those of a kind together.

        Args:
            steps: The errands; one that is none of AGREE's goes to the policy's decision model.
            configs: The config for the children of each one's run.

        Returns:
            The replies in order; an exception stands for the errand that failed.
        """
        replies: dict[int, Any] = {}
        carry: dict[type[Consult], Callable[[Any, Configs], Sequence[Any]]] = {
            Find: self._find,
            Weigh: self._weigh,
            Note: _note,
        }
        for kind, places in _by_kind(steps):
            some, own = [steps[place] for place in places], [configs[place] for place in places]
            done = carry[kind](some, own) if kind in carry else Services.consult(self, some, own)
            replies.update(zip(places, done, strict=True))
        return [replies[place] for place in range(len(steps))]

    async def aconsult(self, steps: Sequence[Consult], configs: Configs) -> list[Any]:
        """Carry out errands, those of a kind together.

        Args:
            steps: The errands; one that is none of AGREE's goes to the policy's decision model.
            configs: The config for the children of each one's run.

        Returns:
            The replies in order; an exception stands for the errand that failed.
        """
        replies: dict[int, Any] = {}
        carry: dict[type[Consult], Callable[[Any, Configs], Any]] = {
            Find: self._afind,
            Weigh: self._aweigh,
            Note: _anote,
        }
        for kind, places in _by_kind(steps):
            some, own = [steps[place] for place in places], [configs[place] for place in places]
            done = await (carry[kind](some, own) if kind in carry else Services.aconsult(self, some, own))
            replies.update(zip(places, done, strict=True))
        return [replies[place] for place in range(len(steps))]

    def _find(self, steps: Sequence[Find], configs: Configs) -> list[list[Passages] | Exception]:
        return _regrouped(steps, self.search(_searches(steps), self._search_configs(steps, configs)))

    async def _afind(self, steps: Sequence[Find], configs: Configs) -> list[list[Passages] | Exception]:
        return _regrouped(steps, await self.asearch(_searches(steps), self._search_configs(steps, configs)))

    def _search_configs(self, steps: Sequence[Find], configs: Configs) -> list[RunnableConfig]:
        """A config a query, with the number of passages if the retriever can be told."""
        return [
            _with_k(config, step.k if self.takes_k else None)
            for step, config in zip(steps, configs, strict=True)
            for _ in step.queries
        ]

    def _weigh(self, steps: Sequence[Weigh], configs: Configs) -> list[list[float] | Exception]:
        def call(some: Sequence[Any], _: Configs) -> list[list[float]]:
            assert self.scorer is not None
            pairs = _distinct_pairs(some)
            return _dealt_out(some, pairs, self.scorer.score(pairs) if pairs else [])

        # isolated never looks into an item.
        return isolated(call, cast("list[str]", list(steps)), list(configs))

    async def _aweigh(self, steps: Sequence[Weigh], configs: Configs) -> list[list[float] | Exception]:
        async def call(some: Sequence[Any], _: Configs) -> list[list[float]]:
            assert self.scorer is not None
            pairs = _distinct_pairs(some)
            return _dealt_out(some, pairs, await self.scorer.ascore(pairs) if pairs else [])

        return await aisolated(call, cast("list[str]", list(steps)), list(configs))


def takes_k(retriever: Runnable[Any, Any]) -> bool:
    """Say whether a retriever can be told how many passages to bring.

    Args:
        retriever: The retriever, as the user built it.

    Returns:
        Whether it takes ``k``, as an argument or in its config.
    """
    try:
        check_k(retriever, 1)
    except InvalidInputError:
        return False
    return True


def _by_kind(steps: Sequence[Consult]) -> Iterator[tuple[type[Consult], list[int]]]:
    places: dict[type[Consult], list[int]] = defaultdict(list)
    for place, step in enumerate(steps):
        places[type(step)].append(place)
    yield from places.items()


def _searches(steps: Sequence[Find]) -> list[Search]:
    return [Search(query) for step in steps for query in step.queries]


def _with_k(config: RunnableConfig, k: int | None) -> RunnableConfig:
    return {**config, "configurable": {**config.get("configurable", {}), "k": k}}


def _regrouped(steps: Sequence[Find], found: Sequence[Passages | Exception]) -> list[list[Passages] | Exception]:
    rest = iter(found)
    replies: list[list[Passages] | Exception] = []
    for step in steps:
        passages: list[Passages] = []
        failed: Exception | None = None
        for result in (next(rest) for _ in step.queries):
            if isinstance(result, Exception):
                failed = failed or result
            else:
                passages.append(result)
        replies.append(failed or passages)
    return replies


def _distinct_pairs(steps: Sequence[Weigh]) -> list[Pair]:
    return list(dict.fromkeys(pair for step in steps for pair in step.pairs))


def _dealt_out(steps: Sequence[Weigh], pairs: Sequence[Pair], scores: Sequence[float]) -> list[list[float]]:
    if len(scores) != len(pairs):
        raise InvalidInputError(f"the scorer returned {len(scores)} scores for {len(pairs)} pairs", expected="one each")
    known = dict(zip(pairs, scores, strict=True))
    return [[known[pair] for pair in step.pairs] for step in steps]


# A callback handler with raise_error=True fails the question that it was told of, and no other.


def _note(steps: Sequence[Note], configs: Configs) -> list[Exception | None]:
    outcomes: list[Exception | None] = []
    for step, config in zip(steps, configs, strict=True):
        try:
            dispatch_custom_event(GROUNDING_EVENT, step.data, config=config)
            outcomes.append(None)
        except Exception as error:
            outcomes.append(error)
    return outcomes


async def _anote(steps: Sequence[Note], configs: Configs) -> list[Exception | None]:
    outcomes: list[Exception | None] = []
    for step, config in zip(steps, configs, strict=True):
        try:
            await adispatch_custom_event(GROUNDING_EVENT, step.data, config=config)
            outcomes.append(None)
        except Exception as error:
            outcomes.append(error)
    return outcomes
