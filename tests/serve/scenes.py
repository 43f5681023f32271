"""Chains behind the service, and ways to put questions to it."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import httpx2
import uvicorn
from fastapi import FastAPI
from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.outputs import GenerationChunk
from pydantic import Field

from adaptllm_chain.chain import AdaptiveRetrievalChain
from adaptllm_chain.serve import ServerSettings, create_app
from adaptllm_chain.serve.running import address_of, listen, server_config
from adaptllm_chain.testing import CountingRetriever, Reply, ScriptedLLM

FRANCE = "What is the capital of France?"
MILL = "Who built the mill at Lindow?"
BROKEN = "What breaks the model?"
SECRET = "/home/operator/secret"
PASSAGE = Document(
    id="mill-1",
    page_content="The mill at Lindow was built by Ada Holm, in 1881.",
    metadata={"title": "Lindow", "score": 1.5},
)


def reply(prompt: str) -> Reply:
    """Know one answer; fail at one question; ask for retrieval otherwise."""
    if "breaks" in prompt:
        raise RuntimeError(f"cannot open {SECRET}")
    if "given the context" in prompt:
        return Reply("Ada Holm in 1881", info=_info(None, 30, 4))
    if "capital of France" in prompt:
        return Reply("Paris", info=_info(0.05, 20, 1))
    if "If you need help" in prompt:
        return Reply("<RET>", chunks=("<R", "ET>"), info=_info(0.9, 20, 2))
    return Reply("By heart", info=_info(None, 10, 2))


def _info(probability: float | None, read: int, written: int) -> dict[str, Any]:
    known = {} if probability is None else {"ret_probability": probability, "ret_probability_kind": "exact"}
    return {**known, "prompt_tokens": read, "completion_tokens": written}


class RetrieverOfK(CountingRetriever):
    """A retriever with a number of passages of its own, and of a call's, as those of vector stores have."""

    k: int = 1

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        return self._find(query)[: self._own_k if k is None else k]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        raise NotImplementedError("the service searches in threads")

    @property
    def _own_k(self) -> int:
        return self.k


class EndlessLLM(ScriptedLLM):
    """A model that does not stop by itself."""

    ended: Any = Field(default_factory=threading.Event, exclude=True)

    def _stream(self, prompt: str, *_: Any, **__: Any) -> Iterator[GenerationChunk]:
        pause = threading.Event()
        try:
            while True:
                yield GenerationChunk(text="word ")
                pause.wait(0.005)  # as a model does, so that the words do not pile up
        finally:
            self.ended.set()


class HeldLLM(ScriptedLLM):
    """A model that says nothing until it is let."""

    entered: Any = Field(default_factory=threading.Event, exclude=True)
    let: Any = Field(default_factory=threading.Event, exclude=True)

    def _generate(self, *args: Any, **kwargs: Any) -> Any:
        self.entered.set()
        assert self.let.wait(30)
        return super()._generate(*args, **kwargs)


def make_chain(llm: Any = None, *, found: Any = (PASSAGE,), **settings: Any) -> AdaptiveRetrievalChain:
    return AdaptiveRetrievalChain(
        llm=llm or ScriptedLLM(script=reply), retriever=RetrieverOfK(documents=found), **settings
    )


def make_app(chain: AdaptiveRetrievalChain | None = None, **settings: Any) -> FastAPI:
    return create_app(chain or make_chain(), ServerSettings(**{"batch_wait_ms": 0, **settings}))


@asynccontextmanager
async def client_of(app: Any) -> AsyncIterator[httpx2.AsyncClient]:
    # Errors in the server are to reach the client as responses, as they do in a server.
    transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://test") as client:
        yield client


def send(app: Any, method: str, path: str, **arguments: Any) -> httpx2.Response:
    """Send one request."""

    async def sent() -> httpx2.Response:
        async with client_of(app) as client:
            return await client.request(method, path, **arguments)

    return asyncio.run(sent())


def ask(app: Any, question: Any, **body: Any) -> httpx2.Response:
    return send(app, "POST", "/ask", json={"question": question, **body})


def events_of(text: str) -> list[tuple[str | None, Any]]:
    """Read server-sent events, by the standard's rules as far as they are used."""
    found = []
    for block in text.split("\n\n")[:-1]:
        fields = dict(line.split(": ", 1) for line in block.split("\n"))
        data = fields["data"]
        found.append((fields.get("event"), data if data == "[DONE]" else json.loads(data)))
    return found


@contextmanager
def served(app: FastAPI) -> Iterator[str]:
    """Run a real server in a thread."""
    with listen("127.0.0.1", 0) as listener:
        address = address_of(listener)
        server = uvicorn.Server(server_config(app))
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            yield address
        finally:
            server.should_exit = True
            thread.join()


def until(condition: Callable[[], bool], patience_s: float = 60) -> None:
    """Wait for something that is certain to come."""
    end = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


class RawClient:
    """A client of the ASGI interface that can hang up, which httpx's transport cannot.

    Attributes:
        sent: What the application sent.
    """

    def __init__(self, app: Any, body: dict[str, Any], path: str = "/ask") -> None:
        self.sent: list[dict[str, Any]] = []
        self._app = app
        self._path = path
        self._body = json.dumps(body).encode()
        self._hung_up = asyncio.Event()
        self._read = False

    def hang_up(self) -> None:
        self._hung_up.set()

    async def run(self, on_body: Callable[[bytes], None] = lambda body: None) -> None:
        async def receive() -> dict[str, Any]:
            if not self._read:
                self._read = True
                return {"type": "http.request", "body": self._body, "more_body": False}
            await self._hung_up.wait()
            return {"type": "http.disconnect"}

        async def take(message: dict[str, Any]) -> None:
            self.sent.append(message)
            if message["type"] == "http.response.body":
                on_body(message.get("body", b""))

        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": self._path,
            "raw_path": self._path.encode(),
            "root_path": "",
            "query_string": b"",
            "headers": [(b"content-type", b"application/json")],
            "client": ("test", 1),
            "server": ("test", 80),
        }
        await self._app(scope, receive, take)
