"""An input that comes in chunks, put together."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any


class _Sum:
    def __init__(self) -> None:
        self.parts: list[Any] = []

    def add(self, chunk: Any) -> None:
        if not self.parts:
            self.parts = [chunk]
            return
        try:
            self.parts = [self.parts[0] + chunk]
        except TypeError:
            # As LangChain does: what cannot be added replaces what came before.
            self.parts = [chunk]


def join_chunks(chunks: Iterator[Any]) -> Iterator[Any]:
    """Add chunks up.

    Args:
        chunks: The chunks.

    Yields:
        Their sum; nothing if there were none.
    """
    total = _Sum()
    for chunk in chunks:
        total.add(chunk)
    yield from total.parts


async def ajoin_chunks(chunks: AsyncIterator[Any]) -> AsyncIterator[Any]:
    """Add chunks up.

    Args:
        chunks: The chunks.

    Yields:
        Their sum; nothing if there were none.
    """
    total = _Sum()
    async for chunk in chunks:
        total.add(chunk)
    for part in total.parts:
        yield part
