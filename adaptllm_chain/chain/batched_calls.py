"""Calling a Runnable for many questions together, each of which fails alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from langchain_core.runnables import Runnable, RunnableConfig

from adaptllm_chain.chain.isolation import aisolated, call_config, isolated
from adaptllm_chain.errors import InvalidInputError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BatchedCall(Generic[T]):
    """What is called, and what goes in and comes out.

    Attributes:
        runnable: What is called, through its own ``batch``.
        tag: Says in traces and events what the calls are for.
        prepare: Makes the Runnable's input of a text.
        read: Reads what the Runnable returned; an ``InvalidInputError`` fails that text alone.
    """

    runnable: Runnable[Any, Any]
    tag: str
    prepare: Callable[[str], Any]
    read: Callable[[Any], T]

    def batch(self, texts: list[str], configs: Sequence[RunnableConfig]) -> list[T | Exception]:
        """Call for several texts together.

        Args:
            texts: The texts.
            configs: The config for the children of each one's run.

        Returns:
            What was read, in order; an exception stands for the text that failed.
        """

        def call(some: list[str], own: list[RunnableConfig]) -> Sequence[T | Exception]:
            returned = self.runnable.batch(list(map(self.prepare, some)), own, return_exceptions=True)
            return list(map(self._outcome, returned))

        return isolated(call, texts, self._configs(configs))

    async def abatch(self, texts: list[str], configs: Sequence[RunnableConfig]) -> list[T | Exception]:
        """Call for several texts together.

        Args:
            texts: The texts.
            configs: The config for the children of each one's run.

        Returns:
            What was read, in order; an exception stands for the text that failed.
        """

        async def call(some: list[str], own: list[RunnableConfig]) -> Sequence[T | Exception]:
            returned = await self.runnable.abatch(list(map(self.prepare, some)), own, return_exceptions=True)
            return list(map(self._outcome, returned))

        return await aisolated(call, texts, self._configs(configs))

    def _configs(self, configs: Sequence[RunnableConfig]) -> list[RunnableConfig]:
        return [call_config(config, self.tag) for config in configs]

    def _outcome(self, returned: Any) -> T | Exception:
        if isinstance(returned, Exception):
            return returned
        try:
            return self.read(returned)
        except InvalidInputError as error:
            return error
