"""Cutting files into rows: JSON documents, JSON lines, separated columns, SQuAD's tree."""

from __future__ import annotations

import codecs
import csv
import json
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import IO, Any

from adaptllm_chain.errors import DataFileError
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
        DataFileError: The file is not JSON or was cut; the message names the byte.
    """
    with open_bytes(path) as stream:
        cursor = JsonCursor(stream, path)
        opening = cursor.take("{[")
        closing = "}" if opening == "{" else "]"
        if cursor.peek() == closing:
            cursor.take(closing)
        else:
            for number in count(1):
                key = _member_key(cursor) if opening == "{" else None
                where = f"row {number}" if key is None else f"row {number} (key {key!r})"
                yield as_row(cursor.value(), where=where, default_id=str(number) if key is None else key)
                if cursor.take("," + closing) == closing:
                    break
        cursor.finish()


def _member_key(cursor: JsonCursor) -> str:
    key = str(cursor.value())
    cursor.take(":")
    return key


def json_line_rows(path: Path) -> Iterator[Row]:
    """Read a file with one JSON object per line; blank lines are allowed.

    Args:
        path: The file, plain or gzip.

    Yields:
        One row per line, in the order of the file; the line's number, from 1, is its default id.
    """
    with open_bytes(path) as stream:
        start = 0
        for number, line in enumerate(stream, start=1):
            text = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
            if text.strip():
                yield _json_line(text, number=number, start=start + len(line) - len(text))
            start += len(line)


def _json_line(line: bytes, *, number: int, start: int) -> Row:
    where = f"line {number}"
    try:
        value = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        return Row(where=where, default_id=str(number), problem=f"not UTF-8 text at byte {start + error.start}")
    except json.JSONDecodeError as error:
        place = start + len(error.doc[: error.pos].encode())
        return Row(where=where, default_id=str(number), problem=f"not JSON at byte {place} ({error.msg})")
    except RecursionError:
        return Row(where=where, default_id=str(number), problem="JSON that is nested too deeply")
    return as_row(value, where=where, default_id=str(number))


def table_rows(path: Path) -> Iterator[Row]:
    """Read a file of separated columns with a header line.

    The separator is the one of tab, comma and semicolon that the header holds most often.

    Args:
        path: The file, plain or gzip.

    Yields:
        One row per record, all values as text; the record's number, from 1 and without the
        header, is its default id.

    Raises:
        DataFileError: The file has no header line.
    """
    with open_bytes(path) as stream:
        lines = _decoded_lines(stream, path)
        header_line = next(lines, "")
        if not header_line.strip():
            raise DataFileError(f"{path}: has no header line", expected="column names in the first line")
        separator = max("\t,;", key=header_line.count)
        header = next(csv.reader([header_line], delimiter=separator))
        # strict: an unclosed quote is an error, not a cell that swallows the rest of the file.
        reader = csv.reader(lines, delimiter=separator, strict=True)
        number = 0
        while True:
            number += 1
            where = f"line {reader.line_num + 2}"
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                yield Row(where=where, default_id=str(number), problem=f"not a row of separated columns ({error})")
                continue
            if not cells:
                number -= 1
            elif len(cells) != len(header):
                problem = f"{len(cells)} cells under {len(header)} column names"
                yield Row(where=where, default_id=str(number), problem=problem)
            else:
                yield Row(where=where, default_id=str(number), data=dict(zip(header, cells, strict=True)))


def _decoded_lines(stream: IO[bytes], path: Path) -> Iterator[str]:
    start = 0
    for number, line in enumerate(stream, start=1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise DataFileError(
                f"{path}: line {number}: not UTF-8 text at byte {start + error.start}", expected="text in UTF-8"
            ) from error
        yield text
        start += len(line)


def squad_rows(path: Path) -> Iterator[Row]:
    """Read the questions out of SQuAD's articles and paragraphs.

    Args:
        path: The file, plain or gzip.

    Yields:
        One row per question: SQuAD's fields and the ``title`` and ``context`` it stands under.

    Raises:
        DataFileError: The file is not JSON, or not built as SQuAD is.
    """
    with open_bytes(path) as stream:
        cursor = JsonCursor(stream, path)
        document = cursor.value()
        cursor.finish()
    for article_place, _, article in _branches(path, document, "the file", "data", "article"):
        for place, above, paragraph in _branches(path, article, article_place, "paragraphs", "paragraph"):
            for where, context, entry in _branches(path, paragraph, f"{article_place}, {place}", "qas", "question"):
                full = f"{article_place}, {place}, {where}"
                inherited = {"title": above.get("title"), "context": context.get("context")}
                record = {**entry, **inherited} if isinstance(entry, dict) else entry
                yield as_row(record, where=full, default_id=full)


def _branches(
    path: Path, parent: object, where: str, name: str, child: str
) -> Iterator[tuple[str, Mapping[str, Any], object]]:
    """Walk one level down: each child's place in words, its parent, and the child."""
    children = parent.get(name) if isinstance(parent, dict) else None
    if not isinstance(parent, dict) or not isinstance(children, list):
        raise DataFileError(f"{path}: {where}: has no list named {name!r}", expected="a file in SQuAD's format")
    for number, value in enumerate(children, start=1):
        yield f"{child} {number}", parent, value
