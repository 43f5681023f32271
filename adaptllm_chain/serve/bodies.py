"""Reading what a client sent, and refusing what cannot be read."""

from __future__ import annotations

import json
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect, Request

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.ret.refusal import refusal
from adaptllm_chain.serve.failures import RefusalError

B = TypeVar("B", bound=BaseModel)

_JSON = "application/json"
_AN_OBJECT = 'a JSON object in UTF-8, such as {"question": "Who wrote Hamlet?"}'


async def read_body(request: Request, kind: type[B], max_bytes: int) -> B:
    """Read the body of a request.

    Args:
        request: The request.
        kind: What its body is.
        max_bytes: The most bytes that are read.

    Returns:
        The body.

    Raises:
        RefusalError: If it is too large, or no JSON.
        InvalidInputError: If it is JSON of another form.
    """
    _check_content_type(request)
    raw = await _read_bytes(request, max_bytes)
    try:
        # Numbers that are none are refused here; pydantic would be shown NaN.
        value: Any = json.loads(raw.decode("utf-8-sig"), parse_constant=_no_number)
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError) as error:
        problem, code = _why_unreadable(error)
        raise RefusalError(problem, status=400, code=code, expected=_AN_OBJECT) from error
    if not isinstance(value, dict):
        raise InvalidInputError(f"the body is a JSON {type(value).__name__}", expected=_AN_OBJECT)
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        raise refusal(kind, error) from error


def check_question(question: str, max_chars: int) -> str:
    """Refuse a question that is none, or too long.

    Args:
        question: The question.
        max_chars: The most characters that it may have.

    Returns:
        The question.

    Raises:
        RefusalError: If it has more.
        InvalidInputError: If it is blank.
    """
    if not question.strip():
        raise InvalidInputError(f"the question {question[:20]!r} is empty", expected="a question")
    if len(question) > max_chars:
        raise RefusalError(
            f"the question has {len(question)} characters",
            status=422,
            code="question_too_long",
            expected=f"at most {max_chars}",
            hint="a shorter question, or a server with a larger --max-question-chars",
        )
    return question


def _check_content_type(request: Request) -> None:
    given = request.headers.get("content-type", "")
    # A page of another site may post forms and plain text to a server on this machine, but not JSON.
    if given.partition(";")[0].strip().lower() != _JSON:
        raise RefusalError(
            f"the body is said to be {given!r:.80}" if given else "it is not said what the body is",
            status=415,
            code="wrong_content_type",
            expected=f"the header Content-Type: {_JSON}",
            hint=f"curl -H 'Content-Type: {_JSON}' -d '{{\"question\": \"…\"}}' …",
        )


async def _read_bytes(request: Request, max_bytes: int) -> bytes:
    # What comes is counted; the length that is announced need not be true.
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > max_bytes:
                raise RefusalError(
                    "the body is too large", status=413, code="body_too_large", expected=f"at most {max_bytes} bytes"
                )
    except ClientDisconnect as error:
        raise RefusalError("the client left in the middle of its request", status=400, code="client_left") from error
    return bytes(body)


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


def _why_unreadable(error: ValueError | RecursionError) -> tuple[str, str]:
    if isinstance(error, UnicodeDecodeError):
        return f"the body is not UTF-8: {error.reason} at byte {error.start}", "not_utf8"
    if isinstance(error, UnicodeEncodeError):
        return "a text in the body holds half a surrogate pair", "not_unicode"
    if isinstance(error, RecursionError):
        return "the body is not JSON that can be read: it is nested too deeply", "not_json"
    return f"the body is not JSON that can be read: {error}", "not_json"
