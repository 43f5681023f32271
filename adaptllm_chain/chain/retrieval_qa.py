"""The keys of LangChain's ``RetrievalQA``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from langchain_core.runnables import Runnable, RunnableGenerator
from langchain_core.runnables.utils import AddableDict

from adaptllm_chain.chain.inputs import AdaptiveInput
from adaptllm_chain.records import AdaptiveAnswer

_NAMES = {"input": "query", "answer": "result", "context": "source_documents"}


def retrieval_qa(
    chain: Runnable[AdaptiveInput, AdaptiveAnswer], *, return_source_documents: bool
) -> Runnable[AdaptiveInput, dict[str, Any]]:
    """Rename the keys of a chain's result, piece by piece, so that it still streams.

    Args:
        chain: The chain.
        return_source_documents: Whether the result holds the passages.

    Returns:
        A Runnable whose result has ``query``, ``result`` and, if wanted, ``source_documents``.
    """

    def rename(chunks: Iterator[Mapping[str, Any]]) -> Iterator[AddableDict]:
        for chunk in chunks:
            yield _renamed(chunk, return_source_documents=return_source_documents)

    async def arename(chunks: AsyncIterator[Mapping[str, Any]]) -> AsyncIterator[AddableDict]:
        async for chunk in chunks:
            yield _renamed(chunk, return_source_documents=return_source_documents)

    return chain | RunnableGenerator(rename, arename, name="retrieval_qa_keys")


def _renamed(chunk: Mapping[str, Any], *, return_source_documents: bool) -> AddableDict:
    # Keys of the input that are carried over must not stand where the result's will.
    kept = {key: value for key, value in chunk.items() if key not in _NAMES and key not in _NAMES.values()}
    renamed = {name: chunk[key] for key, name in _NAMES.items() if key in chunk}
    if not return_source_documents:
        renamed.pop("source_documents", None)
    return AddableDict({**kept, **renamed})
