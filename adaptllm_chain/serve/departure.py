"""Clients that leave before they are answered."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.requests import Request

from adaptllm_chain.serve.failures import RefusalError

T = TypeVar("T")


async def unless_client_leaves(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Do some work, and give it up when the client hangs up.

    Args:
        request: The request, whose body has been read.
        work: The work.

    Returns:
        What came of it.

    Raises:
        RefusalError: If the client left; nobody reads it, but it is counted.
        Exception: What the work raised.
    """
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_departure(request))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise RefusalError("the client left before it was answered", status=400, code="client_left")
    finally:
        working.cancel()
        leaving.cancel()


async def _departure(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
