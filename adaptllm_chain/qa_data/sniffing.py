"""Telling a file's format from its content; its name is not looked at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from adaptllm_chain.errors import DataFileError
from adaptllm_chain.qa_data.columns import DEFAULT_COLUMNS
from adaptllm_chain.qa_data.cut_files import CutFileError
from adaptllm_chain.qa_data.files import open_bytes
from adaptllm_chain.qa_data.formats import FORMATS
from adaptllm_chain.qa_data.json_cursor import JsonCursor
from adaptllm_chain.qa_data.json_sources import json_rows
from adaptllm_chain.qa_data.line_sources import json_line_rows, table_rows
from adaptllm_chain.qa_data.rows import Row


def sniff_format(path: Path, *, generic: bool = False) -> str:
    """Find the format of a file by its first record.

    Args:
        path: The file, plain or gzip.
        generic: Whether to choose among ``json``, ``jsonl`` and ``csv`` only, because the caller
            knows the columns.

    Returns:
        A name in ``FORMATS``.

    Raises:
        DataFileError: The file is empty, or of no known format.
    """
    with open_bytes(path) as stream:
        cursor = JsonCursor(stream, path)
        first = cursor.peek()
        if not first:
            cursor.finish()  # a gzip file that was cut is not empty
    if not first:
        raise DataFileError(f"{path}: the file is empty", expected="a file of questions")
    if first == "[":
        found = _json_list(path, generic=generic)
    elif first == "{":
        found = _json_object(path, generic=generic) or _json_lines(path, generic=generic)
    else:
        found = _table(path, generic=generic)
    if found is None:
        first_line = next(json_line_rows(path)).problem if first == "{" else None
        listing = "; ".join(f"{name}: {known.description}" for name, known in FORMATS.items())
        raise DataFileError(
            f"{path}: its content fits no known format" + (f" (its first line is {first_line})" if first_line else ""),
            expected=f"one of {listing}",
            hint='name it, format="jsonl", and map its columns, columns={"question": "q", "answers": "gold"}',
        )
    return found


_AUTHORS_OWN = frozenset({"possible_answers", "passage_text", "contriever_passage", "needs_retrieve"})
# The first record may be the broken one, so a few are looked at.
_LOOK_AT = 20


def _first_usable(rows: Iterator[Row]) -> Mapping[str, Any] | None:
    few = []
    try:
        for row in islice(rows, _LOOK_AT):
            if row.problem is None:
                few.append(row.data)  # noqa: PERF401 - those before a cut count
    except CutFileError:
        # It belongs to the reader, unless nothing stands before it.
        if not few:
            raise
    return next((data for data in few if _has_question(data)), few[0] if few else None)


def _has_question(data: Mapping[str, Any]) -> bool:
    return "question" in data and any(name in data for name in DEFAULT_COLUMNS["answers"])


def _json_list(path: Path, *, generic: bool) -> str | None:
    row = next(json_rows(path), None)
    if row is None or generic:
        return "json"
    # One element only: a DPR element is large, and an error behind it belongs to the reader.
    if "positive_ctxs" in row.data or "ctxs" in row.data:
        return "dpr"
    return "json" if _has_question(row.data) else None


def _json_object(path: Path, *, generic: bool) -> str | None:
    """One object that holds the whole file, told by its first members; ``None`` for JSON lines."""
    with open_bytes(path) as stream:
        cursor = JsonCursor(stream, path)
        cursor.take("{")
        key = cursor.value() if cursor.peek() == '"' else None
        while key == "version" and cursor.take(":"):
            cursor.value()
            key = cursor.value() if cursor.take(",}") == "," else None
        if key is None:
            return None
        cursor.take(":")
        if key == "data" and cursor.peek() == "[" and not generic:
            return "squad"
        if cursor.peek() != "{":
            return None
        value = cursor.value()
        if not generic and "question" in value and not _AUTHORS_OWN.isdisjoint(value):
            return "authors"
        # With a column map the nested object alone does not tell a document from a line that
        # begins with an object, but what follows the first line does.
        if _has_question(value) or (generic and not _is_json_lines(path)):
            return "json"
    return None


def _is_json_lines(path: Path) -> bool:
    try:
        return _json_lines(path, generic=True) is not None
    except CutFileError:
        return False


def _json_lines(path: Path, *, generic: bool) -> str | None:
    data = _first_usable(json_line_rows(path))
    if data is None:
        return None
    if generic:
        return "jsonl"
    if {"question", "answers", "ctxs"} <= set(data):
        return "nq_open_oracle"
    if set(data) == {"question", "answer"} and isinstance(data["answer"], list):
        return "nq_open"
    return "jsonl" if _has_question(data) else None


def _table(path: Path, *, generic: bool) -> str | None:
    data = _first_usable(table_rows(path))
    if data is None:
        return None
    if generic:
        return "csv"
    if {"question", "possible_answers", "prop", "s_pop"} <= set(data):
        return "popqa"
    return "csv" if _has_question(data) else None
