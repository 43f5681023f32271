"""Calling the retriever."""

from __future__ import annotations

from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable

from adaptllm_chain.chain.batched_calls import BatchedCall
from adaptllm_chain.chain.passage_count import with_k_per_query
from adaptllm_chain.chain.plan import Search
from adaptllm_chain.errors import InvalidInputError


def searching(retriever: Runnable[Any, Any]) -> BatchedCall[Search, list[Document]]:
    """Make the service that searches.

    Args:
        retriever: The retriever, as the user built it; how many passages it brings, a query's config may say.

    Returns:
        The service; its replies are lists of passages, and queries with the same ``k`` are one call.
    """
    return BatchedCall(
        with_k_per_query(retriever), "adaptllm:search", prepare=lambda search: search.query, read=_documents_of
    )


def _documents_of(found: Any) -> list[Document]:
    if isinstance(found, list | tuple) and all(isinstance(item, Document) for item in found):
        return list(found)
    raise InvalidInputError(
        f"the retriever returned {found!r:.80}",
        expected="a list of langchain_core.documents.Document",
        hint="a retriever takes the query as text; wrap yours in a function that returns Documents",
    )
