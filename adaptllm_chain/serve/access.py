"""Who may ask: whoever brings the key."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from adaptllm_chain.serve.failures import RefusalError

Check = Callable[..., Awaitable[None]]

_Bearer = Annotated[HTTPAuthorizationCredentials | None, Depends(HTTPBearer(auto_error=False))]


def key_check(key: str | None) -> Check:
    """Make the check of the key.

    Args:
        key: The key; ``None`` lets everyone in.

    Returns:
        A dependency of routes; it raises a ``RefusalError`` with the status 401.
    """

    async def check(given: _Bearer) -> None:
        if key is None:
            return
        # Compared in constant time: how long it takes must not tell how much of a guess was right.
        if given is None or not hmac.compare_digest(given.credentials.encode(), key.encode()):
            raise RefusalError(
                "the API key is wrong" if given is not None else "this server wants an API key",
                status=401,
                code="invalid_api_key",
                expected="the header Authorization: Bearer KEY",
                hint="the key is the one that the server was started with: --api-key, or ADAPTLLM_API_KEY",
                headers={"WWW-Authenticate": "Bearer"},
            )

    return check
