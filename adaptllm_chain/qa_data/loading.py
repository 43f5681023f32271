"""Loading one split of a declared data set as a whole, checked against its declaration."""

from __future__ import annotations

from pathlib import Path

from adaptllm_chain.qa_data.catalogue import HUB, find_split
from adaptllm_chain.qa_data.cut_files import OnCut
from adaptllm_chain.qa_data.formats import find_format
from adaptllm_chain.qa_data.hub import check_size, hub_rows
from adaptllm_chain.qa_data.reading import OnProblem, questions_of, read_questions
from adaptllm_chain.qa_data.report import ReadReport
from adaptllm_chain.records import Question


def load_data_set(
    name: str,
    split: str | None = None,
    *,
    path: str | Path | None = None,
    check: bool = True,
    on_bad_row: OnProblem = "raise",
    on_cut: OnCut = "raise",
    report: ReadReport | None = None,
) -> list[Question]:
    """Load one split of a declared data set.

    Args:
        name: One of ``DATASETS``: ``nq``, ``nq_open``, ``squad``, ``popqa``.
        split: One of its splits; may be left out if it has only one.
        path: The upstream file on this machine, plain or gzip; by default the data set comes from
            huggingface.co, at the declared revision.
        check: Whether to refuse another number of rows than the declared one. Rows that are
            skipped as broken count too; those behind a cut do not.
        on_bad_row: As for ``read_questions``.
        on_cut: As for ``read_questions``.
        report: As for ``read_questions``.

    Returns:
        The questions, all in memory, in the order of the source.

    Raises:
        DataFileError: The file or the hub does not give the data set as it is declared.
        MissingExtraError: The hub is asked for, and ``datasets`` is not installed.
        InvalidInputError: There is no such data set or split.
    """
    data_set, split = find_split(name, split)
    counts = report if report is not None else ReadReport()
    before = counts.rows
    if path is None:
        rows = hub_rows(data_set, split, check=check)
        parse = find_format(data_set.format).parse
        where = f"{HUB}{name}:{split}"
        found = questions_of(rows, parse, where=where, on_bad_row=on_bad_row, on_unanswerable="raise", report=counts)
        return list(found)
    questions = list(read_questions(path, data_set.format, on_bad_row=on_bad_row, on_cut=on_cut, report=counts))
    if check:
        check_size(data_set, split, counts.rows - before, where=str(path))
    return questions
