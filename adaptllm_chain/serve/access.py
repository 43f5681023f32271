"""What every request passes: the key, the limit on questions at a time, and headers for browsers."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from prometheus_client import Gauge
from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from adaptllm_chain.serve.failures import RefusalError

Check = Callable[..., Awaitable[None]]

_Bearer = Annotated[HTTPAuthorizationCredentials | None, Depends(HTTPBearer(auto_error=False))]
_RETRY_AFTER_S = 1
_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


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


def path_of(scope: Scope) -> str:
    """Find the path of a request within this application, which may be mounted in another.

    Args:
        scope: The request.

    Returns:
        The path, from its slash on.
    """
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))


class ConcurrencyLimit:
    """Turns questions away while too many are being answered. A stream counts until its last byte is sent.

    Args:
        app: The application inside.
        paths: The paths that count.
        limit: The most requests at a time.
        gauge: Shows how many there are.
        tell: Makes the response to one that is turned away.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        paths: frozenset[str],
        limit: int,
        gauge: Gauge,
        tell: Callable[[HTTPConnection, Exception], Response],
    ) -> None:
        self._app = app
        self._paths = paths
        self._limit = limit
        self._gauge = gauge
        self._tell = tell
        self._count = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or turn it away.

        Args:
            scope: The request.
            receive: Brings its body.
            send: Takes the response.
        """
        if scope["type"] != "http" or path_of(scope) not in self._paths:
            await self._app(scope, receive, send)
            return
        if self._count >= self._limit:
            response = self._tell(HTTPConnection(scope), _busy(self._count))
            await response(scope, receive, send)
            return
        self._count += 1
        self._gauge.set(self._count)
        try:
            await self._app(scope, receive, send)
        finally:
            self._count -= 1
            self._gauge.set(self._count)


class HeadAsGet:
    """Answers HEAD as GET, without the body: FastAPI's routes know only the methods that they name.

    Args:
        app: The application inside.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on.

        Args:
            scope: The request.
            receive: Brings its body.
            send: Takes the response.
        """

        async def send_head(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        if scope["type"] == "http" and scope["method"] == "HEAD":
            await self._app({**scope, "method": "GET"}, receive, send_head)
        else:
            await self._app(scope, receive, send)


class SecurityHeaders:
    """Tells browsers to run nothing that is not ours, and to show us in no other site's frame.

    Args:
        app: The application inside.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and add the headers to its response.

        Args:
            scope: The request.
            receive: Brings its body.
            send: Takes the response.
        """

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
            await send(message)

        await self._app(scope, receive, with_headers)


def _busy(count: int) -> RefusalError:
    return RefusalError(
        f"the server is busy with {count} questions",
        status=429,
        code="busy",
        expected="no more questions at a time than --max-concurrency",
        hint=f"ask again in {_RETRY_AFTER_S} s",
        headers={"Retry-After": str(_RETRY_AFTER_S)},
    )
