"""What goes to a client: JSON, and server-sent events."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any

from starlette.responses import Response, StreamingResponse


def to_json(value: Any) -> bytes:
    """Write a value as JSON.

    Args:
        value: The value; without NaN, which JSON does not know.

    Returns:
        UTF-8. Half a surrogate pair, which UTF-8 does not know and a model or a passage may hold, becomes ``?``.
    """
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8", "replace")


def event(data: Any, name: str | None = None) -> bytes:
    """Write a server-sent event.

    Args:
        data: What it tells.
        name: Its name; without one a browser calls it ``message``.

    Returns:
        UTF-8; the data on one line, since JSON spells line breaks out.
    """
    head = b"" if name is None else f"event: {name}\n".encode()
    return head + b"data: " + to_json(data) + b"\n\n"


class JSON(Response):
    """A response in JSON."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Write the body.

        Args:
            content: What it tells.

        Returns:
            The body.
        """
        return to_json(content)


class EventStream(StreamingResponse):
    """A response of server-sent events, passed on as they are made.

    Args:
        events: The events.
    """

    def __init__(self, events: AsyncGenerator[bytes, None]) -> None:
        # nginx would otherwise hold the events back until it has a page of them.
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(events, media_type="text/event-stream", headers=headers)
