"""Reading OpenAI's parameters: what is followed, what is refused, and what is passed over and said to be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.serve.failures import RefusalError
from adaptllm_chain.serve.requests import ChatMessage, ChatRequest
from adaptllm_chain.serve.variants import Variants, Way

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


def read_chat(request: ChatRequest, variants: Variants, model: str) -> ChatQuestion:
    """Find the question of a chat, and how it is to be answered.

    Args:
        request: The body of the request.
        variants: The ways in which the server can answer.
        model: What its model is called.

    Returns:
        The question.

    Raises:
        AdaptLLMError: If the request asks for what this server does not do.
    """
    if request.model != model:
        raise RefusalError(
            f"there is no model {request.model!r:.80}",
            status=404,
            code="model_not_found",
            expected=f"{model!r}",
            hint="GET /v1/models lists the model of this server",
        )
    given = {name: value for name, value in (request.model_extra or {}).items() if value is not None}
    for name, asks_nothing in _REFUSED.items():
        if name in given and not asks_nothing(given[name]):
            raise RefusalError(
                f"{name}={given[name]!r:.80} is not supported",
                status=400,
                code="unsupported_parameter",
                expected=f"a request without {name}: one answer in text to the last message",
            )
    way = replace(
        variants.choose(request.adaptllm),
        stop=_stops(request.stop),
        max_new_tokens=variants.token_limit(request.max_completion_tokens or request.max_tokens),
    )
    return ChatQuestion(_question(request.messages), way, tuple(sorted(set(given) - set(_REFUSED))))


def _stops(stop: str | list[str] | None) -> tuple[str, ...]:
    stops = (stop,) if isinstance(stop, str) else tuple(stop or ())
    if not all(stops):
        raise InvalidInputError(f"stop={stop!r:.80}", expected="texts that are not empty", hint='"stop": ["\\n"]')
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
