"""What the operator of the service decides."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from adaptllm_chain.errors import InvalidInputError

_AT_LEAST_ONE = ("max_concurrency", "max_question_chars", "max_body_bytes", "max_k", "batch_size", "parallel_batches")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """The settings of the service.

    Attributes:
        model: What the model is called in ``/settings`` and ``/v1/models``.
        adapter: What its adapter is called, if it has one.
        passages: How many passages the index holds, if that is known.
        api_key: What requests must bring as ``Authorization: Bearer …``; ``None`` lets everyone ask. It is never shown.
        max_concurrency: The most questions at a time, waiting ones and streams included; more are turned away (429).
        max_question_chars: The most characters of a question.
        max_body_bytes: The most bytes of a request's body.
        body_timeout_s: How long a request's body may take to come, in seconds.
        max_k: The most passages that a request may ask for.
        batch_size: The most questions that are answered together.
        batch_wait_ms: How long a question waits for others to be answered with, in milliseconds.
        parallel_batches: Batches that run at the same time. More than 1 helps only a model behind an API; a local
            one would read them one after the other.
    """

    model: str = "adaptllm"
    adapter: str | None = None
    passages: int | None = None
    api_key: str | None = field(default=None, repr=False)
    max_concurrency: int = 32
    max_question_chars: int = 2000
    max_body_bytes: int = 1 << 20
    body_timeout_s: float = 10.0
    max_k: int = 50
    batch_size: int = 8
    batch_wait_ms: float = 10.0
    parallel_batches: int = 1

    def __post_init__(self) -> None:
        for name in _AT_LEAST_ONE:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InvalidInputError(f"{name}={value!r}", expected="a whole number of 1 or more", hint=f"{name}=8")
        for name, unit, example in (("batch_wait_ms", "milliseconds", 10), ("body_timeout_s", "seconds", 10)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
                raise InvalidInputError(f"{name}={value!r}", expected=f"{unit}, 0 or more", hint=f"{name}={example}")
        key = self.api_key
        if key is not None and (not key or not key.isascii() or not key.isprintable() or " " in key):
            # What it is stays unsaid: errors end in logs.
            raise InvalidInputError(
                "the API key cannot be sent in a header",
                expected="one or more ASCII letters, digits or signs, without spaces",
                hint="""python -c "import secrets; print(secrets.token_urlsafe())" makes one""",
            )
