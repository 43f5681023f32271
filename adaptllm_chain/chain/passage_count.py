"""Searching for as many passages as each question's own call asks for."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.config import get_config_list

from adaptllm_chain.chain.call_settings import k_of_call
from adaptllm_chain.chain.wrappers import innermost
from adaptllm_chain.errors import InvalidInputError


class KPerQuery(Runnable[str, list[Document]]):
    """A retriever that takes ``k`` out of each query's config; queries with the same ``k`` stay one batch.

    It has no run of its own: those in traces are the retriever's.

    Args:
        retriever: The retriever.
    """

    def __init__(self, retriever: Runnable[Any, Any]) -> None:
        self._retriever = retriever

    def invoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> list[Document]:  # noqa: A002
        """Search for one query.

        Args:
            input: The query.
            config: LangChain's config.
            **kwargs: Passed on.

        Returns:
            The passages.
        """
        return self.batch([input], config, **kwargs)[0]

    async def ainvoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> list[Document]:  # noqa: A002
        """Search for one query.

        Args:
            input: The query.
            config: LangChain's config.
            **kwargs: Passed on.

        Returns:
            The passages.
        """
        return (await self.abatch([input], config, **kwargs))[0]

    def batch(
        self,
        inputs: list[str],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[list[Document]]:
        """Search for several queries, in one batch for each ``k``.

        Args:
            inputs: The queries.
            config: LangChain's config, or one for each.
            return_exceptions: Whether a query that fails yields its exception.
            **kwargs: Passed on.

        Returns:
            The passages for each.
        """
        found: dict[int, list[Document]] = {}
        for places, queries, own, given in self._groups(inputs, config):
            some = self._retriever.batch(queries, own, return_exceptions=return_exceptions, **given, **kwargs)
            found.update(zip(places, some, strict=True))
        return [found[place] for place in range(len(inputs))]

    async def abatch(
        self,
        inputs: list[str],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[list[Document]]:
        """Search for several queries, in one batch for each ``k``.

        Args:
            inputs: The queries.
            config: LangChain's config, or one for each.
            return_exceptions: Whether a query that fails yields its exception.
            **kwargs: Passed on.

        Returns:
            The passages for each.
        """
        found: dict[int, list[Document]] = {}
        for places, queries, own, given in self._groups(inputs, config):
            some = await self._retriever.abatch(queries, own, return_exceptions=return_exceptions, **given, **kwargs)
            found.update(zip(places, some, strict=True))
        return [found[place] for place in range(len(inputs))]

    def _groups(
        self, queries: Sequence[str], config: RunnableConfig | list[RunnableConfig] | None
    ) -> Iterator[tuple[list[int], list[str], list[RunnableConfig], dict[str, int]]]:
        """Put together what has the same ``k``: places, queries, configs, and the argument."""
        configs = get_config_list(config, len(queries))
        groups: dict[int | None, list[int]] = defaultdict(list)
        for place, own in enumerate(configs):
            groups[k_of_call(own)].append(place)
        for k, places in groups.items():
            given = {} if k is None else {"k": k}
            yield places, [queries[place] for place in places], [configs[place] for place in places], given


def with_k_per_query(retriever: Runnable[Any, Any]) -> Runnable[Any, Any]:
    """Let each query's config say how many passages it wants.

    Args:
        retriever: The retriever, wrapped or not.

    Returns:
        The same retriever if it declares a configurable ``k``, which LangChain then sets; otherwise one around it.
    """
    return retriever if _declares_k(retriever) else KPerQuery(retriever)


def takes_k(retriever: Runnable[Any, Any]) -> bool:
    """Say whether a retriever can be told how many passages to bring.

    Args:
        retriever: The retriever, wrapped or not.

    Returns:
        Whether it takes ``k``, as an argument or in its config.
    """
    return _declares_k(retriever) or _search_takes_k(innermost(retriever))


def check_k(retriever: Runnable[Any, Any], k: int | None) -> None:
    """Refuse a number of passages for a retriever that would silently ignore it.

    Args:
        retriever: The retriever, wrapped or not.
        k: The number of passages, if one was asked for.

    Raises:
        InvalidInputError: If the retriever takes no ``k`` when it is called.
    """
    if k is None or takes_k(retriever):
        return
    raise InvalidInputError(
        f"k={k}, but the retriever {retriever.get_name()} takes no k when it is called",
        expected="a vector store's retriever, another whose search takes k, or a function of (query, k=…)",
        hint='retriever.configurable_fields(k=ConfigurableField(id="k")) if it has a field k; else where it is made',
    )


def _declares_k(retriever: Runnable[Any, Any]) -> bool:
    return any(spec.id == "k" for spec in retriever.config_specs)


def _search_takes_k(retriever: Runnable[Any, Any]) -> bool:
    # LangChain drops the arguments of a call that a retriever's method has no place for.
    names = ("_get_relevant_documents", "_aget_relevant_documents") if isinstance(retriever, BaseRetriever) else ()
    names = ("func", "afunc") if isinstance(retriever, RunnableLambda) else names
    searches = [getattr(retriever, name) for name in names if hasattr(retriever, name)]
    return bool(searches) and all(map(_has_place_for_k, searches))


def _has_place_for_k(search: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(search).parameters.values()
    except ValueError:
        # A built-in that does not say what it takes.
        return False
    return any(parameter.name == "k" or parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
