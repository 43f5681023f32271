"""Replayed passages: a retriever that returns what some other retriever found before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, Self, get_args

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.records import Question

PassageSource = Literal["given", "gold"]


class GivenPassagesRetriever(BaseRetriever):
    """Returns the passages that belong to a question, by the text of the question.

    Attributes:
        passages: Passages by question, best first.
        k: The most passages a question; ``None`` for all.
    """

    passages: Mapping[str, Sequence[Document]]
    k: int | None = None

    @classmethod
    def from_questions(
        cls, questions: Iterable[Question], *, source: PassageSource = "given", k: int | None = None
    ) -> Self:
        """Take the passages out of a data set.

        Args:
            questions: The questions. Of two with the same text, the first that has passages counts.
            source: ``"given"`` for what a retriever found, ``"gold"`` for the passage with the answer.
            k: The most passages a question; ``None`` for all.

        Returns:
            The retriever.

        Raises:
            InvalidInputError: If the source is unknown.
        """
        if source not in get_args(PassageSource):
            raise InvalidInputError(f"source is {source!r}", expected=f"one of {get_args(PassageSource)}")
        passages: dict[str, list[Document]] = {}
        for question in questions:
            gold = [] if question.gold_passage is None else [question.gold_passage]
            found = gold if source == "gold" else list(question.given_passages)
            if found:
                passages.setdefault(question.text, found)
        return cls(passages=passages, k=k)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        limit = self.k if k is None else k
        if limit is not None and limit < 1:
            raise InvalidInputError(f"k is {limit!r}", expected="a whole number of 1 or more, or None for all")
        # Copies: what a chain writes into a document must not come back with the next question.
        return [document.model_copy(deep=True) for document in self.passages.get(query, ())][:limit]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: object, k: int | None = None
    ) -> list[Document]:
        return self._get_relevant_documents(query, run_manager=run_manager, k=k)  # type: ignore[arg-type]
