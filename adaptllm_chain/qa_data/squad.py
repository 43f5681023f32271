"""SQuAD v1.1 and files in its format, such as XQuAD (Rajpurkar et al. 2016)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adaptllm_chain.qa_data.fields import answers_field, passage, text_field, without
from adaptllm_chain.qa_data.rows import Row, RowProblem, UnanswerableRow
from adaptllm_chain.records import Question

_USED = ("id", "question", "answers", "context", "title", "is_impossible")


def parse_squad(row: Row) -> Question:
    """Read one question of a SQuAD file, or of SQuAD on the hub; its paragraph is the gold passage.

    Args:
        row: The question, with the paragraph's ``context`` and the article's ``title``.

    Returns:
        The question; answers that several annotators gave are kept once.

    Raises:
        RowProblem: Something is missing.
        UnanswerableRow: SQuAD v2 marks the question as impossible.
    """
    data = row.data
    text = text_field(data, "question")
    if data.get("is_impossible"):
        raise UnanswerableRow("SQuAD v2 marks the question as impossible: it has no answer")
    return Question(
        id=text_field(data, "id"),
        text=text,
        answers=answers_field({"answers": _answer_texts(data.get("answers"))}, "answers"),
        gold_passage=passage(text_field(data, "context"), title=data.get("title")),
        metadata=without(data, _USED),
    )


def _answer_texts(answers: object) -> list[Any]:
    # The hub has one object of lists, SQuAD's own files a list of objects.
    if isinstance(answers, Mapping) and isinstance(answers.get("text"), list):
        return list(answers["text"])
    if isinstance(answers, list) and all(isinstance(answer, Mapping) for answer in answers):
        return [answer.get("text") for answer in answers]
    raise RowProblem("'answers' is not a list of objects with 'text'")
