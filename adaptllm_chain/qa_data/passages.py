"""The passages that question files bring along, as a collection to search in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from langchain_core.documents import Document

from adaptllm_chain.records import Question


def passages_of(questions: Iterable[Question]) -> Iterator[Document]:
    """Take the gold passages and those that were found before out of questions, each once.

    Scores are left out: they belong to a question, not to the passage.

    Args:
        questions: The questions.

    Yields:
        The passages, in the order of their first question; a text that comes twice with one title is one passage.
    """
    seen: set[tuple[str, str]] = set()
    for question in questions:
        gold = () if question.gold_passage is None else (question.gold_passage,)
        for passage in (*gold, *question.given_passages):
            title = str(passage.metadata.get("title") or "")
            key = (title, passage.page_content)
            if key not in seen:
                seen.add(key)
                yield Document(passage.page_content, metadata={"title": title} if title else {})
