"""Running the service in this process until it is told to stop."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable

import uvicorn
from starlette.types import ASGIApp

from adaptllm_chain.errors import InvalidInputError

_BACKLOG = 2048


def listen(host: str, port: int) -> socket.socket:
    """Take an address, before anything is loaded that takes long: whoever connects from now on waits.

    Args:
        host: A name or an address of this machine; ``0.0.0.0`` or ``::`` for all of them.
        port: The port; 0 for any that is free.

    Returns:
        The socket.

    Raises:
        InvalidInputError: If the address cannot be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise InvalidInputError(
            f"{host}, port {port}, cannot be listened on: {error.strerror or error}",
            expected="an address of this machine, and a port that no other program listens on",
            hint=f"--port {port + 1 if port < 65535 else 8000}, or --port 0 for any that is free",
        ) from error


def address_of(listener: socket.socket) -> str:
    """Spell where a socket listens.

    Args:
        listener: The socket.

    Returns:
        The address as a browser takes it.
    """
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def server_config(app: ASGIApp) -> uvicorn.Config:
    """Set uvicorn up.

    Args:
        app: The application.

    Returns:
        What uvicorn needs to serve it.
    """
    # What is told to the user is told by the command; uvicorn's access log would go to stdout, and its warnings tell of
    # nothing but bad requests. h11, also where httptools is installed: it limits the size of a request's head.
    return uvicorn.Config(
        app, http="h11", ws="none", log_level="error", access_log=False, server_header=False, backlog=_BACKLOG
    )


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_ready()


def run_app(app: ASGIApp, listener: socket.socket, on_ready: Callable[[], None]) -> None:
    """Serve until SIGTERM or Ctrl-C; then take no more requests, finish those in flight, and return.

    A second Ctrl-C gives up those in flight.

    Args:
        app: The application.
        listener: The socket.
        on_ready: Called as soon as requests are answered, and signals are heeded.

    Raises:
        KeyboardInterrupt: After Ctrl-C.
    """
    server = _Server(server_config(app), on_ready)

    def stop(*_: object) -> None:
        server.should_exit = True

    # When it has stopped, uvicorn raises the signal again for whoever handled it before. By default that is the
    # system, which would end the process as killed, although it did what it was told.
    before = signal.signal(signal.SIGTERM, stop)
    try:
        server.run(sockets=[listener])
    finally:
        signal.signal(signal.SIGTERM, before)
