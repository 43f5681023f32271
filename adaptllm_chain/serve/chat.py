"""OpenAI's interface: ``/v1/chat/completions`` and ``/v1/models``, for clients that know no other."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from fastapi import APIRouter, Request, Response

from adaptllm_chain.serve.answering import Answering
from adaptllm_chain.serve.chat_request import ChatQuestion, ChatRequest, check_model, read_chat
from adaptllm_chain.serve.failures import failure_of
from adaptllm_chain.serve.incoming import check_question, read_body, unless_client_leaves
from adaptllm_chain.serve.outgoing import JSON, EventStream, event
from adaptllm_chain.serve.progress import Answered, Decided, Piece, Usage
from adaptllm_chain.serve.results import decided_row, evidence_row

_ENDPOINT = "chat"
_DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True)
class _Completion:
    """What all chunks of one answer have in common."""

    model: str
    id: str = field(default_factory=lambda: f"chatcmpl-{uuid.uuid4().hex}")
    created: int = field(default_factory=lambda: int(time.time()))

    def whole(self, answered: Answered, evidence: dict[str, Any]) -> dict[str, Any]:
        message = {"role": "assistant", "content": answered.result["answer"], "refusal": None}
        return {
            **self._head("chat.completion"),
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
            "usage": None if answered.usage is None else _counts(answered.usage),
            "adaptllm": evidence,
        }

    def chunk(self, delta: dict[str, Any], finish_reason: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return event({**self._head("chat.completion.chunk"), "choices": [choice], **more})

    def usage_chunk(self, usage: Usage) -> bytes:
        return event({**self._head("chat.completion.chunk"), "choices": [], "usage": _counts(usage)})

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}


def chat_routes(answering: Answering) -> APIRouter:
    """Make OpenAI's interface.

    Args:
        answering: The chain behind it.

    Returns:
        The routes.
    """
    router = APIRouter(prefix="/v1")
    settings = answering.settings
    started = int(time.time())

    @router.get("/models")
    async def models() -> dict[str, Any]:
        """List the model."""
        return {"object": "list", "data": [_model_row(settings.model, started)]}

    @router.get("/models/{model:path}")
    async def show_model(model: str) -> dict[str, Any]:
        """Describe the model."""
        check_model(model, settings.model)
        return _model_row(settings.model, started)

    @router.post("/chat/completions")
    async def complete(request: Request) -> Response:
        """Answer the last message of the user; the field ``adaptllm`` tells how the answer was come by."""
        body = await read_body(request, ChatRequest, settings)
        asked = read_chat(body, answering.ways, settings.model)
        check_question(asked.question, settings.max_question_chars)
        completion = _Completion(settings.model)
        if body.stream:
            with_usage = bool((body.stream_options or {}).get("include_usage"))
            return EventStream(_chunks(answering, asked, completion, with_usage=with_usage))
        work = answering.answer({"question": asked.question}, asked.way, _ENDPOINT)
        answered = await unless_client_leaves(request, work)
        return JSON(completion.whole(answered, _evidence(answered, asked)))

    return router


async def _chunks(
    answering: Answering, asked: ChatQuestion, completion: _Completion, *, with_usage: bool
) -> AsyncGenerator[bytes, None]:
    steps = answering.stream({"question": asked.question}, asked.way, _ENDPOINT)
    try:
        async with aclosing(steps):
            async for step in steps:
                if isinstance(step, Decided):
                    yield completion.chunk({"role": "assistant", "content": ""}, adaptllm=decided_row(step))
                elif isinstance(step, Piece):
                    yield completion.chunk({"content": step.text})
                elif isinstance(step, Answered):
                    yield completion.chunk({}, "stop", adaptllm=_evidence(step, asked))
                    if with_usage and step.usage is not None:
                        yield completion.usage_chunk(step.usage)
    except Exception as error:
        failure = answering.measures.counted(failure_of(error))
        yield event(failure.body(as_openai=True))
    yield _DONE


def _counts(usage: Usage) -> dict[str, int]:
    read, written = usage.prompt_tokens, usage.completion_tokens
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def _evidence(answered: Answered, asked: ChatQuestion) -> dict[str, Any]:
    return {**evidence_row(answered), "ignored": asked.ignored}


def _model_row(model: str, created: int) -> dict[str, Any]:
    return {"id": model, "object": "model", "created": created, "owned_by": "adaptllm-chain"}
