"""Who carries out AGREE's errands: several searches at once, a judge of entailment, reports to listeners."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig

from adaptllm_chain.agree.steps import Find, Report, Weigh
from adaptllm_chain.chain.announcing import Announcing
from adaptllm_chain.chain.isolation import aisolated, isolated
from adaptllm_chain.chain.passage_count import takes_k
from adaptllm_chain.chain.plan import Errand, Search
from adaptllm_chain.chain.searching import searching
from adaptllm_chain.chain.service import Service
from adaptllm_chain.entailment.scorer import EntailmentScorer, Pair
from adaptllm_chain.errors import InvalidInputError

# The name of the custom event that listeners get for each draft of a grounding loop, and of its run in traces.
GROUNDING_EVENT = "grounding_step"

Configs: TypeAlias = Sequence[RunnableConfig]
Passages: TypeAlias = list[Document]


def grounding(retriever: Runnable[Any, Any], scorer: EntailmentScorer | None) -> dict[type[Errand], Service[Any]]:
    """Gather who does what AGREE's plans ask for beside their prompts.

    Args:
        retriever: The retriever, as the user built it.
        scorer: The judge of entailment, for plans that ask one.

    Returns:
        The services, in the order in which they take their turns.
    """
    services: dict[type[Errand], Service[Any]] = {
        Report: Announcing(GROUNDING_EVENT, "adaptllm:ground"),
        Find: Finding(retriever),
    }
    return services if scorer is None else {**services, Weigh: Weighing(scorer)}


class Finding(Service[Find]):
    """Puts all queries of all plans to the retriever together.

    Args:
        retriever: The retriever. If it cannot be told how many passages to bring, it brings as many as it was made
            to, and plans take the first.
    """

    def __init__(self, retriever: Runnable[Any, Any]) -> None:
        self._search = searching(retriever)
        self._takes_k = takes_k(retriever)

    def batch(self, errands: Sequence[Find], configs: Configs) -> list[list[Passages] | Exception]:
        """Search for several plans.

        Args:
            errands: What each is to search for.
            configs: The config for the children of each one's run.

        Returns:
            The passages for each query of each errand; an exception stands for the errand that failed.
        """
        return _regrouped(errands, self._search.batch(_searches(errands), self._search_configs(errands, configs)))

    async def abatch(self, errands: Sequence[Find], configs: Configs) -> list[list[Passages] | Exception]:
        """Search for several plans.

        Args:
            errands: What each is to search for.
            configs: The config for the children of each one's run.

        Returns:
            The passages for each query of each errand; an exception stands for the errand that failed.
        """
        found = await self._search.abatch(_searches(errands), self._search_configs(errands, configs))
        return _regrouped(errands, found)

    def _search_configs(self, errands: Sequence[Find], configs: Configs) -> list[RunnableConfig]:
        """A config a query, with the number of passages if the retriever can be told."""
        return [
            _with_k(config, errand.k if self._takes_k else None)
            for errand, config in zip(errands, configs, strict=True)
            for _ in errand.queries
        ]


class Weighing(Service[Weigh]):
    """Puts all pairs of all plans to the judge of entailment together, none of them twice.

    Args:
        scorer: The judge.
    """

    def __init__(self, scorer: EntailmentScorer) -> None:
        self._scorer = scorer

    def batch(self, errands: Sequence[Weigh], configs: Configs) -> list[list[float] | Exception]:
        """Score pairs for several plans.

        Args:
            errands: The pairs of each.
            configs: The config for the children of each one's run.

        Returns:
            The scores for each errand, in the order of its pairs; an exception stands for the errand that failed.
        """

        def call(some: list[Weigh], _: Configs) -> list[list[float]]:
            pairs = _distinct_pairs(some)
            return _dealt_out(some, pairs, self._scorer.score(pairs) if pairs else [])

        return isolated(call, list(errands), list(configs))

    async def abatch(self, errands: Sequence[Weigh], configs: Configs) -> list[list[float] | Exception]:
        """Score pairs for several plans.

        Args:
            errands: The pairs of each.
            configs: The config for the children of each one's run.

        Returns:
            The scores for each errand, in the order of its pairs; an exception stands for the errand that failed.
        """

        async def call(some: list[Weigh], _: Configs) -> list[list[float]]:
            pairs = _distinct_pairs(some)
            return _dealt_out(some, pairs, await self._scorer.ascore(pairs) if pairs else [])

        return await aisolated(call, list(errands), list(configs))


def _searches(errands: Sequence[Find]) -> list[Search]:
    return [Search(query) for errand in errands for query in errand.queries]


def _with_k(config: RunnableConfig, k: int | None) -> RunnableConfig:
    return {**config, "configurable": {**config.get("configurable", {}), "k": k}}


def _regrouped(errands: Sequence[Find], found: Sequence[Passages | Exception]) -> list[list[Passages] | Exception]:
    rest = iter(found)
    replies: list[list[Passages] | Exception] = []
    for errand in errands:
        passages: list[Passages] = []
        failed: Exception | None = None
        for result in (next(rest) for _ in errand.queries):
            if isinstance(result, Exception):
                failed = failed or result
            else:
                passages.append(result)
        replies.append(failed or passages)
    return replies


def _distinct_pairs(errands: Sequence[Weigh]) -> list[Pair]:
    return list(dict.fromkeys(pair for errand in errands for pair in errand.pairs))


def _dealt_out(errands: Sequence[Weigh], pairs: Sequence[Pair], scores: Sequence[float]) -> list[list[float]]:
    if len(scores) != len(pairs):
        raise InvalidInputError(f"the scorer returned {len(scores)} scores for {len(pairs)} pairs", expected="one each")
    known = dict(zip(pairs, scores, strict=True))
    return [[known[pair] for pair in errand.pairs] for errand in errands]
