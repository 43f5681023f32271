"""A retriever that counts its calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig
from pydantic import Field


class CountingRetriever(BaseRetriever):
    """A LangChain retriever that returns what it is told to, and counts.

    Attributes:
        documents: What it returns: documents or texts, or a function of the query that makes them.
        queries: The queries in the order in which they came.
        batches: The number of queries in each call of ``batch`` or ``abatch``.
    """

    documents: Sequence[Document | str] | Callable[[str], Sequence[Document | str]] = Field(
        default=(), exclude=True, repr=False
    )
    queries: list[str] = Field(default_factory=list, exclude=True, repr=False)
    batches: list[int] = Field(default_factory=list, exclude=True, repr=False)

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        return self._find(query)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        return self._find(query)

    def batch(
        self,
        inputs: list[str],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[list[Document]]:
        """Search for several queries.

        Args:
            inputs: The queries.
            config: LangChain's config, or one for each.
            return_exceptions: Whether a query that fails yields its exception.
            **kwargs: Passed on.

        Returns:
            The documents for each.
        """
        self.batches.append(len(inputs))
        return super().batch(inputs, config, return_exceptions=return_exceptions, **kwargs)

    async def abatch(
        self,
        inputs: list[str],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[list[Document]]:
        """Search for several queries.

        Args:
            inputs: The queries.
            config: LangChain's config, or one for each.
            return_exceptions: Whether a query that fails yields its exception.
            **kwargs: Passed on.

        Returns:
            The documents for each.
        """
        self.batches.append(len(inputs))
        return await super().abatch(inputs, config, return_exceptions=return_exceptions, **kwargs)

    def _find(self, query: str) -> list[Document]:
        self.queries.append(query)
        found = self.documents(query) if callable(self.documents) else self.documents
        return [Document(page_content=item) if isinstance(item, str) else item for item in found]
