from __future__ import annotations

import threading
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing

import pytest

from adaptllm_chain.serve.threads import in_thread


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as executor:
        yield executor


async def test_what_is_yielded_comes_in_order_from_one_other_thread(threads: ThreadPoolExecutor) -> None:
    def work() -> Generator[tuple[int, int], None, None]:
        for number in range(100):
            yield number, threading.get_ident()

    found = [item async for item in in_thread(work, threads)]
    assert [number for number, _ in found] == list(range(100))
    assert len({thread for _, thread in found}) == 1
    assert found[0][1] != threading.get_ident()


async def test_an_error_comes_after_what_was_yielded(threads: ThreadPoolExecutor) -> None:
    def work() -> Generator[int, None, None]:
        yield 1
        raise ValueError("broken")

    items = in_thread(work, threads)
    assert await anext(items) == 1
    with pytest.raises(ValueError, match="broken"):
        await anext(items)


async def test_an_error_before_anything_was_yielded(threads: ThreadPoolExecutor) -> None:
    def work() -> Generator[int, None, None]:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await anext(in_thread(work, threads))


async def test_leaving_closes_the_generator_in_its_thread(threads: ThreadPoolExecutor) -> None:
    closed_in: list[int] = []
    closed, go_on = threading.Event(), threading.Event()

    def work() -> Generator[int, None, None]:
        try:
            yield 1
            assert go_on.wait(30)
            yield 2
            raise AssertionError("nobody is there any more")
        finally:
            closed_in.append(threading.get_ident())
            closed.set()

    async with aclosing(in_thread(work, threads)) as items:
        assert await anext(items) == 1
    # Left while the generator was busy: nothing waited for it.
    go_on.set()
    assert closed.wait(30)
    assert closed_in != [threading.get_ident()]
