"""Reading the questions of one file, or of one split of a declared data set."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Literal

from adaptllm_chain.errors import DataFileError, InvalidInputError
from adaptllm_chain.qa_data.catalogue import HUB, split_of_name
from adaptllm_chain.qa_data.columns import check_columns, parse_columns
from adaptllm_chain.qa_data.cut_files import CutFileError, OnCut
from adaptllm_chain.qa_data.formats import FORMATS, find_format
from adaptllm_chain.qa_data.hub import hub_rows
from adaptllm_chain.qa_data.report import ReadReport
from adaptllm_chain.qa_data.rows import Row, RowProblem, UnanswerableRow
from adaptllm_chain.qa_data.sniffing import sniff_format
from adaptllm_chain.records import Question

OnProblem = Literal["raise", "skip"]

_Source = tuple[Iterator[Row], Callable[[Row], Question]]

_log = logging.getLogger(__name__)


def read_questions(
    path: str | Path,
    format: str = "auto",  # noqa: A002 - the word that callers look for
    *,
    columns: Mapping[str, str] | None = None,
    on_bad_row: OnProblem = "raise",
    on_unanswerable: OnProblem = "raise",
    on_cut: OnCut = "raise",
    report: ReadReport | None = None,
) -> Iterator[Question]:
    """Read the questions of one file, or of one split of a declared data set, one after the other.

    Rows that share an identifier are refused as broken, because results are joined by it; formats
    without identifiers use the row's key or number, so there it cannot happen.

    Args:
        path: The file, plain or gzip; or ``hub:NAME:SPLIT``, such as ``hub:squad:train``, for one
            of ``DATASETS`` from huggingface.co.
        format: A name in ``FORMATS``, or ``"auto"`` to look at the content.
        columns: For ``jsonl``, ``json`` and ``csv``: from ``question``, ``answers``, ``id``,
            ``gold_passage``, ``title``, ``popularity``, ``relation`` to the file's own columns.
        on_bad_row: What to do with a row that cannot be used: ``"raise"`` or ``"skip"``. A file
            that is not what it should be as a whole, such as wrong JSON, is refused either way.
        on_unanswerable: The same for SQuAD v2's impossible questions.
        on_cut: What to do with a file that ends in the middle: ``"raise"``, or ``"keep"`` for the
            questions before the cut that are whole.
        report: Counts what was read and what was skipped, and names the files that were cut.

    Returns:
        An iterator of the questions, in the order of the file. It holds one row at a time; of
        SQuAD, one article.

    Raises:
        DataFileError: At once if there is no such file, its format cannot be told, or the hub does
            not give the data set as it is declared; while iterating if a row is broken or there
            is no question at all. The message names the file, the row, and what is missing.
        CutFileError: The file ends in the middle; the message names the byte.
        MissingExtraError: The hub is asked for, and ``datasets`` is not installed.
        InvalidInputError: An argument is not one of its choices.
    """
    for name, choice, choices in (
        ("on_bad_row", on_bad_row, ("raise", "skip")),
        ("on_unanswerable", on_unanswerable, ("raise", "skip")),
        ("on_cut", on_cut, ("raise", "keep")),
    ):
        if choice not in choices:
            raise InvalidInputError(f"{name} is {choice!r}", expected=" or ".join(map(repr, choices)))
    if columns is not None:
        check_columns(columns)
    if format != "auto":
        find_format(format)
    counts = report if report is not None else ReadReport()
    if str(path).startswith(HUB):
        rows, parse = _on_hub(str(path), format, columns)
    else:
        rows, parse = _in_file(Path(path), format, columns, on_cut)
    return questions_of(
        _as_far_as_whole(rows, on_cut, counts),
        parse,
        where=path,
        on_bad_row=on_bad_row,
        on_unanswerable=on_unanswerable,
        report=counts,
    )


def _on_hub(name: str, format_name: str, columns: Mapping[str, str] | None) -> _Source:
    data_set, split = split_of_name(name)
    if format_name not in ("auto", data_set.format) or columns is not None:
        raise InvalidInputError(
            f"{name} has its own format and columns", expected="neither a format nor columns with it"
        )
    return hub_rows(data_set, split), find_format(data_set.format).parse


def _in_file(path: Path, format_name: str, columns: Mapping[str, str] | None, on_cut: OnCut) -> _Source:
    if not path.is_file():
        raise DataFileError(
            f"{path}: there is no such file", expected=f"a file of questions, or {HUB}NAME:SPLIT for a data set"
        )
    try:
        name = sniff_format(path, generic=columns is not None) if format_name == "auto" else format_name
    except CutFileError as error:
        if on_cut == "raise":
            raise
        raise DataFileError(f"{error.problem}; no question before that is whole", expected=error.expected) from error
    chosen = find_format(name)
    if columns is None:
        return chosen.rows(path), chosen.parse
    if not chosen.takes_columns:
        takers = ", ".join(name for name, known in FORMATS.items() if known.takes_columns)
        raise InvalidInputError(f"the format {name!r} has its own columns", expected=f"columns only with {takers}")
    return chosen.rows(path), partial(parse_columns, columns=columns)


def _as_far_as_whole(rows: Iterator[Row], on_cut: OnCut, report: ReadReport) -> Iterator[Row]:
    try:
        yield from rows
    except CutFileError as error:
        if on_cut == "raise":
            raise
        _log.warning("%s; kept what is whole", error.problem)
        report.cuts.append(error.problem)


def questions_of(
    rows: Iterator[Row],
    parse: Callable[[Row], Question],
    *,
    where: str | Path,
    on_bad_row: OnProblem,
    on_unanswerable: OnProblem,
    report: ReadReport,
) -> Iterator[Question]:
    """Make questions of rows.

    Args:
        rows: The rows.
        parse: Makes a question of a row.
        where: What the rows come from, for messages.
        on_bad_row: As for ``read_questions``.
        on_unanswerable: As for ``read_questions``.
        report: As for ``read_questions``.

    Yields:
        The questions, in the order of the rows.

    Raises:
        DataFileError: A row is broken, or there is no question at all.
    """
    # A report may be shared by several files, so this file's own counts are differences.
    questions_before, skipped_before = report.questions, report.skipped
    seen: set[str] = set()
    for row in rows:
        try:
            question = _question(row, parse, seen)
        except UnanswerableRow as problem:
            if on_unanswerable == "raise":
                raise _bad_row(where, row, problem, 'on_unanswerable="skip" leaves such questions out') from None
            report.unanswerable += 1
        except RowProblem as problem:
            error = _bad_row(where, row, problem, 'on_bad_row="skip" leaves such rows out and counts them')
            if on_bad_row == "raise":
                raise error from None
            report.add_skipped(error.problem)
        else:
            report.questions += 1
            yield question
    skipped = report.skipped - skipped_before
    if skipped:
        _log.warning("%s: skipped %d broken rows", where, skipped)
    if report.questions == questions_before:
        raise DataFileError(
            f"{where}: holds no usable question ({skipped} broken rows)", expected="at least one question"
        )


def _question(row: Row, parse: Callable[[Row], Question], seen: set[str]) -> Question:
    if row.problem is not None:
        raise RowProblem(row.problem)
    question = parse(row)
    if question.id in seen:
        raise RowProblem(f"the id {question.id!r} occurs a second time")
    seen.add(question.id)
    return question


def _bad_row(where: str | Path, row: Row, problem: RowProblem, hint: str) -> DataFileError:
    return DataFileError(
        f"{where}: {row.where}: {problem}", expected="a question and at least one answer that is not empty", hint=hint
    )
