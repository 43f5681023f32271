"""What the chain accepts as a question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, convert_to_messages
from langchain_core.messages.utils import MessageLikeRepresentation
from langchain_core.prompt_values import PromptValue

# Pydantic reads the schema of a TypedDict on Python < 3.12 only from typing_extensions.
from typing_extensions import TypedDict

from adaptllm_chain.errors import InvalidInputError

# In this order: LangChain's retrieval chain reads "input", and a key that stands there is the question.
QUESTION_KEYS = ("input", "question", "query", "messages")
RESULT_KEYS = ("context", "answer", "retrieved", "ret_probability", "decision")
_FORMS = (
    'a non-empty text, a mapping with one of the keys "input", "question", "query" or "messages", '
    "a list of messages with one from the user, or a prompt value"
)

# A text, a message, or messages, each in any form in which LangChain takes a message; None stands for "not given".
QuestionValue: TypeAlias = MessageLikeRepresentation | list[MessageLikeRepresentation] | None


class QuestionMapping(TypedDict, total=False):
    """The mapping form of an input; other keys are carried over into the result."""

    input: QuestionValue
    question: QuestionValue
    query: QuestionValue
    messages: QuestionValue
    popularity: float | None


AdaptiveInput: TypeAlias = str | Mapping[str, Any] | Sequence[Any] | PromptValue


@dataclass(frozen=True, slots=True)
class Asked:
    """One question as it was put to the chain.

    Attributes:
        question: Its text, as it was typed.
        popularity: How popular its subject is, if the input said so; unchecked, for most policies need none.
        carried: The other keys of the input, which stand in the result too.
    """

    question: str
    popularity: Any = None
    carried: Mapping[str, Any] = field(default_factory=dict)


def read_input(value: Any) -> Asked:
    """Find the question in an input.

    Args:
        value: What was passed to the chain.

    Returns:
        The question and what came with it.

    Raises:
        InvalidInputError: If there is no question in it.
    """
    if not isinstance(value, Mapping):
        return Asked(_text_of(value))
    key = _question_key(value)
    if key is None and "role" in value:
        return Asked(_text_of(value))
    if key is None:
        raise InvalidInputError(f"no question in the input {_shown(value)}", expected=_FORMS)
    carried = {name: item for name, item in value.items() if name not in RESULT_KEYS}
    return Asked(_text_of(value[key]), value.get("popularity"), carried)


def read_history(value: Any) -> list[Any]:
    """Find the conversation before the question.

    Args:
        value: What was passed to the chain.

    Returns:
        What stands under ``chat_history`` in a mapping, as it is; otherwise what the user and the assistant said
        before the user's last message, as text. Empty for a first question, or where there is no question.

    Raises:
        InvalidInputError: If ``chat_history``, or a list, holds something else than messages.
    """
    if isinstance(value, Mapping):
        if value.get("chat_history"):
            return _checked_history(value["chat_history"])
        key = _question_key(value)
        value = None if key is None else value[key]
    if isinstance(value, PromptValue):
        messages = value.to_messages()
    elif isinstance(value, list | tuple) and not all(isinstance(item, str) for item in value):
        messages = _as_messages(value)
    else:
        return []
    places = [place for place, message in enumerate(messages) if isinstance(message, HumanMessage)]
    earlier = messages[: places[-1]] if places else []
    # As bare text: a call of a tool without its result is refused by servers.
    return [
        HumanMessage(str(message.text)) if isinstance(message, HumanMessage) else AIMessage(str(message.text))
        for message in earlier
        if isinstance(message, HumanMessage | AIMessage) and message.text
    ]


def _checked_history(history: Any) -> list[Any]:
    # A text would be read letter by letter, and ConversationalRetrievalChain's pairs have no roles.
    refused = InvalidInputError(
        f"chat_history={_shown(history)}",
        expected="a list of messages, in any form that LangChain takes",
        hint='"chat_history": [("human", "What is the Falkirk Wheel?"), ("ai", "A boat lift.")]',
    )
    if not isinstance(history, list | tuple):
        raise refused
    try:
        convert_to_messages(history)
    except (ValueError, NotImplementedError, TypeError) as error:
        raise refused from error
    return list(history)


def _question_key(value: Mapping[str, Any]) -> str | None:
    return next((key for key in QUESTION_KEYS if value.get(key) is not None), None)


def _text_of(value: Any) -> str:
    if isinstance(value, str):
        text = value
    elif isinstance(value, PromptValue):
        text = _last_human(value.to_messages())
    elif isinstance(value, BaseMessage | Mapping):
        text = _last_human(_as_messages([value]))
    elif isinstance(value, Sequence) and not isinstance(value, bytes):
        if value and all(isinstance(item, str) for item in value):
            raise InvalidInputError(
                f"the input {_shown(value)} is a list of texts",
                expected=_FORMS,
                hint="for several questions: chain.batch([...])",
            )
        text = _last_human(_as_messages(value))
    else:
        raise InvalidInputError(f"the input {_shown(value)} is no question", expected=_FORMS)
    if not text.strip():
        raise InvalidInputError(f"the question in {_shown(value)} is empty", expected=_FORMS)
    return text


def _as_messages(value: Sequence[Any]) -> list[BaseMessage]:
    try:
        return convert_to_messages(value)
    except (ValueError, NotImplementedError, TypeError) as error:
        raise InvalidInputError(f"the input {_shown(value)} is no list of messages", expected=_FORMS) from error


def _last_human(messages: Sequence[BaseMessage]) -> str:
    for message in reversed(messages):
        if isinstance(message, HumanMessage):
            return str(message.text)
    raise InvalidInputError(f"no message from the user in {_shown(messages)}", expected=_FORMS)


def _shown(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 120 else f"{shown[:119]}…"
