"""The queries that responses are sampled for: questions alone, whatever else their files hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from adaptllm_chain.chain.inputs import read_input
from adaptllm_chain.cli.questions import in_file
from adaptllm_chain.errors import AdaptLLMError, DataFileError, InvalidInputError
from adaptllm_chain.qa_data import question_key, read_many

# A question a line needs no answer. Files of other kinds are read as question files; their answers are not used.
_OF_LINES = (".txt", ".jsonl")


class Query(NamedTuple):
    """A question and the identifier of its row.

    Attributes:
        id: Unique among the queries.
        text: The question.
    """

    id: str
    text: str


def read_queries(files: Sequence[str], limit: int | None = None) -> list[Query]:
    """Read files in order; of questions that ask the same, the first stays.

    Args:
        files: ``.txt`` with a question a line, ``.jsonl`` with an object a line that has a ``question``, or whatever
            ``read_questions`` takes.
        limit: The most queries.

    Returns:
        The queries.

    Raises:
        DataFileError: If a line holds no question.
        InvalidInputError: If there is none at all.
    """
    first: dict[str, Query] = {}
    names = [Path(file).name for file in files]
    for place, (file, name) in enumerate(zip(files, names, strict=True), start=1):
        # The folder is left out: rows that were made elsewhere are the same rows.
        source = name if names.count(name) == 1 else f"{name}#{place}"
        for identifier, text in _lines(Path(file)) if file.endswith(_OF_LINES) else _rows(file):
            first.setdefault(question_key(text), Query(f"{source}:{identifier}", text))
    queries = list(first.values())[:limit]
    if not queries:
        raise InvalidInputError(f"no question in {', '.join(files)}", expected="at least one question")
    return queries


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    try:
        for number, entry in enumerate(in_file(path), start=1):
            if entry.error is not None:
                raise entry.error
            yield str(number), read_input(entry.value).question
    except OSError as error:
        raise DataFileError(f"{path} cannot be read: {error.strerror}", expected="a file of questions") from error
    except AdaptLLMError as error:
        where = entry.where or path
        raise DataFileError(
            f"{where} holds no question: {error.problem}",
            expected='a question a line in a .txt file, {"question": "…"} a line in a .jsonl file',
        ) from error


def _rows(file: str) -> Iterator[tuple[str, str]]:
    return ((question.id, question.text) for question in read_many([file]))
