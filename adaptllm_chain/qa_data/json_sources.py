"""Cutting JSON documents into rows: lists, objects of objects, SQuAD's tree."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from adaptllm_chain.errors import DataFileError
from adaptllm_chain.qa_data.cut_files import CutFileError
from adaptllm_chain.qa_data.files import open_bytes
from adaptllm_chain.qa_data.json_cursor import JsonCursor
from adaptllm_chain.qa_data.rows import Row, as_row


def json_rows(path: Path) -> Iterator[Row]:
    """Read the elements of a JSON list, or the members of a JSON object of objects.

    One element is in memory at a time.

    Args:
        path: The file, plain or gzip.

    Yields:
        One row per element, in the order of the file; a member's key is its default id.

    Raises:
        CutFileError: The file was cut; behind the last element that is whole.
        DataFileError: The file is not JSON; the message names the byte.
    """
    with open_bytes(path) as stream:
        cursor = JsonCursor(stream, path)
        if cursor.peek() == "{":
            for number, key in enumerate(cursor.members(), start=1):
                yield as_row(cursor.value(), where=f"row {number} (key {key!r})", default_id=key)
        else:
            for number in cursor.elements():
                yield as_row(cursor.value(), where=f"row {number}", default_id=str(number))
        cursor.finish()


def squad_rows(path: Path) -> Iterator[Row]:
    """Read the questions out of SQuAD's articles and paragraphs.

    One article is in memory at a time. Of a cut article, the paragraphs that are whole count, if
    its title stands before them.

    Args:
        path: The file, plain or gzip.

    Yields:
        One row per question: SQuAD's fields and the ``title`` and ``context`` it stands under.

    Raises:
        CutFileError: The file was cut; behind the last paragraph that is whole.
        DataFileError: The file is not JSON, or not built as SQuAD is.
    """
    found = False
    with open_bytes(path) as stream:
        cursor = JsonCursor(stream, path)
        for name in _members(cursor):
            if name == "data" and cursor.peek() == "[":
                found = True
                for number in cursor.elements():
                    yield from _article_rows(path, cursor, f"article {number}")
            else:
                cursor.value()
        cursor.finish()
    if not found:
        raise _no_list(path, "the file", "data")


def _members(cursor: JsonCursor) -> Iterator[str]:
    """Step through an object; through anything else without a word: what it lacks is told later."""
    if cursor.peek() == "{":
        yield from cursor.members()
    else:
        cursor.value()


def _article_rows(path: Path, cursor: JsonCursor, where: str) -> Iterator[Row]:
    article: dict[str, Any] = {}
    cut: CutFileError | None = None
    try:
        for name in _members(cursor):
            if name == "paragraphs" and cursor.peek() == "[":
                # Kept one by one, so that those before a cut are there after it.
                paragraphs = article[name] = []
                for _ in cursor.elements():
                    paragraphs.append(cursor.value())  # noqa: PERF401
            else:
                article[name] = cursor.value()
    except CutFileError as error:
        if "title" not in article:
            raise
        cut = error
    if "paragraphs" in article or cut is None:
        for number, paragraph in enumerate(_list(path, article, where, "paragraphs"), start=1):
            yield from _paragraph_rows(path, paragraph, f"{where}, paragraph {number}", article.get("title"))
    if cut is not None:
        raise cut


def _paragraph_rows(path: Path, paragraph: Any, where: str, title: object) -> Iterator[Row]:
    for number, entry in enumerate(_list(path, paragraph, where, "qas"), start=1):
        full = f"{where}, question {number}"
        record = {**entry, "title": title, "context": paragraph.get("context")} if isinstance(entry, dict) else entry
        yield as_row(record, where=full, default_id=full)


def _list(path: Path, parent: object, where: str, name: str) -> list[Any]:
    children = parent.get(name) if isinstance(parent, dict) else None
    if not isinstance(children, list):
        raise _no_list(path, where, name)
    return children


def _no_list(path: Path, where: str, name: str) -> DataFileError:
    return DataFileError(f"{path}: {where}: has no list named {name!r}", expected="a file in SQuAD's format")
