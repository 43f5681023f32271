"""The service's own interface: ``/health``, ``/settings``, ``/ask``."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import Field

from adaptllm_chain.serve.answering import Answering
from adaptllm_chain.serve.failures import failure_of
from adaptllm_chain.serve.incoming import check_question, read_body, unless_client_leaves
from adaptllm_chain.serve.outgoing import JSON, EventStream, event
from adaptllm_chain.serve.progress import Decided, Found, Piece, Progress
from adaptllm_chain.serve.results import AnswerRow, answer_row, decided_row, passage_rows
from adaptllm_chain.serve.ways import Way, Wishes

_ENDPOINT = "ask"


class AskRequest(Wishes):
    """The body of ``POST /ask``.

    Attributes:
        question: The question.
        stream: Whether to answer with server-sent events.
        popularity: How popular the subject is; for a server whose mode is ``popularity``.
    """

    question: str = Field(examples=["Who wrote Hamlet?"])
    stream: bool = False
    popularity: float | None = Field(default=None, allow_inf_nan=False, examples=[1200])


def open_routes(answering: Answering) -> APIRouter:
    """Make what answers without a key.

    Args:
        answering: The chain behind it.

    Returns:
        The routes.
    """
    router = APIRouter()
    settings, ways = answering.settings, answering.ways

    @router.get("/health")
    async def health() -> dict[str, Any]:
        """Say that the server runs."""
        return {"status": "ok", "model": settings.model, "adapter": settings.adapter}

    @router.get("/settings")
    async def show_settings() -> dict[str, Any]:
        """Say how the server answers unless it is told otherwise, and what it can be told."""
        return {
            "model": settings.model,
            "adapter": settings.adapter,
            "mode": ways.mode,
            "modes": ways.modes,
            "threshold": ways.threshold,
            "k": ways.k,
            "max_k": ways.max_k,
            "needs_key": settings.api_key is not None,
            "max_question_chars": settings.max_question_chars,
            "passages": settings.passages,
        }

    return router


def ask_routes(answering: Answering) -> APIRouter:
    """Make what answers questions.

    Args:
        answering: The chain behind it.

    Returns:
        The routes.
    """
    router = APIRouter()
    settings = answering.settings
    body = {"required": True, "content": {"application/json": {"schema": AskRequest.model_json_schema()}}}

    @router.post("/ask", responses={200: {"model": AnswerRow}}, openapi_extra={"requestBody": body})
    async def ask(request: Request) -> Response:
        """Answer a question; with ``"stream": true`` as the events ``decision``, ``context``, ``token``…, ``done``."""
        asked = await read_body(request, AskRequest, settings)
        value: dict[str, Any] = {"question": check_question(asked.question, settings.max_question_chars)}
        if asked.popularity is not None:
            value["popularity"] = asked.popularity
        way = answering.ways.choose(asked)
        if asked.stream:
            return EventStream(_events(answering, value, way))
        return JSON(answer_row(await unless_client_leaves(request, answering.answer(value, way, _ENDPOINT))))

    return router


async def _events(answering: Answering, value: dict[str, Any], way: Way) -> AsyncGenerator[bytes, None]:
    steps = answering.stream(value, way, _ENDPOINT)
    try:
        async with aclosing(steps):
            async for step in steps:
                yield _told(step)
    except Exception as error:
        # The status has been sent, so the failure is told as an event.
        failure = answering.measures.counted(failure_of(error))
        yield event(failure.body(), "error")


def _told(step: Progress) -> bytes:
    if isinstance(step, Decided):
        return event(decided_row(step), "decision")
    if isinstance(step, Found):
        return event(passage_rows(step.passages), "context")
    if isinstance(step, Piece):
        return event({"text": step.text}, "token")
    return event(answer_row(step), "done")
