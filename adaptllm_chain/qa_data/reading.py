"""Reading one file of questions."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Literal

from adaptllm_chain.errors import DataFileError, InvalidInputError
from adaptllm_chain.qa_data.columns import check_columns, parse_columns
from adaptllm_chain.qa_data.formats import FORMATS, Format, find_format
from adaptllm_chain.qa_data.report import ReadReport
from adaptllm_chain.qa_data.rows import Row, RowProblem, UnanswerableRow
from adaptllm_chain.qa_data.sniffing import sniff_format
from adaptllm_chain.records import Question

OnProblem = Literal["raise", "skip"]

_log = logging.getLogger(__name__)


def read_questions(
    path: str | Path,
    format: str = "auto",  # noqa: A002 - the word that callers look for
    *,
    columns: Mapping[str, str] | None = None,
    on_bad_row: OnProblem = "raise",
    on_unanswerable: OnProblem = "raise",
    report: ReadReport | None = None,
) -> Iterator[Question]:
    """Read the questions of one file, one after the other.

    Rows that share an identifier are refused as broken, because results are joined by it; formats
    without identifiers use the row's key or number, so there it cannot happen.

    Args:
        path: The file, plain or gzip.
        format: A name in ``FORMATS``, or ``"auto"`` to look at the content.
        columns: For ``jsonl``, ``json`` and ``csv``: from ``question``, ``answers``, ``id``,
            ``gold_passage``, ``title``, ``popularity``, ``relation`` to the file's own columns.
        on_bad_row: What to do with a row that cannot be used: ``"raise"`` or ``"skip"``. A file
            that breaks as a whole, such as JSON that was cut, is refused either way.
        on_unanswerable: The same for SQuAD v2's impossible questions.
        report: Counts what was read and what was skipped.

    Returns:
        An iterator of the questions, in the order of the file. It holds one row at a time, except
        for ``squad``, which is read at once.

    Raises:
        DataFileError: At once if there is no such file or its format cannot be told; while
            iterating if a row is broken or there is no question at all. The message names the
            file, the row, and what is missing.
        InvalidInputError: An argument is not one of its choices.
    """
    path = Path(path)
    for name, choice in (("on_bad_row", on_bad_row), ("on_unanswerable", on_unanswerable)):
        if choice not in ("raise", "skip"):
            raise InvalidInputError(f"{name} is {choice!r}", expected="'raise' or 'skip'")
    if columns is not None:
        check_columns(columns)
    if format != "auto":
        find_format(format)
    if not path.is_file():
        raise DataFileError(f"{path}: there is no such file", expected="a file of questions")
    chosen = find_format(sniff_format(path, generic=columns is not None) if format == "auto" else format)
    if columns is not None:
        chosen = _with_columns(chosen, format, columns)
    counts = report if report is not None else ReadReport()
    return _read(path, chosen, on_bad_row=on_bad_row, on_unanswerable=on_unanswerable, report=counts)


def _with_columns(chosen: Format, name: str, columns: Mapping[str, str]) -> Format:
    if not chosen.takes_columns:
        takers = ", ".join(name for name, known in FORMATS.items() if known.takes_columns)
        raise InvalidInputError(f"the format {name!r} has its own columns", expected=f"columns only with {takers}")
    return Format(chosen.rows, partial(parse_columns, columns=columns), chosen.description, takes_columns=True)


def _read(
    path: Path, chosen: Format, *, on_bad_row: OnProblem, on_unanswerable: OnProblem, report: ReadReport
) -> Iterator[Question]:
    # A report may be shared by several files, so this file's own counts are differences.
    questions_before, skipped_before = report.questions, report.skipped
    seen: set[str] = set()
    for row in chosen.rows(path):
        try:
            question = _question(row, chosen, seen)
        except UnanswerableRow as problem:
            if on_unanswerable == "raise":
                raise _bad_row(path, row, problem, 'on_unanswerable="skip" leaves such questions out') from None
            report.unanswerable += 1
        except RowProblem as problem:
            error = _bad_row(path, row, problem, 'on_bad_row="skip" leaves such rows out and counts them')
            if on_bad_row == "raise":
                raise error from None
            report.add_skipped(error.problem)
        else:
            report.questions += 1
            yield question
    skipped = report.skipped - skipped_before
    if skipped:
        _log.warning("%s: skipped %d broken rows", path, skipped)
    if report.questions == questions_before:
        raise DataFileError(
            f"{path}: holds no usable question ({skipped} broken rows)", expected="at least one question"
        )


def _question(row: Row, chosen: Format, seen: set[str]) -> Question:
    if row.problem is not None:
        raise RowProblem(row.problem)
    question = chosen.parse(row)
    if question.id in seen:
        raise RowProblem(f"the id {question.id!r} occurs a second time")
    seen.add(question.id)
    return question


def _bad_row(path: Path, row: Row, problem: RowProblem, hint: str) -> DataFileError:
    return DataFileError(
        f"{path}: {row.where}: {problem}", expected="a question and at least one answer that is not empty", hint=hint
    )
