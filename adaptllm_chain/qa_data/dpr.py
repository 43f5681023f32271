"""DPR's training files (Karpukhin et al. 2020, github.com/facebookresearch/DPR)."""

from __future__ import annotations

from adaptllm_chain.qa_data.fields import answers_field, context_passages, text_field, without
from adaptllm_chain.qa_data.rows import Row
from adaptllm_chain.records import Question

_USED = ("question", "answers", "positive_ctxs", "negative_ctxs", "hard_negative_ctxs", "ctxs")


def parse_dpr(row: Row) -> Question:
    """Read one element of DPR's biencoder list.

    The first of ``positive_ctxs`` is the gold passage; ``ctxs``, as in the files that DPR's and
    Contriever's retrievers write, are given passages. The negative passages are left out, and so
    are the other positive ones: they are 99 % of the file and nothing here trains a retriever.

    Args:
        row: The element.

    Returns:
        The question; without a gold passage when DPR found none.
    """
    positive = [document for _, document in context_passages(row.data, "positive_ctxs")]
    return Question(
        id=row.default_id,
        text=text_field(row.data, "question"),
        answers=answers_field(row.data, "answers"),
        gold_passage=next(iter(positive), None),
        given_passages=tuple(document for _, document in context_passages(row.data, "ctxs")),
        metadata=without(row.data, _USED),
    )
