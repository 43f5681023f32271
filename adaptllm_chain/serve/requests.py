"""What clients may ask for."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Wishes(BaseModel):
    """How a question is to be answered; what is left out is as the server is set.

    Attributes:
        mode: One of the modes in ``/settings``.
        threshold: Retrieve from this P(<RET>) on; null: retrieve if the output is ``<RET>``.
        k: How many passages to answer from.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    mode: str | None = Field(default=None, examples=["adaptive"])
    threshold: float | None = Field(default=None, ge=0.0, allow_inf_nan=False, examples=[0.5])
    k: int | None = Field(default=None, ge=1, examples=[1])


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


class ChatMessage(BaseModel):
    """A message of a chat.

    Attributes:
        role: Whose it is.
        content: A text, or parts of which each is a text.
    """

    model_config = ConfigDict(extra="allow", strict=True)

    role: str
    content: str | list[dict[str, Any]] | None = None


class ChatRequest(BaseModel):
    """The body of ``POST /v1/chat/completions``; OpenAI's further parameters are in ``model_extra``.

    Attributes:
        model: The model, as ``/v1/models`` calls it.
        messages: The chat; the user's last message is the question, the others are not read.
        stream: Whether to answer in chunks.
        stream_options: ``{"include_usage": true}`` adds a chunk with the tokens, if they are known.
        stop: Texts at which an answer ends.
        max_tokens: The most tokens of an answer, if that is fewer than the server's.
        max_completion_tokens: The same, as OpenAI calls it now.
        adaptllm: How the question is to be answered.
    """

    model_config = ConfigDict(extra="allow", strict=True)

    model: str
    messages: list[ChatMessage] = Field(min_length=1, examples=[[{"role": "user", "content": "Who wrote Hamlet?"}]])
    stream: bool | None = None
    stream_options: dict[str, Any] | None = None
    stop: str | list[str] | None = None
    max_tokens: int | None = Field(default=None, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)
    adaptllm: Wishes = Wishes()
