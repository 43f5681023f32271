"""SQuAD v1.1 and files in its format, such as XQuAD (Rajpurkar et al. 2016)."""

from __future__ import annotations

from adaptllm_chain.qa_data.fields import answers_field, passage, text_field, without
from adaptllm_chain.qa_data.rows import Row, RowProblem, UnanswerableRow
from adaptllm_chain.records import Question

_USED = ("id", "question", "answers", "context", "title", "is_impossible")


def parse_squad(row: Row) -> Question:
    """Read one question of a SQuAD file; its paragraph is the gold passage.

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
    answers = data.get("answers")
    if not isinstance(answers, list) or not all(isinstance(answer, dict) for answer in answers):
        raise RowProblem("'answers' is not a list of objects with 'text'")
    return Question(
        id=text_field(data, "id"),
        text=text,
        answers=answers_field({"answers": [answer.get("text") for answer in answers]}, "answers"),
        gold_passage=passage(text_field(data, "context"), title=data.get("title")),
        metadata=without(data, _USED),
    )
