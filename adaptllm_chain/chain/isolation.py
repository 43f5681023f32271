"""Batched calls in which one bad item fails alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias, TypeVar

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs

T = TypeVar("T")
BatchCall: TypeAlias = Callable[[list[str], list[RunnableConfig]], Sequence[T | Exception]]
AsyncBatchCall: TypeAlias = Callable[[list[str], list[RunnableConfig]], Awaitable[Sequence[T | Exception]]]


def isolated(call: BatchCall[T], items: list[str], configs: list[RunnableConfig]) -> list[T | Exception]:
    """Make one call for all items; if it fails as a whole, one for each half, and so on.

    So a bad prompt among a thousand costs some twenty calls, not a thousand.

    Args:
        call: Takes items and their configs; may raise, or return exceptions among its results.
        items: The items.
        configs: One config for each.

    Returns:
        The results in order; an exception stands for the item that raised it.
    """
    try:
        results = list(call(items, configs))
    except Exception as error:
        results = [error] * len(items)
    if not _failed_as_a_whole(results):
        return results
    middle = len(items) // 2
    first = isolated(call, items[:middle], configs[:middle])
    return first + isolated(call, items[middle:], configs[middle:])


async def aisolated(call: AsyncBatchCall[T], items: list[str], configs: list[RunnableConfig]) -> list[T | Exception]:
    """Do what ``isolated`` does, with an async call.

    Args:
        call: Takes items and their configs; may raise, or return exceptions among its results.
        items: The items.
        configs: One config for each.

    Returns:
        The results in order; an exception stands for the item that raised it.
    """
    try:
        results = list(await call(items, configs))
    except Exception as error:
        results = [error] * len(items)
    if not _failed_as_a_whole(results):
        return results
    middle = len(items) // 2
    first = await aisolated(call, items[:middle], configs[:middle])
    return first + await aisolated(call, items[middle:], configs[middle:])


def call_config(config: RunnableConfig, tag: str, *handlers: BaseCallbackHandler) -> RunnableConfig:
    """Make the config of one call of a run's.

    Args:
        config: The config for the run's children.
        tag: Says in traces and events what the call is for.
        *handlers: Handlers for this call alone.

    Returns:
        A config of its own.
    """
    # "callbacks" must be there: merge_configs would put those of the surrounding context in its place.
    return merge_configs(config, {"callbacks": list(handlers), "tags": [tag]})


def _failed_as_a_whole(results: Sequence[object]) -> bool:
    first = results[0]
    # LLMs report a failed batch as the same exception for every prompt.
    return len(results) > 1 and isinstance(first, Exception) and all(result is first for result in results)
