"""Driving many plans side by side: all searches in one call, all prompts in one call, and again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig

from adaptllm_chain.chain.outputs import ModelOutput
from adaptllm_chain.chain.plan import Errand, Plan, Rest, Tell
from adaptllm_chain.chain.service import Service
from adaptllm_chain.chain.services import Services


class Board:
    """Plans side by side, each at the errand that it waits for. Knows nothing of I/O.

    Args:
        plans: The plans, not yet started.
        marker: How the model spells its request.

    Attributes:
        results: One for each plan: the result as far as it is told, or the exception that ended it.
        waiting: The errands, by the number of the plan that waits for them.
    """

    def __init__(self, plans: Sequence[Plan], marker: str) -> None:
        self._plans = plans
        self._marker = marker
        self._outputs: dict[int, ModelOutput] = {}
        self.waiting: dict[int, Errand] = {}
        self.results: list[dict[str, Any] | Exception] = [{} for _ in plans]
        for index in range(len(plans)):
            self._advance(index, None)

    def reply(self, indices: Iterable[int], values: Sequence[Any]) -> None:
        """Carry plans on to their next errands.

        Args:
            indices: The numbers of the plans.
            values: The reply to each, or the exception that its errand ended in; then the plan ends with it.
        """
        for index, value in zip(indices, values, strict=True):
            del self.waiting[index]
            if isinstance(value, Exception):
                self._plans[index].close()
                self.results[index] = value
            else:
                self._advance(index, value)

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
                elif isinstance(step, Errand):
                    self.waiting[index] = step
                    break
                else:
                    value = self._outputs[index].answer(self._marker)
                    if isinstance(step, Rest):
                        passed = step.shown()
                        told["answer"] = passed.push(value) + passed.finish()
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
) -> list[dict[str, Any] | Exception]:
    """Drive plans to their end.

    Args:
        plans: The plans.
        services: What carries out their errands.
        configs: The config for the children of each plan's run.

    Returns:
        The results in order; an exception stands for the plan that failed.
    """
    board = Board(plans, services.marker)
    while board.waiting:
        service, errands = _next_wave(board, services)
        board.reply(errands, service.batch(list(errands.values()), [configs[index] for index in errands]))
    return board.results


async def arun_batch(
    plans: Sequence[Plan], services: Services, configs: Sequence[RunnableConfig]
) -> list[dict[str, Any] | Exception]:
    """Drive plans to their end.

    Args:
        plans: The plans.
        services: What carries out their errands.
        configs: The config for the children of each plan's run.

    Returns:
        The results in order; an exception stands for the plan that failed.
    """
    board = Board(plans, services.marker)
    while board.waiting:
        service, errands = _next_wave(board, services)
        board.reply(errands, await service.abatch(list(errands.values()), [configs[index] for index in errands]))
    return board.results


def _next_wave(board: Board, services: Services) -> tuple[Service[Any], dict[int, Errand]]:
    """The errands of the kind whose turn it is, by the number of their plan, and who does them."""
    kind, service = services.whose_turn(board.waiting.values())
    return service, {index: errand for index, errand in board.waiting.items() if type(errand) is kind}
