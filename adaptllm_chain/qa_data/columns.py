"""Files of the user's own, with a map from our names to theirs."""

from __future__ import annotations

from collections.abc import Mapping

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.qa_data.fields import answers_field, number_field, passage, text_field, without
from adaptllm_chain.qa_data.rows import Row
from adaptllm_chain.records import Question

DEFAULT_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "id": ("id",),
    "question": ("question",),
    "answers": ("answers", "answer", "possible_answers"),
    "gold_passage": ("gold_passage", "passage_text", "context"),
    "title": ("title", "passage_title"),
    "popularity": ("popularity", "s_pop"),
    "relation": ("relation", "prop"),
}
"""Which columns a part of a question is looked for in, the first that is there."""


def check_columns(columns: Mapping[str, str]) -> None:
    """Refuse a column map with a part that no question has.

    Args:
        columns: From the parts of a question to the file's columns.

    Raises:
        InvalidInputError: A key is unknown.
    """
    unknown = sorted(set(columns) - set(DEFAULT_COLUMNS))
    if unknown:
        raise InvalidInputError(
            f"columns names {unknown}, which no question has",
            expected=f"a map from {', '.join(DEFAULT_COLUMNS)} to the file's own column names",
            hint='columns={"question": "q", "answers": "gold"}',
        )


def parse_columns(row: Row, columns: Mapping[str, str] | None = None) -> Question:
    """Read one row of a user's file.

    Args:
        row: The row.
        columns: From the parts of a question to the file's columns; what is not in it is looked
            for under the names of ``DEFAULT_COLUMNS``.

    Returns:
        The question; columns that were not used stay in the metadata.
    """
    given = columns or {}
    data = row.data
    names = {part: (given[part],) if part in given else defaults for part, defaults in DEFAULT_COLUMNS.items()}
    chosen = {part: next((name for name in names[part] if name in data), names[part][0]) for part in names}
    # An id may be a number in JSON, and 0 is one.
    identifier = data.get(chosen["id"])
    relation = data.get(chosen["relation"])
    return Question(
        id=row.default_id if identifier is None or identifier == "" else str(identifier),
        text=text_field(data, chosen["question"]),
        answers=answers_field(data, *names["answers"]),
        gold_passage=passage(data.get(chosen["gold_passage"]), title=data.get(chosen["title"])),
        popularity=number_field(data, chosen["popularity"]),
        relation=str(relation) if relation else None,
        metadata=without(data, chosen.values()),
    )
