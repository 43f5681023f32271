"""Natural Questions, open domain: Google's own lines, and lines with one gold passage."""

from __future__ import annotations

from adaptllm_chain.qa_data.fields import answers_field, context_passages, text_field, without
from adaptllm_chain.qa_data.rows import Row
from adaptllm_chain.records import Question


def parse_nq_open(row: Row) -> Question:
    """Read one line of Google's NQ-open: ``{"question": ..., "answer": [...]}``.

    Args:
        row: The line.

    Returns:
        The question, without passages.
    """
    return Question(
        id=row.default_id,
        text=text_field(row.data, "question"),
        answers=answers_field(row.data, "answer"),
        metadata=without(row.data, ("question", "answer")),
    )


def parse_nq_open_oracle(row: Row) -> Question:
    """Read one line of lost-in-the-middle's NQ-open: ``question``, ``answers``, ``ctxs``.

    The gold passage is the first of ``ctxs`` with ``isgold``, else the first with ``hasanswer``.
    The others were found by a retriever and stay given passages; a passage with ``isgold`` was put
    in by whoever made the file, so it is not among them.

    Args:
        row: The line.

    Returns:
        The question.
    """
    contexts = context_passages(row.data, "ctxs")
    marked = [document for context, document in contexts if context.get("isgold")]
    holding = [document for context, document in contexts if context.get("hasanswer") or context.get("has_answer")]
    return Question(
        id=row.default_id,
        text=text_field(row.data, "question"),
        answers=answers_field(row.data, "answers"),
        gold_passage=next(iter(marked or holding), None),
        given_passages=tuple(document for context, document in contexts if not context.get("isgold")),
        metadata=without(row.data, ("question", "answers", "ctxs")),
    )
