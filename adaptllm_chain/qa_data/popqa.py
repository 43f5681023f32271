"""PopQA's own table (Mallen et al. 2023, github.com/AlexTMallen/adaptive-retrieval)."""

from __future__ import annotations

from adaptllm_chain.qa_data.fields import answers_field, number_field, text_field, without
from adaptllm_chain.qa_data.rows import Row
from adaptllm_chain.records import Question

_USED = ("id", "question", "possible_answers", "prop", "s_pop")


def parse_popqa(row: Row) -> Question:
    """Read one line of PopQA's TSV.

    Args:
        row: The line; ``possible_answers`` is a JSON list in a string.

    Returns:
        The question; ``prop`` is its relation and ``s_pop`` (monthly page views of the subject)
        its popularity. The other columns stay in the metadata, as text.
    """
    data = row.data
    return Question(
        id=str(data.get("id") or row.default_id),
        text=text_field(data, "question"),
        answers=answers_field(data, "possible_answers"),
        popularity=number_field(data, "s_pop"),
        relation=data.get("prop") or None,
        metadata=without(data, _USED),
    )
