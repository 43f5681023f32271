"""Taking typed values out of a row, or saying what is wrong with it."""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from langchain_core.documents import Document

from adaptllm_chain.qa_data.rows import RowProblem

# What a missing value becomes when a table library writes it as text.
_MISSING_AS_TEXT = frozenset({"nan", "NaN"})


def text_field(data: Mapping[str, Any], name: str) -> str:
    """Take a text that must be there.

    Args:
        data: The row's fields.
        name: The field.

    Returns:
        The text, unchanged.

    Raises:
        RowProblem: The field is missing, not a text, or blank.
    """
    value = data.get(name)
    if value is None:
        raise RowProblem(f"{name!r} is missing; the fields are {sorted(map(str, data))}")
    if not isinstance(value, str):
        raise RowProblem(f"{name!r} is a {type(value).__name__}, not a text")
    if not value.strip() or value.strip() in _MISSING_AS_TEXT:
        raise RowProblem(f"{name!r} is empty ({value!r})")
    return value


def answers_field(data: Mapping[str, Any], *names: str) -> tuple[str, ...]:
    """Take the accepted answers, in any of the shapes that they come in.

    A list, a single answer, a list that was written into a string (as JSON in PopQA, as Python
    in files of Adapt-LLM), or the Hugging Face SQuAD shape ``{"text": [...]}``. Numbers become
    text; repeated answers are kept once, in order. A bare ``nan`` or ``NaN`` is a missing value; an
    answer that is spelled so can be given inside a list.

    Args:
        data: The row's fields.
        *names: The fields to look for; the first that is there counts.

    Returns:
        The answers, at least one, none of them blank.

    Raises:
        RowProblem: There is no answer, or one of them is blank or not a text.
    """
    name = next((name for name in names if data.get(name) is not None), None)
    if name is None:
        raise RowProblem(f"{' or '.join(map(repr, names))} is missing; the fields are {sorted(map(str, data))}")
    value = data[name]
    if isinstance(value, Mapping) and isinstance(value.get("text"), list):
        value = value["text"]
    if isinstance(value, list | tuple) and len(value) == 1 and isinstance(value[0], str):
        value = _unpacked(value[0], fallback=list(value))
    elif isinstance(value, str):
        if value.strip() in _MISSING_AS_TEXT:
            raise RowProblem(f"{name!r} is a missing value ({value!r})")
        value = _unpacked(value, fallback=[value])
    elif not isinstance(value, list | tuple):
        value = [value]
    if not value:
        raise RowProblem(f"{name!r} holds no answer")
    return tuple(dict.fromkeys(_answer(answer, name) for answer in value))


def is_written_list(text: str) -> bool:
    """Say whether a text is a list of texts that was written into a string, from bracket to bracket.

    Args:
        text: The text; a list that was cut is none.

    Returns:
        Whether ``answers_field`` would unpack it.
    """
    return _written_list(text) is not None


def _unpacked(text: str, *, fallback: list[str]) -> list[Any]:
    found = _written_list(text)
    return fallback if found is None else found


def _written_list(text: str) -> list[str] | None:
    stripped = text.strip()
    if not (stripped.startswith("[") and stripped.endswith("]")):
        return None
    for parse in (json.loads, ast.literal_eval):
        try:
            value = parse(stripped)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        # "[1]" is rather an answer with brackets than a list of answers.
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return value
    return None


def _answer(value: object, name: str) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        raise RowProblem(f"{name!r} holds a missing value ({value})")
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise RowProblem(f"{name!r} holds a {type(value).__name__} ({value!r:.40}), not a text")
    text = str(value)
    if not text.strip():
        raise RowProblem(f"{name!r} holds an empty answer, which every output would contain")
    return text


def number_field(data: Mapping[str, Any], *names: str) -> float | None:
    """Take a number that may be absent; it may be written as text.

    Args:
        data: The row's fields.
        *names: The fields to look for; the first that is there counts.

    Returns:
        The number, or ``None`` when no field has one.

    Raises:
        RowProblem: There is something that is not a finite number.
    """
    for name in names:
        value = data.get(name)
        if value is None or value == "":
            continue
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            raise RowProblem(f"{name!r} is not a number ({value!r:.40})") from None
        if not math.isfinite(number):
            raise RowProblem(f"{name!r} is not a finite number ({number})")
        return number
    return None


def passage(text: object, *, title: object = None, **metadata: object) -> Document | None:
    """Make a passage; the text is kept as it is, also when it begins with its title.

    Args:
        text: The passage.
        title: The title of its article, where the source has one.
        **metadata: More to keep beside the title; what is ``None`` is left out.

    Returns:
        The passage, with ``metadata["title"]`` empty when there is no title; ``None`` when the
        source has no text for it.

    Raises:
        RowProblem: The text is not a text.
    """
    if text is None or text == "":
        return None
    if not isinstance(text, str):
        raise RowProblem(f"a passage is a {type(text).__name__}, not a text")
    if not text.strip():
        return None
    kept = {key: value for key, value in metadata.items() if value is not None}
    return Document(page_content=text, metadata={"title": title if isinstance(title, str) else "", **kept})


def context_passages(data: Mapping[str, Any], name: str) -> list[tuple[Mapping[str, Any], Document]]:
    """Take a list of passages in DPR's shape: objects with ``title``, ``text`` and maybe a score.

    Args:
        data: The row's fields.
        name: The field with the list; it may be absent.

    Returns:
        Each passage as the source has it and as a document, in the order of the source.

    Raises:
        RowProblem: The field is not a list of objects that have a text.
    """
    contexts = data.get(name)
    if contexts is None:
        return []
    if not isinstance(contexts, list):
        raise RowProblem(f"{name!r} is a {type(contexts).__name__}, not a list of passages")
    found = []
    for number, context in enumerate(contexts, start=1):
        if not isinstance(context, Mapping):
            raise RowProblem(f"passage {number} of {name!r} is not an object with 'text' and 'title'")
        identifier = next((context[key] for key in ("id", "passage_id", "psg_id") if context.get(key)), None)
        document = passage(
            context.get("text"),
            title=context.get("title"),
            passage_id=identifier,
            score=number_field(context, "score"),
        )
        if document is None:
            raise RowProblem(f"passage {number} of {name!r} has no text")
        found.append((context, document))
    return found


def without(data: Mapping[str, Any], used: Iterable[str]) -> dict[str, Any]:
    """Keep what a reader has not used, for a question's metadata.

    Args:
        data: The row's fields.
        used: The fields that stand elsewhere in the question.

    Returns:
        The other fields, unchanged.
    """
    names = frozenset(used)
    return {name: value for name, value in data.items() if name not in names}
