"""Cutting files of lines into rows: JSON lines and separated columns."""

from __future__ import annotations

import codecs
import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from adaptllm_chain.errors import DataFileError
from adaptllm_chain.qa_data.cut_files import CutFileError, cut_file
from adaptllm_chain.qa_data.fields import is_written_list
from adaptllm_chain.qa_data.files import is_compressed, open_bytes, was_cut
from adaptllm_chain.qa_data.json_cursor import ends_inside
from adaptllm_chain.qa_data.rows import Row, as_row

# What Python says of UTF-8 that stops within a letter, and of nothing else.
_HALF_A_LETTER = "unexpected end of data"
# What csv says of a quote that is open at the end; it has no error of its own for that.
_OPEN_QUOTE = "unexpected end of data"
_IF_WHOLE = "if that row is complete, put a newline behind it; else "


def json_line_rows(path: Path) -> Iterator[Row]:
    """Read a file with one JSON object per line; blank lines are allowed.

    The last line may lack its newline: an object that closes is whole. A plain file that was cut
    exactly between two lines cannot be told from a shorter one.

    Args:
        path: The file, plain or gzip.

    Yields:
        One row per line, in the order of the file; the line's number, from 1, is its default id.

    Raises:
        CutFileError: The file was cut; behind the last line that is whole.
    """
    with open_bytes(path) as stream:
        lines = _Lines(stream, path)
        for line in lines:
            text = line.removeprefix(codecs.BOM_UTF8) if lines.number == 1 else line
            if text.strip():
                yield _json_line(text, lines)
        lines.finish()


def _json_line(line: bytes, lines: _Lines) -> Row:
    where, default_id = f"line {lines.number}", str(lines.number)
    start = lines.end - len(line)
    try:
        value = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        if error.reason == _HALF_A_LETTER and not lines.is_closed():
            raise lines.cut(where) from error
        return Row(where=where, default_id=default_id, problem=f"not UTF-8 text at byte {start + error.start}")
    except json.JSONDecodeError as error:
        if not lines.is_closed() and ends_inside(error):
            raise lines.cut(where) from error
        place = start + len(error.doc[: error.pos].encode())
        return Row(where=where, default_id=default_id, problem=f"not JSON at byte {place} ({error.msg})")
    except RecursionError:
        return Row(where=where, default_id=default_id, problem="JSON that is nested too deeply")
    except ValueError as error:  # a number of thousands of digits
        return Row(where=where, default_id=default_id, problem=f"not JSON that can be read ({error})")
    return as_row(value, where=where, default_id=default_id)


def table_rows(path: Path) -> Iterator[Row]:
    """Read a file of separated columns with a header line.

    The separator is the one of tab, comma and semicolon that the header holds most often.

    A last row without its newline may have lost the end of its last cell, so it counts as cut,
    unless that cell is a list written as text (as in PopQA): one that closes is whole. A plain
    file that was cut exactly between two rows cannot be told from a shorter one.

    Args:
        path: The file, plain or gzip.

    Yields:
        One row per record, all values as text; the record's number, from 1 and without the
        header, is its default id.

    Raises:
        CutFileError: The file was cut, or a quote is never closed; behind the last whole row.
        DataFileError: The file has no header line.
    """
    with open_bytes(path) as stream:
        lines = _Lines(stream, path)
        texts = _decoded(lines, path)
        header_line = next(texts, "")
        if not header_line.strip():
            lines.finish()
            raise DataFileError(f"{path}: has no header line", expected="column names in the first line")
        if not lines.is_closed():
            raise lines.cut("line 1, which has no newline behind it")
        separator = max("\t,;", key=header_line.count)
        header = next(csv.reader([header_line], delimiter=separator))
        # strict: an unclosed quote is an error, not a cell that swallows the rest of the file.
        reader = csv.reader(texts, delimiter=separator, strict=True)
        number = 0
        while True:
            where = f"line {reader.line_num + 2}"
            try:
                cells = next(reader)
            except StopIteration:
                break
            except csv.Error as error:
                if str(error) == _OPEN_QUOTE:
                    raise lines.cut(f"a quote that opens in the row of {where}") from error
                number += 1
                yield Row(where=where, default_id=str(number), problem=f"not a row of separated columns ({error})")
                continue
            if cells:
                number += 1
                if not lines.is_closed() and not (len(cells) == len(header) and is_written_list(cells[-1])):
                    raise lines.cut(f"the row of {where}, which has no newline behind it", unless=_IF_WHOLE)
                yield _table_row(cells, header, where=where, default_id=str(number))
        lines.finish()


def _table_row(cells: list[str], header: list[str], *, where: str, default_id: str) -> Row:
    if len(cells) != len(header):
        problem = f"{len(cells)} cells under {len(header)} column names"
        return Row(where=where, default_id=default_id, problem=problem)
    return Row(where=where, default_id=default_id, data=dict(zip(header, cells, strict=True)))


def _decoded(lines: _Lines, path: Path) -> Iterator[str]:
    for line in lines:
        try:
            yield line.decode("utf-8-sig" if lines.number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            if error.reason == _HALF_A_LETTER and not lines.is_closed():
                raise lines.cut(f"line {lines.number}") from error
            place = lines.end - len(line) + error.start
            raise DataFileError(
                f"{path}: line {lines.number}: not UTF-8 text at byte {place}", expected="text in UTF-8"
            ) from error


class _Lines:
    """The lines of a stream, and where the last one of them stands."""

    def __init__(self, stream: IO[bytes], path: Path) -> None:
        self._stream = stream
        self._path = path
        self.number = 0
        self.end = 0
        self._last = b""

    def __iter__(self) -> Iterator[bytes]:
        for line in self._stream:
            self.number += 1
            self.end += len(line)
            self._last = line
            yield line

    def is_closed(self) -> bool:
        """Say whether the last line has its newline."""
        return self._last.endswith((b"\n", b"\r"))

    def cut(self, inside: str, *, unless: str = "") -> CutFileError:
        """Build the error for a last line that is not whole."""
        return cut_file(self._path, self.end, inside=inside, compressed=is_compressed(self._stream), unless=unless)

    def finish(self) -> None:
        """Refuse a compressed file whose lines are whole, but not all there."""
        if was_cut(self._stream):
            raise self.cut("the gzip data")
