"""Questions as they come in: typed after the command, in a file, or through a pipe."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from adaptllm_chain.errors import AdaptLLMError, DataFileError, InvalidInputError

# A line of a text is a question as it stands; a line of JSON is a row; a pipe may bring either.
Lines = Literal["text", "json", "either"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One question on its way to the chain.

    Attributes:
        value: What the chain is given.
        where: Where it stands, if it stands in a file.
        error: Why it cannot be asked.
    """

    value: Mapping[str, Any]
    where: str | None = None
    error: AdaptLLMError | None = None


def typed(questions: Sequence[str]) -> Iterator[Entry]:
    """Take questions from the command.

    Args:
        questions: The questions.

    Yields:
        The entries.
    """
    for number, question in enumerate(questions, start=1):
        yield Entry({"input": question}, f"question {number}" if len(questions) > 1 else None)


def in_file(path: Path) -> Iterator[Entry]:
    """Read a file of questions, one a line; in a ``.jsonl`` file each line is a JSON object.

    Args:
        path: The file.

    Yields:
        The entries, as they are read.
    """
    with path.open("rb") as file:
        yield from in_lines(file, str(path), "json" if path.suffix == ".jsonl" else "text")


def count_in_file(path: Path) -> int | None:
    """Count the questions of a file without reading what they are.

    Args:
        path: The file.

    Returns:
        How many lines are not empty; ``None`` for a pipe or a device, which can be read only once.

    Raises:
        DataFileError: If there is no such file, or there is nothing in it.
    """
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            return None
        with path.open("rb") as file:
            count = sum(1 for line in file if line.strip())
    except OSError as error:
        raise DataFileError(
            f"{path} cannot be read: {error.strerror}", expected="a file with one question a line", hint=f"ls {path}"
        ) from error
    if not count:
        raise no_question(path)
    return count


def no_question(path: Path) -> DataFileError:
    """Build the error for a file without questions.

    Args:
        path: The file.

    Returns:
        The error.
    """
    return DataFileError(f"{path} is empty", expected="one question a line, or one JSON object a line in a .jsonl")


def in_lines(lines: Iterable[bytes], name: str, kind: Lines) -> Iterator[Entry]:
    """Read questions line by line; a line that cannot be read becomes an entry with the error.

    Args:
        lines: The lines; empty ones are passed over.
        name: What they are read from, for messages.
        kind: What stands on them.

    Yields:
        The entries, as they are read.
    """
    for number, raw in enumerate(lines, start=1):
        where = f"{name}, line {number}"
        try:
            line = raw.decode("utf-8").removeprefix("\ufeff").strip()
            if line:
                yield Entry(_value_of(line, kind), where)
        except UnicodeDecodeError as error:
            yield Entry({}, where, InvalidInputError(f"not UTF-8: {error.reason} at byte {error.start} of the line"))
        except InvalidInputError as error:
            yield Entry({}, where, error)


def with_popularity(entries: Iterable[Entry], popularity: float | None) -> Iterator[Entry]:
    """See that every question has a popularity.

    Args:
        entries: The questions.
        popularity: For those that bring none of their own.

    Yields:
        The entries; one that has none has an error instead.
    """
    for entry in entries:
        if entry.error is not None or entry.value.get("popularity") is not None:
            yield entry
        elif popularity is not None:
            yield replace(entry, value={**entry.value, "popularity": popularity})
        else:
            yield replace(entry, error=missing_popularity())


def missing_popularity() -> InvalidInputError:
    """Build the error for a question without a popularity.

    Returns:
        The error.
    """
    return InvalidInputError(
        "--mode popularity has to know how popular the subject of the question is",
        expected="--popularity with a number such as monthly page views, or rows in a .jsonl file",
        hint='--popularity 1200, or --file with lines like {"question": "…", "popularity": 1200}',
    )


def _value_of(line: str, kind: Lines) -> Mapping[str, Any]:
    if kind == "text" or (kind == "either" and not line.startswith("{")):
        return {"input": line}
    try:
        row: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        if kind == "either":
            return {"input": line}
        raise InvalidInputError(
            f"not JSON: {error}", expected='an object such as {"question": "…"}', hint="or a .txt file of plain lines"
        ) from error
    if not isinstance(row, dict):
        raise InvalidInputError(f"a JSON {type(row).__name__}", expected='an object such as {"question": "…"}')
    return row
