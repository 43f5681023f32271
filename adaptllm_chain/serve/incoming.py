"""What comes from a client: a body, the question in it, and that it hangs up."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Sequence
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect, Request

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.serve.failures import RefusalError
from adaptllm_chain.serve.settings import ServerSettings

B = TypeVar("B", bound=BaseModel)
T = TypeVar("T")

_JSON = "application/json"
_THE_BODY = "the body"
_AN_OBJECT = 'a JSON object in UTF-8, such as {"question": "Who wrote Hamlet?"}'


async def read_body(request: Request, kind: type[B], settings: ServerSettings) -> B:
    """Read the body of a request.

    Args:
        request: The request.
        kind: What its body is.
        settings: Say how large it may be, and how long it may take to come.

    Returns:
        The body.

    Raises:
        RefusalError: If it is too large, too slow, or no JSON.
        InvalidInputError: If it is JSON of another form.
    """
    _check_content_type(request)
    raw = await _read_bytes(request, settings)
    try:
        # Numbers that are none are refused here; pydantic would be shown NaN.
        value: Any = json.loads(raw.decode("utf-8-sig"), parse_constant=_no_number)
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError) as error:
        problem, code = _why_unreadable(error)
        raise RefusalError(problem, status=400, code=code, expected=_AN_OBJECT) from error
    if not isinstance(value, dict):
        raise InvalidInputError(f"the body is a JSON {type(value).__name__}", expected=_AN_OBJECT)
    return read_object(value, kind)


def read_object(value: dict[str, Any], kind: type[B], name: str = "") -> B:
    """Read a JSON object of a body.

    Args:
        value: The object.
        kind: What it is.
        name: Where it stands in the body; left out for the body itself.

    Returns:
        What it says.

    Raises:
        InvalidInputError: If it is of another form.
    """
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        raise _refusal(error, value, kind, name) from error


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
        raise _left("before it was answered")
    finally:
        working.cancel()
        leaving.cancel()


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
    encoding = request.headers.get("content-encoding", "identity")
    if encoding.strip().lower() != "identity":
        raise RefusalError(
            f"the body is said to be packed: {encoding!r:.80}",
            status=415,
            code="wrong_content_encoding",
            expected="a body as it is, without the header Content-Encoding",
        )


async def _read_bytes(request: Request, settings: ServerSettings) -> bytes:
    # What comes is counted; the length that is announced need not be true.
    most, timeout_s = settings.max_body_bytes, settings.body_timeout_s
    body = bytearray()
    try:
        # A body that never ends would keep its place among the questions at a time.
        async with asyncio.timeout(timeout_s):
            async for chunk in request.stream():
                body += chunk
                if len(body) > most:
                    raise RefusalError(
                        "the body is too large", status=413, code="body_too_large", expected=f"at most {most} bytes"
                    )
    except TimeoutError as error:
        raise RefusalError(
            f"the body did not come within {timeout_s:g} s",
            status=408,
            code="body_too_slow",
            expected="as many bytes as the header Content-Length announces",
            headers={"Connection": "close"},
        ) from error
    except ClientDisconnect as error:
        raise _left("in the middle of its request") from error
    return bytes(body)


async def _departure(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _refusal(error: ValidationError, value: Any, kind: type[BaseModel], name: str) -> InvalidInputError:
    """Say in the words of JSON, and with the place in the body, what pydantic refuses."""
    found = error.errors(include_url=False)[0]
    where = _place(name, found["loc"], value)
    if found["type"] == "extra_forbidden":
        return InvalidInputError(
            f"{name or _THE_BODY} has no setting {str(found['loc'][-1])!r:.80}",
            expected=f"one of {', '.join(kind.model_fields)}",
        )
    if found["type"] == "missing":
        return InvalidInputError(
            f"{where or _THE_BODY} needs {found['loc'][-1]}",
            expected=f"the key {found['loc'][-1]}",
            hint=_example(kind, found["loc"]),
        )
    return InvalidInputError(
        f"{where}={found['input']!r:.80}",
        expected=found["msg"].removeprefix("Input should be "),
        hint=_example(kind, found["loc"]),
    )


def _place(name: str, loc: Sequence[int | str], value: Any) -> str:
    """Spell the way to a value, such as ``messages[0].content``, as far as it leads through the body."""
    # Where a value may be of several kinds, pydantic's way ends in the name of one.
    for step in loc:
        if isinstance(value, list) and isinstance(step, int):
            name += f"[{step}]"
        elif isinstance(value, dict) and step in value:
            name += f".{step}" if name else str(step)
        else:
            break
        value = value[step]
    return name


def _example(kind: type[BaseModel], loc: Sequence[int | str]) -> str | None:
    field = kind.model_fields.get(str(loc[0]))
    return f'"{loc[0]}": {json.dumps(field.examples[0])}' if field is not None and field.examples else None


def _left(when: str) -> RefusalError:
    return RefusalError(f"the client left {when}", status=400, code="client_left")


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
