"""The files of the paper's authors: github.com/tLabruna/Adapt-LLM, ``base_files`` and ``evaluate_format``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.documents import Document

from adaptllm_chain.qa_data.fields import answers_field, number_field, passage, text_field, without
from adaptllm_chain.qa_data.popqa import relation_of
from adaptllm_chain.qa_data.rows import Row
from adaptllm_chain.records import Question

# Their nq_dev file spells the score's name without the second "e".
_SCORES = ("contriever_score", "contriver_score")
_USED = ("question", "possible_answers", "passage_text", "passage_title", "gold_passage", "contriever_passage", "s_pop")


def parse_authors(row: Row) -> Question:
    """Read one member of an Adapt-LLM file: ``{"<id>": {"question": ..., ...}}``.

    The gold passage is ``passage_text`` with ``passage_title``, or ``gold_passage``, whose title is
    only the beginning of its text. Contriever's passage comes as a given passage with its
    similarity in ``metadata["score"]``. ``prediction`` and ``needs_retrieve`` (Llama-2-7B's
    zero-shot answer and the label that Algorithm 1 made of it) stay in the metadata.

    Args:
        row: The member.

    Returns:
        The question; ``s_pop`` is its popularity, and then its wording tells PopQA's relation.
    """
    data = row.data
    text = text_field(data, "question")
    popularity = number_field(data, "s_pop")
    return Question(
        id=row.default_id,
        text=text,
        answers=answers_field(data, "possible_answers"),
        gold_passage=passage(data.get("passage_text"), title=data.get("passage_title"))
        or passage(data.get("gold_passage")),
        given_passages=_found(data),
        popularity=popularity,
        # Only PopQA has popularities; the authors' copy of it lacks the relation.
        relation=None if popularity is None else relation_of(text),
        metadata=without(data, (*_USED, *_SCORES)),
    )


def _found(data: Mapping[str, Any]) -> tuple[Document, ...]:
    texts = data.get("contriever_passage")
    if isinstance(texts, list):
        return tuple(document for text in texts if (document := passage(text)))
    document = passage(texts, score=number_field(data, *_SCORES))
    return (document,) if document else ()
