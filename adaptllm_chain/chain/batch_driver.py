"""Driving many plans side by side: all searches in one call, all prompts in one call, and again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar, cast

from langchain_core.runnables import RunnableConfig

from adaptllm_chain.chain.announcing import aannounce, announce
from adaptllm_chain.chain.outputs import ModelOutput
from adaptllm_chain.chain.plan import Announce, Ask, Consult, Plan, Rest, Search, Tell
from adaptllm_chain.chain.services import Services
from adaptllm_chain.records import AdaptiveAnswer
from adaptllm_chain.ret import clean_answer

S = TypeVar("S", Ask, Search, Consult, Announce)


class Board:
    """Plans side by side, each at the step that it waits for. Knows nothing of I/O.

    Args:
        plans: The plans, not yet started.
        stops: Texts at which an answer ends.
        marker: How the model spells its request.

    Attributes:
        results: One for each plan: the result as far as it is told, or the exception that ended it.
    """

    def __init__(self, plans: Sequence[Plan], stops: Sequence[str], marker: str) -> None:
        self._plans = plans
        self._stops = stops
        self._marker = marker
        self._outputs: dict[int, ModelOutput] = {}
        self._pending: dict[int, Ask | Search | Consult | Announce] = {}
        self.results: list[dict[str, Any] | Exception] = [{} for _ in plans]
        for index in range(len(plans)):
            self._advance(index, None)

    @property
    def waits(self) -> bool:
        """Whether any plan waits for a reply."""
        return bool(self._pending)

    def waiting(self, kind: type[S]) -> dict[int, S]:
        """Find the plans that wait for one kind of step.

        Args:
            kind: The kind of step.

        Returns:
            The steps, by the number of their plan.
        """
        return {index: step for index, step in self._pending.items() if isinstance(step, kind)}

    def reply(self, index: int, value: Any) -> None:
        """Carry a plan on to its next step.

        Args:
            index: The number of the plan.
            value: The reply, or the exception that the step ended in; then the plan ends with it.
        """
        del self._pending[index]
        if isinstance(value, Exception):
            self._plans[index].close()
            self.results[index] = value
        else:
            self._advance(index, value)

    def reply_to_all(self, steps: Iterable[int], values: Sequence[Any]) -> None:
        """Carry plans on to their next steps.

        Args:
            steps: The numbers of the plans.
            values: The reply to each, or the exception that its step ended in.
        """
        for index, value in zip(steps, values, strict=True):
            self.reply(index, value)

    def _advance(self, index: int, value: Any) -> None:
        told: dict[str, Any] = {}
        try:
            if isinstance(value, ModelOutput):
                self._outputs[index] = value
                value = value.opening(self._marker)
            while True:
                step = self._plans[index].send(value)
                value = None
                if isinstance(step, Tell):
                    told.update(step.keys)
                elif isinstance(step, Rest):
                    told["answer"] = clean_answer(self._outputs[index].text, self._stops, self._marker)
                else:
                    self._pending[index] = step
                    break
        except StopIteration:
            pass
        except Exception as error:
            self.results[index] = error
            return
        result = self.results[index]
        if isinstance(result, dict):
            result.update(told)


def run_batch(
    plans: Sequence[Plan], services: Services, configs: Sequence[RunnableConfig]
) -> list[AdaptiveAnswer | Exception]:
    """Drive plans to their end.

    Args:
        plans: The plans.
        services: What carries out their steps.
        configs: The config for the children of each plan's run.

    Returns:
        The results in order; an exception stands for the plan that failed.
    """
    board = Board(plans, services.stops, services.marker)
    while board.waits:
        if announced := board.waiting(Announce):
            for index, step in announced.items():
                board.reply(index, _announce(step, configs[index]))
        # Prompts go last, so that those to which the other steps lead are put to the model together.
        elif searches := board.waiting(Search):
            found = services.search(list(searches.values()), [configs[index] for index in searches])
            board.reply_to_all(searches, found)
        elif consults := board.waiting(Consult):
            judged = services.consult(list(consults.values()), [configs[index] for index in consults])
            board.reply_to_all(consults, judged)
        else:
            asks = board.waiting(Ask)
            outputs = services.model.batch(list(asks.values()), [configs[index] for index in asks])
            board.reply_to_all(asks, outputs)
    return cast("list[AdaptiveAnswer | Exception]", board.results)


async def arun_batch(
    plans: Sequence[Plan], services: Services, configs: Sequence[RunnableConfig]
) -> list[AdaptiveAnswer | Exception]:
    """Drive plans to their end.

    Args:
        plans: The plans.
        services: What carries out their steps.
        configs: The config for the children of each plan's run.

    Returns:
        The results in order; an exception stands for the plan that failed.
    """
    board = Board(plans, services.stops, services.marker)
    while board.waits:
        if announced := board.waiting(Announce):
            for index, step in announced.items():
                board.reply(index, await _aannounce(step, configs[index]))
        elif searches := board.waiting(Search):
            found = await services.asearch(list(searches.values()), [configs[index] for index in searches])
            board.reply_to_all(searches, found)
        elif consults := board.waiting(Consult):
            judged = await services.aconsult(list(consults.values()), [configs[index] for index in consults])
            board.reply_to_all(consults, judged)
        else:
            asks = board.waiting(Ask)
            outputs = await services.model.abatch(list(asks.values()), [configs[index] for index in asks])
            board.reply_to_all(asks, outputs)
    return cast("list[AdaptiveAnswer | Exception]", board.results)


# A callback handler with raise_error=True fails the question that it was told of, and no other.


def _announce(step: Announce, config: RunnableConfig) -> Exception | None:
    try:
        announce(step.decision, config)
    except Exception as error:
        return error
    return None


async def _aannounce(step: Announce, config: RunnableConfig) -> Exception | None:
    try:
        await aannounce(step.decision, config)
    except Exception as error:
        return error
    return None
