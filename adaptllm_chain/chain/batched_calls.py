"""Calling a Runnable for many errands together, each of which fails alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from langchain_core.runnables import Runnable, RunnableConfig

from adaptllm_chain.chain.isolation import aisolated, call_config, isolated
from adaptllm_chain.chain.service import E, Service
from adaptllm_chain.errors import InvalidInputError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BatchedCall(Service[E], Generic[E, T]):
    """What is called, and what goes in and comes out.

    Attributes:
        runnable: What is called, through its own ``batch``.
        tag: Says in traces and events what the calls are for.
        prepare: Makes the Runnable's input of an errand.
        read: Reads what the Runnable returned; an ``InvalidInputError`` fails that errand alone.
    """

    runnable: Runnable[Any, Any]
    tag: str
    prepare: Callable[[E], Any]
    read: Callable[[Any], T]

    def batch(self, errands: Sequence[E], configs: Sequence[RunnableConfig]) -> list[T | Exception]:
        """Call for several errands together.

        Args:
            errands: The errands.
            configs: The config for the children of each one's run.

        Returns:
            What was read, in order; an exception stands for the errand that failed.
        """

        def call(some: list[E], own: list[RunnableConfig]) -> Sequence[T | Exception]:
            returned = self.runnable.batch(list(map(self.prepare, some)), own, return_exceptions=True)
            return list(map(self._outcome, returned))

        return isolated(call, list(errands), self._configs(configs))

    async def abatch(self, errands: Sequence[E], configs: Sequence[RunnableConfig]) -> list[T | Exception]:
        """Call for several errands together.

        Args:
            errands: The errands.
            configs: The config for the children of each one's run.

        Returns:
            What was read, in order; an exception stands for the errand that failed.
        """

        async def call(some: list[E], own: list[RunnableConfig]) -> Sequence[T | Exception]:
            returned = await self.runnable.abatch(list(map(self.prepare, some)), own, return_exceptions=True)
            return list(map(self._outcome, returned))

        return await aisolated(call, list(errands), self._configs(configs))

    def _configs(self, configs: Sequence[RunnableConfig]) -> list[RunnableConfig]:
        return [call_config(config, self.tag) for config in configs]

    def _outcome(self, returned: Any) -> T | Exception:
        if isinstance(returned, Exception):
            return returned
        try:
            return self.read(returned)
        except InvalidInputError as error:
            return error
