"""Batched calls in which one bad item fails alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Any, TypeAlias, TypeVar, cast

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import merge_configs

Item = TypeVar("Item")
T = TypeVar("T")
BatchCall: TypeAlias = Callable[[list[Item], list[RunnableConfig]], Sequence[T | Exception]]
AsyncBatchCall: TypeAlias = Callable[[list[Item], list[RunnableConfig]], Awaitable[Sequence[T | Exception]]]

# So many items must fail alone and alike before they are held not to be to blame. With fewer, a batch in
# which many prompts are bad would be taken for an outage, and the good ones would go unanswered.
_EVIDENCE = 8


def isolated(
    call: BatchCall[Item, T], items: list[Item], configs: list[RunnableConfig], down: Exception | None = None
) -> list[T | Exception]:
    """Make one call for all items; if it fails as a whole, one for each half, and so on.

    So a bad prompt among a thousand costs some twenty calls, not a thousand. A model that is down
    costs eleven: if both halves fail as the whole did, and so do eight items alone, there is no more
    halving, and the error stands for every item.

    Args:
        call: Takes items and their configs; may raise, or return exceptions among its results.
        items: The items.
        configs: One config for each.
        down: The error in which a call before ended for all its items, if one did (see ``outage``);
            a call that ends in it again is halved only if its last item alone does not.

    Returns:
        The results in order; an exception stands for the item that raised it.
    """
    steps = _whole(len(items), down)
    try:
        part = next(steps)
        while True:
            try:
                results = list(call(items[part], configs[part]))
            except Exception as error:
                results = [error] * len(items[part])
            part = steps.send(results)
    except StopIteration as end:
        return cast("list[T | Exception]", end.value)


async def aisolated(
    call: AsyncBatchCall[Item, T], items: list[Item], configs: list[RunnableConfig], down: Exception | None = None
) -> list[T | Exception]:
    """Do what ``isolated`` does, with an async call.

    Args:
        call: Takes items and their configs; may raise, or return exceptions among its results.
        items: The items.
        configs: One config for each.
        down: The error in which a call before ended for all its items, if one did.

    Returns:
        The results in order; an exception stands for the item that raised it.
    """
    steps = _whole(len(items), down)
    try:
        part = next(steps)
        while True:
            try:
                results = list(await call(items[part], configs[part]))
            except Exception as error:
                results = [error] * len(items[part])
            part = steps.send(results)
    except StopIteration as end:
        return cast("list[T | Exception]", end.value)


def outage(results: Sequence[object]) -> Exception | None:
    """Say whether calls failed for so many items alike that the items cannot be to blame.

    Args:
        results: What ``isolated`` returned.

    Returns:
        The error of all of them, or ``None``.
    """
    first = results[0] if len(results) >= _EVIDENCE else None
    return first if isinstance(first, Exception) and all(_alike(result, first) for result in results) else None


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


# The order of the calls, apart from the calling: parts are yielded, their results are sent back.
_Parts: TypeAlias = Generator[slice, list[Any], list[Any]]


def _whole(count: int, down: Exception | None) -> _Parts:
    results = yield slice(0, count)
    if not _failed_as_a_whole(results):
        return results
    if down is not None and _alike(results[0], down) and (yield from _fail_alone([count - 1], down)):
        return results
    middle = count // 2
    first = yield slice(0, middle)
    second = yield slice(middle, count)
    same = all(_failed_as_a_whole(half) and _alike(half[0], results[0]) for half in (first, second))
    if count > _EVIDENCE and same:
        spread = [place * (count - 1) // (_EVIDENCE - 1) for place in range(_EVIDENCE)]
        if (yield from _fail_alone(spread, results[0])):
            return results
    # The error may only say that the call was too large.
    first = yield from _halved(0, first)
    return first + (yield from _halved(middle, second))


def _fail_alone(places: Sequence[int], error: Exception) -> Generator[slice, list[Any], bool]:
    for place in places:
        alone = yield slice(place, place + 1)
        if not _alike(alone[0], error):
            return False
    return True


def _halved(start: int, results: list[Any]) -> _Parts:
    if not _failed_as_a_whole(results):
        return results
    middle, end = start + len(results) // 2, start + len(results)
    first = yield from _halved(start, (yield slice(start, middle)))
    return first + (yield from _halved(middle, (yield slice(middle, end))))


def _alike(result: object, error: object) -> bool:
    return type(result) is type(error) and str(result) == str(error)


def _failed_as_a_whole(results: Sequence[object]) -> bool:
    first = results[0]
    # LLMs report a failed batch as the same exception for every prompt.
    return len(results) > 1 and isinstance(first, Exception) and all(result is first for result in results)
