"""What real servers said, sent again: the client's own code reads it, so only the wire is missing.

A recording is a JSON file in ``recordings/`` (``record.py`` makes them of a running server):

    {"source": what was recorded and when, "exchanges": [{"asked": text in the prompt, "body": …, "events": […]}]}

``body`` is the reply to a request, ``events`` are those of a streamed one.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import httpx2

FOLDER = Path(__file__).with_name("recordings")


@cache
def recording(name: str) -> dict[str, Any]:
    """Read a recording."""
    return dict(json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8")))


def replaying(name: str) -> dict[str, Any]:
    """Make the arguments for a LangChain client of OpenAI's that hears a recording in place of a server."""
    exchanges = recording(name)["exchanges"]

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked = json.loads(request.content)
        prompt = json.dumps(asked.get("messages") or asked["prompt"], ensure_ascii=False)
        heard = next(exchange for exchange in exchanges if exchange["asked"] in prompt)
        if not asked.get("stream"):
            return httpx2.Response(200, json=heard["body"])
        lines = [*map(json.dumps, heard["events"]), "[DONE]"]
        text = "".join(f"data: {line}\n\n" for line in lines)
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, text=text)

    transport = httpx2.MockTransport(answer)
    return {
        "http_client": httpx2.Client(transport=transport),
        "http_async_client": httpx2.AsyncClient(transport=transport),
        "base_url": "http://recorded/v1",
        "api_key": "none",
        "model": "recorded",
        "max_retries": 0,
    }
