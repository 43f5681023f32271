"""Reading several files as one set of questions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.qa_data.cut_files import OnCut
from adaptllm_chain.qa_data.reading import OnProblem, read_questions
from adaptllm_chain.qa_data.report import ReadReport
from adaptllm_chain.records import Question

_TRAILING = re.compile(r"[\s?]+\Z")


def question_key(text: str) -> str:
    """Reduce a question to what makes it the same as another one.

    Args:
        text: The question as some source spells it.

    Returns:
        The text case-folded, with single spaces and without question marks at its end.
    """
    return " ".join(_TRAILING.sub("", text.casefold()).split())


def read_many(
    paths: Iterable[str | Path],
    format: str = "auto",  # noqa: A002 - the word that callers look for
    *,
    deduplicate: bool = True,
    columns: Mapping[str, str] | None = None,
    on_bad_row: OnProblem = "raise",
    on_unanswerable: OnProblem = "raise",
    on_cut: OnCut = "raise",
    report: ReadReport | None = None,
) -> list[Question]:
    """Read several files in order.

    Of questions that ask the same, the first stays, unless only a later one has a gold passage:
    then that one takes its place. Answers are not merged: sources disagree on what they accept.
    An identifier that an earlier file has used gets its file's name in front.

    Args:
        paths: The files, or names as ``read_questions`` takes them.
        format: A name in ``FORMATS`` for all of them, or ``"auto"`` to look at each.
        deduplicate: Whether questions that are equal by ``question_key`` are kept once, also
            within a file.
        columns: As for ``read_questions``.
        on_bad_row: As for ``read_questions``.
        on_unanswerable: As for ``read_questions``.
        on_cut: As for ``read_questions``.
        report: Counts what was read, skipped and dropped as a duplicate, over all files.

    Returns:
        The questions, all in memory: which one stays is known only at the end.

    Raises:
        InvalidInputError: ``paths`` is a single path or empty, or an argument is not one of its
            choices.
    """
    files = [paths] if isinstance(paths, str | Path) else list(paths)
    if isinstance(paths, str | Path) or not files:
        raise InvalidInputError(f"paths is {paths!r}", expected="a list of files", hint=f"read_many({files!r})")
    counts = report if report is not None else ReadReport()
    kept: list[Question] = []
    place_of: dict[str, int] = {}
    ids: set[str] = set()
    for path in files:
        for question in read_questions(
            path,
            format,
            columns=columns,
            on_bad_row=on_bad_row,
            on_unanswerable=on_unanswerable,
            on_cut=on_cut,
            report=counts,
        ):
            unique = _with_unique_id(question, Path(path), ids)
            place = place_of.setdefault(question_key(question.text), len(kept)) if deduplicate else len(kept)
            if place == len(kept):
                kept.append(unique)
            else:
                counts.duplicates += 1
                if kept[place].gold_passage is None and unique.gold_passage is not None:
                    kept[place] = unique
            ids.add(unique.id)
    return kept


def _with_unique_id(question: Question, path: Path, taken: set[str]) -> Question:
    if question.id not in taken:
        return question
    candidate = f"{path.name}:{question.id}"
    number = 1
    # The same file can be given twice, or two of the same name in different folders.
    while candidate in taken:
        number += 1
        candidate = f"{path.name}:{question.id}#{number}"
    return replace(question, id=candidate)
