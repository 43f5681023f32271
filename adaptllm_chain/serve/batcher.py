"""Putting together what arrives together: one call for several requests with equal settings."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Executor
from itertools import islice
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
R = TypeVar("R")


class _Group(Generic[T, R]):
    """Items that wait and can be worked on together."""

    def __init__(self, timer: asyncio.TimerHandle) -> None:
        self.waiting: dict[asyncio.Future[R], T] = {}
        self.timer = timer


class MicroBatcher(Generic[K, T, R]):
    """Collects items for a short time, and has those with equal keys worked on in one call in a thread.

    A batch starts when it is full or its first item has waited long enough, and when a batch before it has ended:
    what arrives meanwhile becomes the next one. Groups with different keys take turns.
    It needs no start and no end, belongs to no event loop while nothing waits, and is not for several loops at a time.

    Args:
        run: Works on the items of one key; called in a thread. Returns a result for each item in order, or the
            exception that this item alone failed with. What it raises all its items fail with.
        executor: Brings the threads; it needs one for each batch that runs at the same time.
        size: The most items in a call.
        wait_s: How long the first item of a batch waits for others.
        parallel: Calls at the same time.
    """

    def __init__(
        self,
        run: Callable[[K, list[T]], Sequence[R | Exception]],
        *,
        executor: Executor,
        size: int,
        wait_s: float,
        parallel: int = 1,
    ) -> None:
        self._run = run
        self._executor = executor
        self._size = size
        self._wait_s = wait_s
        self._parallel = parallel
        self._groups: dict[K, _Group[T, R]] = {}
        # An ordered set: the group that has been ripe for longest comes first.
        self._ripe: dict[K, None] = {}
        self._running: set[asyncio.Task[None]] = set()

    async def submit(self, key: K, item: T) -> R:
        """Have an item worked on. Cancelled before its batch starts, it is not worked on.

        Args:
            key: Items with equal keys may share a call.
            item: The item.

        Returns:
            Its result.

        Raises:
            Exception: What the item failed with.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[R] = loop.create_future()
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = _Group(loop.call_later(self._wait_s, self._ripen, key))
        group.waiting[future] = item
        if len(group.waiting) >= self._size:
            self._ripen(key)
        try:
            return await future
        finally:
            group.waiting.pop(future, None)

    def _ripen(self, key: K) -> None:
        self._groups[key].timer.cancel()
        self._ripe[key] = None
        self._start()

    def _start(self) -> None:
        while self._ripe and len(self._running) < self._parallel:
            key = next(iter(self._ripe))
            if batch := self._take(key):
                task = asyncio.get_running_loop().create_task(self._work(key, batch))
                self._running.add(task)
                task.add_done_callback(self._ended)

    def _take(self, key: K) -> dict[asyncio.Future[R], T]:
        group = self._groups[key]
        del self._ripe[key]
        batch = dict(islice(group.waiting.items(), self._size))
        for future in batch:
            del group.waiting[future]
        if group.waiting:
            # They have waited long enough, and now for the other groups.
            self._ripe[key] = None
        else:
            del self._groups[key]
        return batch

    async def _work(self, key: K, batch: dict[asyncio.Future[R], T]) -> None:
        results: Sequence[R | Exception]
        try:
            results = await asyncio.get_running_loop().run_in_executor(
                self._executor, self._run, key, list(batch.values())
            )
        except Exception as error:
            results = [error] * len(batch)
        for future, result in zip(batch, results, strict=True):
            if future.done():  # whoever asked has gone
                continue
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._start()
