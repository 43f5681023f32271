"""Reading OpenAI's parameters: what is followed, what is refused, and what is passed over and said to be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.serve.failures import RefusalError
from adaptllm_chain.serve.incoming import read_object
from adaptllm_chain.serve.ways import Way, Ways, Wishes

# Parameters that would change what an answer is, with the values that ask for nothing.
_REFUSED: dict[str, Callable[[Any], bool]] = {
    "n": lambda value: value == 1,
    "tools": lambda value: value == [],
    "tool_choice": lambda value: value in ("none", "auto"),
    "functions": lambda value: value == [],
    "function_call": lambda value: value in ("none", "auto"),
    "response_format": lambda value: value == {"type": "text"},
    "logprobs": lambda value: value is False,
    "top_logprobs": lambda value: value == 0,
    "modalities": lambda value: value == ["text"],
    "audio": lambda value: False,
    "web_search_options": lambda value: False,
}
_USER = "user"
# As many as OpenAI allows. A local model compares each with its whole vocabulary: a thousand would keep it busy for
# minutes.
_MOST_STOPS = 4
_LONGEST_STOP = 100


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
        adaptllm: How the question is to be answered: ``Wishes``.
    """

    model_config = ConfigDict(extra="allow", strict=True)

    model: str
    messages: list[ChatMessage] = Field(min_length=1, examples=[[{"role": "user", "content": "Who wrote Hamlet?"}]])
    stream: bool | None = None
    stream_options: dict[str, Any] | None = None
    stop: str | list[str] | None = None
    max_tokens: int | None = Field(default=None, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)
    adaptllm: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ChatQuestion:
    """What a chat asks.

    Attributes:
        question: The text of the user's last message.
        way: How to answer it.
        ignored: The parameters that make no difference here, sorted.
    """

    question: str
    way: Way
    ignored: tuple[str, ...]


def read_chat(request: ChatRequest, ways: Ways, model: str) -> ChatQuestion:
    """Find the question of a chat, and how it is to be answered.

    Args:
        request: The body of the request.
        ways: The ways in which the server can answer.
        model: What its model is called.

    Returns:
        The question.

    Raises:
        AdaptLLMError: If the request asks for what this server does not do.
    """
    check_model(request.model, model)
    given = {name: value for name, value in (request.model_extra or {}).items() if value is not None}
    for name, asks_nothing in _REFUSED.items():
        if name in given and not asks_nothing(given[name]):
            raise RefusalError(
                f"{name}={given[name]!r:.80} is not supported",
                status=400,
                code="unsupported_parameter",
                expected=f"a request without {name}: one answer in text to the last message",
            )
    ending = ways.ending(_stops(request.stop), request.max_completion_tokens or request.max_tokens)
    way = ways.choose(read_object(request.adaptllm or {}, Wishes, "adaptllm"), ending)
    return ChatQuestion(_question(request.messages), way, tuple(sorted(set(given) - set(_REFUSED))))


def check_model(asked: str, model: str) -> None:
    """Refuse another model.

    Args:
        asked: The model that a client asks for.
        model: The server's.

    Raises:
        RefusalError: If it is another.
    """
    if asked != model:
        raise RefusalError(
            f"there is no model {asked!r:.80}",
            status=404,
            code="model_not_found",
            expected=f"{model!r}",
            hint="GET /v1/models lists the model of this server",
        )


def _stops(stop: str | list[str] | None) -> tuple[str, ...]:
    stops = (stop,) if isinstance(stop, str) else tuple(stop or ())
    if len(stops) > _MOST_STOPS or not all(0 < len(text) <= _LONGEST_STOP for text in stops):
        raise InvalidInputError(
            f"stop={stop!r:.80}",
            expected=f"at most {_MOST_STOPS} texts of 1 to {_LONGEST_STOP} characters",
            hint='"stop": ["\\n"]',
        )
    return stops


def _question(messages: Sequence[ChatMessage]) -> str:
    for message in reversed(messages):
        if message.role == _USER:
            return _text(message.content)
    raise InvalidInputError(
        "there is no message from the user",
        expected="messages with one of the role 'user'",
        hint='"messages": [{"role": "user", "content": "Who wrote Hamlet?"}]',
    )


def _text(content: str | list[dict[str, Any]] | None) -> str:
    if isinstance(content, str):
        return content
    texts = [part.get("text") if part.get("type") == "text" else None for part in content or ()]
    if not texts or not all(isinstance(text, str) for text in texts):
        raise InvalidInputError(
            f"the user's last message is {content!r:.80}", expected="a text, or parts of the type 'text' alone"
        )
    return "\n".join(str(text) for text in texts)
