"""A retriever that answers a batch of questions with one call of the embedder and one search."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.callbacks.manager import AsyncCallbackManager, CallbackManager
from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import get_config_list, run_in_executor
from langchain_core.vectorstores import VectorStore, VectorStoreRetriever

from adaptllm_chain.errors import InvalidInputError

ScoredDocuments = list[tuple[Document, float]]


class BatchSearchStore(VectorStore, ABC):
    """A vector store that searches for many queries at once."""

    @abstractmethod
    def search_batch(self, queries: Sequence[str], k: int = 4) -> list[ScoredDocuments]:
        """Search for many queries at once.

        Args:
            queries: The queries.
            k: Passages a query, at most.

        Returns:
            For each query, passages with scores, best first.
        """


class PassageRetriever(VectorStoreRetriever):
    """LangChain's vector store retriever, with ``k`` of its own and batches that are searched as one.

    ``k`` is taken from the call (``invoke(query, k=2)``), else from ``search_kwargs``, else from this field.
    Every query of a batch keeps its own run, with its own config.

    Attributes:
        k: Passages a query, at most.
        with_scores: Whether to put the score into ``metadata["score"]`` of the documents that are returned.
    """

    k: int = 4
    with_scores: bool = False

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        if self._searches_in_batches(kwargs):
            return self._search([query], kwargs)[0]
        return super()._get_relevant_documents(query, run_manager=run_manager, **{"k": self._k(kwargs), **kwargs})

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        if self._searches_in_batches(kwargs):
            return (await run_in_executor(None, self._search, [query], kwargs))[0]
        return await super()._aget_relevant_documents(
            query, run_manager=run_manager, **{"k": self._k(kwargs), **kwargs}
        )

    def batch(
        self,
        inputs: list[str],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[list[Document]]:
        """Retrieve for many queries with one call of the embedder and one search.

        Args:
            inputs: The queries.
            config: One config for all, or one a query.
            return_exceptions: Whether to return the error of a query in its place instead of raising the first.
            **kwargs: ``k``, for this call. Anything else, or a ``search_type`` other than ``"similarity"``,
                makes the queries be searched one by one.

        Returns:
            Passages, best first, for each query.

        Raises:
            Exception: What the embedder or the index raised, unless exceptions are returned.
        """
        if not inputs or not self._searches_in_batches(kwargs):
            return super().batch(inputs, config, return_exceptions=return_exceptions, **kwargs)
        runs = [
            self._start(query, one, kwargs)
            for query, one in zip(inputs, get_config_list(config, len(inputs)), strict=True)
        ]
        try:
            results = self._search_each(inputs, kwargs, isolate=return_exceptions)
        except BaseException as error:
            for run in runs:
                run.on_retriever_error(error)
            raise
        for run, result in zip(runs, results, strict=True):
            if isinstance(result, Exception):
                run.on_retriever_error(result)
            else:
                run.on_retriever_end(result)
        return _returned(results, return_exceptions=return_exceptions)

    async def abatch(
        self,
        inputs: list[str],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[list[Document]]:
        """Retrieve for many queries with one call of the embedder and one search, in a thread.

        Args:
            inputs: The queries.
            config: One config for all, or one a query.
            return_exceptions: Whether to return the error of a query in its place instead of raising the first.
            **kwargs: As for ``batch``.

        Returns:
            Passages, best first, for each query.

        Raises:
            Exception: What the embedder or the index raised, unless exceptions are returned.
        """
        if not inputs or not self._searches_in_batches(kwargs):
            return await super().abatch(inputs, config, return_exceptions=return_exceptions, **kwargs)
        configs = get_config_list(config, len(inputs))
        runs = await asyncio.gather(
            *(self._astart(query, one, kwargs) for query, one in zip(inputs, configs, strict=True))
        )
        try:
            results = await run_in_executor(None, self._search_each, inputs, kwargs, isolate=return_exceptions)
        except BaseException as error:
            await asyncio.gather(*(run.on_retriever_error(error) for run in runs))
            raise
        await asyncio.gather(
            *(
                run.on_retriever_error(result) if isinstance(result, Exception) else run.on_retriever_end(result)
                for run, result in zip(runs, results, strict=True)
            )
        )
        return _returned(results, return_exceptions=return_exceptions)

    def _start(self, query: str, config: RunnableConfig, kwargs: dict[str, Any]) -> CallbackManagerForRetrieverRun:
        """Begin the run of one query, as ``BaseRetriever.invoke`` does."""
        manager = CallbackManager.configure(config.get("callbacks"), None, **self._manager_options(config, kwargs))
        return manager.on_retriever_start(
            None, query, name=config.get("run_name") or self.get_name(), run_id=config.get("run_id")
        )

    async def _astart(
        self, query: str, config: RunnableConfig, kwargs: dict[str, Any]
    ) -> AsyncCallbackManagerForRetrieverRun:
        manager = AsyncCallbackManager.configure(config.get("callbacks"), None, **self._manager_options(config, kwargs))
        return await manager.on_retriever_start(
            None, query, name=config.get("run_name") or self.get_name(), run_id=config.get("run_id")
        )

    def _manager_options(self, config: RunnableConfig, kwargs: dict[str, Any]) -> dict[str, Any]:
        return {
            "inheritable_tags": config.get("tags"),
            "local_tags": self.tags,
            "inheritable_metadata": {**(config.get("metadata") or {}), **self._get_ls_params(**kwargs)},
            "local_metadata": self.metadata,
        }

    def _k(self, kwargs: dict[str, Any]) -> int:
        k: int = {"k": self.k, **self.search_kwargs, **kwargs}["k"]
        return k

    def _searches_in_batches(self, kwargs: dict[str, Any]) -> bool:
        only_k = {*self.search_kwargs, *kwargs} <= {"k"}
        return only_k and self.search_type == "similarity" and isinstance(self.vectorstore, BatchSearchStore)

    def _search(self, queries: list[str], kwargs: dict[str, Any]) -> list[list[Document]]:
        store = self.vectorstore
        assert isinstance(store, BatchSearchStore)
        found = store.search_batch(queries, self._k(kwargs))
        if self.with_scores:
            for scored in found:
                for document, score in scored:
                    document.metadata["score"] = score
        return [[document for document, _ in scored] for scored in found]

    def _search_each(
        self, queries: list[str], kwargs: dict[str, Any], *, isolate: bool
    ) -> list[list[Document] | Exception]:
        """Search for the queries that are text as one; where that fails and each may fail alone, one by one."""
        results: list[list[Document] | Exception] = [_not_text(query) for query in queries]
        good = [place for place, query in enumerate(queries) if isinstance(query, str)]
        try:
            found: list[list[Document] | Exception] = [*self._search([queries[place] for place in good], kwargs)]
        except Exception:
            if not isolate:
                raise
            found = [self._search_alone(queries[place], kwargs) for place in good]
        for place, result in zip(good, found, strict=True):
            results[place] = result
        return results

    def _search_alone(self, query: str, kwargs: dict[str, Any]) -> list[Document] | Exception:
        try:
            return self._search([query], kwargs)[0]
        except Exception as error:
            return error


def _not_text(query: object) -> Exception:
    return InvalidInputError(f"a query is {query!r}", expected="text")


def _returned(results: list[list[Document] | Exception], *, return_exceptions: bool) -> list[list[Document]]:
    """Raise the first error, or return errors in their places, which LangChain's type leaves out."""
    if not return_exceptions:
        for result in results:
            if isinstance(result, Exception):
                raise result
    returned: list[Any] = results
    return returned
