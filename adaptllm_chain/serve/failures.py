"""How errors are told to those who ask: a status, three parts, and nothing about the inside of the server."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.exceptions import HTTPException

from adaptllm_chain.errors import (
    AdaptLLMError,
    EmptyRetrievalError,
    InvalidInputError,
    MissingLogprobsError,
    PromptMismatchError,
)

_LOG = logging.getLogger("adaptllm_chain.serve")

# What the chain says of the question or of the settings that came with it; all else is the server's own affair.
_OF_THE_REQUEST = (InvalidInputError, EmptyRetrievalError, MissingLogprobsError, PromptMismatchError)
_TYPES = {401: "authentication_error", 429: "rate_limit_error"}
_CODES = {404: "not_found", 405: "not_allowed", 413: "body_too_large"}
_ROUTES = "GET /, /health, /settings, /metrics or /v1/models; POST /ask or /v1/chat/completions"
_TO_OPERATOR = "ask again; if it fails again, the operator finds why in the log of the server"


class ModelFailedError(AdaptLLMError):
    """The model or the retriever raised something that is not for the client; it is the cause of this error."""


class RefusalError(AdaptLLMError):
    """A request that is not carried out.

    Args:
        problem: What is wrong with it.
        status: The HTTP status.
        code: What is wrong in one word, for programs.
        expected: What would have been right.
        hint: What to change.
        headers: Further headers of the response.
    """

    def __init__(
        self,
        problem: str,
        *,
        status: int,
        code: str,
        expected: str | None = None,
        hint: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(problem, expected=expected, hint=hint)
        self.status = status
        self.code = code
        self.headers = dict(headers or {})


@dataclass(frozen=True, slots=True)
class Failure:
    """An error as it is told.

    Attributes:
        status: The HTTP status.
        code: What went wrong in one word.
        error: The three parts.
        headers: Headers of the response.
    """

    status: int
    code: str
    error: AdaptLLMError
    headers: Mapping[str, str] = field(default_factory=dict)

    def body(self, *, as_openai: bool = False) -> dict[str, Any]:
        """Write the error down.

        Args:
            as_openai: Whether a client of OpenAI's reads it, which shows the message alone.

        Returns:
            ``{"error": {"message", "expected", "hint", "type", "param", "code"}}``, OpenAI's keys among them.
        """
        kind = "server_error" if self.status >= 500 else _TYPES.get(self.status, "invalid_request_error")
        return {
            "error": {
                "message": str(self.error) if as_openai else self.error.problem,
                "expected": self.error.expected,
                "hint": self.error.hint,
                "type": kind,
                "param": None,
                "code": self.code,
            }
        }


def failure_of(error: Exception) -> Failure:
    """Find out how an error is told; one that says too much of the inside is logged and replaced.

    Args:
        error: What was raised while a request was carried out.

    Returns:
        The failure: 4xx if the request was at fault, 502 if the model or the retriever was, 500 if the server was.
    """
    if isinstance(error, RefusalError):
        return Failure(error.status, error.code, error, error.headers)
    if isinstance(error, _OF_THE_REQUEST):
        return Failure(422, "invalid_request", error)
    if isinstance(error, HTTPException):
        code = _CODES.get(error.status_code, "invalid_request")
        return Failure(
            error.status_code, code, AdaptLLMError(error.detail.lower(), expected=_ROUTES), error.headers or {}
        )
    _LOG.error("a question could not be answered", exc_info=error)
    if isinstance(error, AdaptLLMError):
        return Failure(502, "model_failed", AdaptLLMError("the model or the retriever failed", hint=_TO_OPERATOR))
    return Failure(500, "server_failed", AdaptLLMError("the server failed", hint=_TO_OPERATOR))
