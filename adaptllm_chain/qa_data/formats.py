"""The table of file formats. A new one is a parser and a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.qa_data.authors import parse_authors
from adaptllm_chain.qa_data.columns import parse_columns
from adaptllm_chain.qa_data.dpr import parse_dpr
from adaptllm_chain.qa_data.json_sources import json_rows, squad_rows
from adaptllm_chain.qa_data.line_sources import json_line_rows, table_rows
from adaptllm_chain.qa_data.natural_questions import parse_nq_open, parse_nq_open_oracle
from adaptllm_chain.qa_data.popqa import parse_popqa
from adaptllm_chain.qa_data.rows import Row, RowSource
from adaptllm_chain.qa_data.squad import parse_squad
from adaptllm_chain.records import Question


@dataclass(frozen=True, slots=True)
class Format:
    """How one kind of file becomes questions.

    Attributes:
        rows: Cuts the file into rows.
        parse: Makes a question of a row, or raises ``RowProblem``.
        description: What such a file looks like, in a few words.
        takes_columns: Whether a column map can be given.
    """

    rows: RowSource
    parse: Callable[[Row], Question]
    description: str
    takes_columns: bool = False


FORMATS: Mapping[str, Format] = {
    "authors": Format(json_rows, parse_authors, "Adapt-LLM's JSON: {id: {question, possible_answers, ...}}"),
    "nq_open": Format(json_line_rows, parse_nq_open, "Google's NQ-open lines: question, answer"),
    "nq_open_oracle": Format(json_line_rows, parse_nq_open_oracle, "NQ-open lines with question, answers, ctxs"),
    "dpr": Format(json_rows, parse_dpr, "DPR's JSON list: question, answers, positive_ctxs or ctxs"),
    "squad": Format(squad_rows, parse_squad, "SQuAD's JSON: data, paragraphs, qas"),
    "popqa": Format(table_rows, parse_popqa, "PopQA's TSV: question, possible_answers, prop, s_pop"),
    "jsonl": Format(json_line_rows, parse_columns, "any JSON lines: question, answers", takes_columns=True),
    "json": Format(json_rows, parse_columns, "any JSON list or object of rows", takes_columns=True),
    "csv": Format(table_rows, parse_columns, "any table with a header: tab, comma, semicolon", takes_columns=True),
}
"""Every format by the name that ``read_questions`` takes."""


def find_format(name: str) -> Format:
    """Look a format up.

    Args:
        name: One of ``FORMATS``.

    Returns:
        The format.

    Raises:
        InvalidInputError: There is none of that name.
    """
    if name not in FORMATS:
        raise InvalidInputError(f"unknown format {name!r}", expected=f"auto, {', '.join(FORMATS)}")
    return FORMATS[name]
