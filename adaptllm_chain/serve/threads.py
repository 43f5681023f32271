"""Following a generator that blocks, from asynchronous code."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")

_END = object()


@dataclass(frozen=True, slots=True)
class _Failure:
    error: Exception


async def in_thread(make: Callable[[], Generator[T, None, None]], executor: Executor) -> AsyncGenerator[T, None]:
    """Run a generator in one thread and pass on what it yields.

    The thread does not wait for a consumer that pauses. When the consumer leaves, the generator is closed in its
    thread as soon as it yields again, so that closing it never blocks the event loop.

    Args:
        make: Makes the generator; called in the thread.
        executor: Brings the thread.

    Yields:
        What the generator yields.

    Raises:
        Exception: What the generator raised.
    """
    loop = asyncio.get_running_loop()
    items: asyncio.Queue[Any] = asyncio.Queue()
    left = threading.Event()

    def put(item: Any) -> None:
        try:
            loop.call_soon_threadsafe(items.put_nowait, item)
        except RuntimeError:
            # The loop was closed without waiting for its tasks: nobody is there to be told.
            left.set()

    def work() -> None:
        try:
            with closing(make()) as generator:
                for item in generator:
                    if left.is_set():
                        return
                    put(item)
        except Exception as error:
            put(_Failure(error))
        finally:
            put(_END)

    executor.submit(work)
    try:
        while (item := await items.get()) is not _END:
            if isinstance(item, _Failure):
                raise item.error
            yield item
    finally:
        left.set()
