from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptllm_chain.serve.batcher import MicroBatcher

# Long enough never to pass in a test: only a full batch, or the end of one before, starts the next.
NEVER_S = 600


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as executor:
        yield executor


class Work:
    """Work that remembers its calls, and waits to be let if it is told to."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, list[Any]]] = []
        self.entered = threading.Semaphore(0)
        self.let = threading.Event()
        self.let.set()

    def __call__(self, key: str, items: list[Any]) -> list[Any]:
        self.calls.append((key, items))
        self.entered.release()
        assert self.let.wait(30)
        if "whole" in items:
            raise RuntimeError("whole")
        return [ValueError(item) if item == "bad" else f"{key}{item}" for item in items]


async def entered(work: Work) -> None:
    assert await asyncio.to_thread(work.entered.acquire, timeout=30)


async def test_a_full_batch_starts_at_once(threads: ThreadPoolExecutor) -> None:
    work = Work()
    batcher = MicroBatcher(work, executor=threads, size=3, wait_s=NEVER_S)
    assert await asyncio.gather(*(batcher.submit("a", number) for number in range(3))) == ["a0", "a1", "a2"]
    assert work.calls == [("a", [0, 1, 2])]


async def test_a_lone_item_does_not_wait_for_ever(threads: ThreadPoolExecutor) -> None:
    work = Work()
    assert await MicroBatcher(work, executor=threads, size=3, wait_s=0.001).submit("a", 0) == "a0"


async def test_what_comes_meanwhile_is_the_next_batch(threads: ThreadPoolExecutor) -> None:
    work = Work()
    work.let.clear()
    batcher = MicroBatcher(work, executor=threads, size=2, wait_s=NEVER_S)
    tasks = [asyncio.create_task(batcher.submit("a", number)) for number in range(6)]
    await entered(work)
    assert work.calls == [("a", [0, 1])], "one batch at a time"
    work.let.set()
    assert await asyncio.gather(*tasks) == [f"a{number}" for number in range(6)]
    assert work.calls == [("a", [0, 1]), ("a", [2, 3]), ("a", [4, 5])]


async def test_groups_take_turns(threads: ThreadPoolExecutor) -> None:
    work = Work()
    work.let.clear()
    batcher = MicroBatcher(work, executor=threads, size=2, wait_s=NEVER_S)
    tasks = [asyncio.create_task(batcher.submit(key, key)) for key in "aaaaaabb"]
    await entered(work)
    work.let.set()
    await asyncio.gather(*tasks)
    assert [key for key, _ in work.calls] == ["a", "a", "b", "a"]


async def test_batches_side_by_side(threads: ThreadPoolExecutor) -> None:
    work = Work()
    work.let.clear()
    batcher = MicroBatcher(work, executor=threads, size=1, wait_s=NEVER_S, parallel=2)
    tasks = [asyncio.create_task(batcher.submit("a", number)) for number in range(3)]
    await entered(work)
    await entered(work)
    assert len(work.calls) == 2
    work.let.set()
    await asyncio.gather(*tasks)


async def test_an_item_fails_alone_and_a_call_fails_for_all(threads: ThreadPoolExecutor) -> None:
    batcher = MicroBatcher(Work(), executor=threads, size=3, wait_s=NEVER_S)
    good, bad, fine = await asyncio.gather(
        *(batcher.submit("a", item) for item in (1, "bad", 2)), return_exceptions=True
    )
    assert (good, fine) == ("a1", "a2")
    assert isinstance(bad, ValueError)
    results = await asyncio.gather(*(batcher.submit("a", item) for item in (1, "whole", 2)), return_exceptions=True)
    assert [str(result) for result in results] == ["whole"] * 3
    results = await asyncio.gather(*(batcher.submit("a", item) for item in (1, 2, 3)))
    assert results == ["a1", "a2", "a3"], "it goes on"


async def test_who_leaves_before_the_batch_is_not_worked_for(threads: ThreadPoolExecutor) -> None:
    work = Work()
    batcher = MicroBatcher(work, executor=threads, size=3, wait_s=NEVER_S)
    tasks = [asyncio.create_task(batcher.submit("a", number)) for number in range(2)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    await asyncio.wait([tasks[0]])
    more = [asyncio.create_task(batcher.submit("a", number)) for number in (2, 3)]
    assert await asyncio.gather(tasks[1], *more) == ["a1", "a2", "a3"]
    assert work.calls == [("a", [1, 2, 3])]


async def test_who_leaves_during_the_batch_takes_nothing_from_the_others(threads: ThreadPoolExecutor) -> None:
    work = Work()
    work.let.clear()
    batcher = MicroBatcher(work, executor=threads, size=2, wait_s=NEVER_S)
    tasks = [asyncio.create_task(batcher.submit("a", number)) for number in range(2)]
    await entered(work)
    tasks[0].cancel()
    await asyncio.wait([tasks[0]])
    work.let.set()
    assert await tasks[1] == "a1"


async def test_when_all_have_left_nothing_is_worked_on(threads: ThreadPoolExecutor) -> None:
    work = Work()
    batcher = MicroBatcher(work, executor=threads, size=2, wait_s=0)
    task = asyncio.create_task(batcher.submit("a", 0))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert await batcher.submit("b", 1) == "b1"
    assert work.calls == [("b", [1])]


@settings(max_examples=40, deadline=None)
@given(
    items=st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([1, 2, "bad"])), max_size=20),
    size=st.integers(1, 5),
    parallel=st.integers(1, 3),
)
def test_every_item_gets_its_own_result(items: list[tuple[str, Any]], size: int, parallel: int) -> None:
    work = Work()

    async def submit_all() -> list[Any]:
        with ThreadPoolExecutor(parallel) as executor:
            batcher = MicroBatcher(work, executor=executor, size=size, wait_s=0.0, parallel=parallel)
            return await asyncio.gather(*(batcher.submit(*item) for item in items), return_exceptions=True)

    results = asyncio.run(submit_all())
    assert [str(result) for result in results] == ["bad" if item == "bad" else f"{key}{item}" for key, item in items]
    assert all(1 <= len(batch) <= size for _, batch in work.calls)
    assert sorted(map(str, items)) == sorted(str((key, item)) for key, batch in work.calls for item in batch)
