"""LlamaIndex: a query engine over the chain, and a LlamaIndex retriever as the chain's retriever.

Needs the extra ``llama-index``. Passages cross over unchanged in both directions: id, text, metadata and score.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator, Mapping
from contextlib import aclosing, closing
from dataclasses import asdict
from numbers import Real
from typing import Any, cast

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable

from adaptllm_chain.errors import InvalidInputError, missing_extra

try:
    from llama_index.core.base.base_query_engine import BaseQueryEngine
    from llama_index.core.base.base_retriever import BaseRetriever as NodeRetriever
    from llama_index.core.base.response.schema import (
        RESPONSE_TYPE,
        AsyncStreamingResponse,
        Response,
        StreamingResponse,
    )
    from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload
    from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle, TextNode
except ImportError as error:
    raise missing_extra("llama-index-core", "llama-index") from error

__all__ = ["AdaptiveQueryEngine", "LlamaIndexRetriever", "as_document", "as_node"]

# What a response needs to know before its first word; the chain's stream tells it in this time.
_HEAD = ("ret_probability", "decision", "context")


class AdaptiveQueryEngine(BaseQueryEngine):
    """A LlamaIndex query engine that retrieves only when the model asks to.

    The response holds the answer; the passages as ``source_nodes`` with their scores, best first, none after an
    answer from memory; and in ``metadata`` the ``route`` (``"direct"`` or ``"retrieve"``), ``ret_probability``
    (in [0, 1], or ``None`` where it is unknown) and ``decision`` (the fields of a ``Decision`` as a dictionary).

    Example:
        ```python
        engine = AdaptiveQueryEngine(chain)
        response = engine.query("When was the Falkirk Wheel opened?")
        print(response, response.metadata["route"], len(response.source_nodes))
        ```

    Args:
        chain: An ``AdaptiveRetrievalChain``, or a Runnable around one (``with_config``, ``with_retry``).
        streaming: Whether ``query`` returns a ``StreamingResponse`` and ``aquery`` an ``AsyncStreamingResponse``.
            The decision and the passages are known when it is returned; the answer comes as it is read.
        callback_manager: LlamaIndex's callbacks; the chain's own are LangChain's.

    Raises:
        InvalidInputError: If ``chain`` is no Runnable.
    """

    def __init__(
        self,
        chain: Runnable[Any, Any],
        *,
        streaming: bool = False,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        if not isinstance(chain, Runnable):
            raise InvalidInputError(
                f"chain={chain!r:.80} is a {type(chain).__name__}",
                expected="an AdaptiveRetrievalChain, or a Runnable around one",
                hint="AdaptiveQueryEngine(AdaptiveRetrievalChain(llm=…, retriever=…))",
            )
        super().__init__(callback_manager)
        self._chain = chain
        self._streaming = streaming

    def _get_prompt_modules(self) -> dict[str, Any]:
        # The chain's prompts belong to the model's adapter; LlamaIndex has none to show or change.
        return {}

    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        question = query_bundle.query_str
        with self.callback_manager.event(CBEventType.QUERY, payload={EventPayload.QUERY_STR: question}) as event:
            response: RESPONSE_TYPE
            if self._streaming:
                chunks = cast("Generator[Any]", self._chain.stream(question))
                head = _head(chunks)
                response = StreamingResponse(_answer(head, chunks), **_sources(head))
            else:
                result = self._chain.invoke(question)
                response = Response(**_sources(result), response=result["answer"])
            event.on_end(payload={EventPayload.RESPONSE: response})
        return response

    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        question = query_bundle.query_str
        with self.callback_manager.event(CBEventType.QUERY, payload={EventPayload.QUERY_STR: question}) as event:
            response: RESPONSE_TYPE
            if self._streaming:
                chunks = cast("AsyncGenerator[Any]", self._chain.astream(question))
                head = await _ahead(chunks)
                response = AsyncStreamingResponse(_aanswer(head, chunks), **_sources(head))
            else:
                result = await self._chain.ainvoke(question)
                response = Response(**_sources(result), response=result["answer"])
            event.on_end(payload={EventPayload.RESPONSE: response})
        return response


class LlamaIndexRetriever(BaseRetriever):
    """A LlamaIndex retriever as a LangChain retriever, for the chain or anything else.

    Example:
        ```python
        retriever = LlamaIndexRetriever(retriever=index.as_retriever(similarity_top_k=1))
        chain = AdaptiveRetrievalChain(llm=llm, retriever=retriever)
        ```

    Attributes:
        retriever: The LlamaIndex retriever; how much it finds is its own setting (``similarity_top_k``).
        k: The most passages of what it finds, best first; ``None`` for all. A call may bring its own:
            ``invoke(query, k=1)``.
    """

    retriever: NodeRetriever
    k: int | None = None

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        limit = self._limit(k)
        return [as_document(found) for found in self.retriever.retrieve(query)[:limit]]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        limit = self._limit(k)
        return [as_document(found) for found in (await self.retriever.aretrieve(query))[:limit]]

    def _limit(self, k: int | None) -> int | None:
        limit = self.k if k is None else k
        if limit is not None and limit < 1:
            raise InvalidInputError(f"k is {limit!r}", expected="a whole number of 1 or more, or None for all")
        return limit


def as_document(found: NodeWithScore) -> Document:
    """Turn a node into a LangChain document.

    Args:
        found: A node and its score.

    Returns:
        A document with the node's id, text and metadata; a score stands in ``metadata["score"]``.
    """
    score = {} if found.score is None else {"score": found.score}
    return Document(
        id=found.node.node_id,
        page_content=found.node.get_content(metadata_mode=MetadataMode.NONE),
        metadata={**found.node.metadata, **score},
    )


def as_node(document: Document) -> NodeWithScore:
    """Turn a LangChain document into a node.

    Args:
        document: A document; a number in ``metadata["score"]`` is its score.

    Returns:
        A node with the document's id (a new one if it has none), text and metadata, and the score.
    """
    metadata = dict(document.metadata)
    known = isinstance(metadata.get("score"), Real) and not isinstance(metadata["score"], bool)
    score = float(metadata.pop("score")) if known else None
    identity = {} if document.id is None else {"id_": document.id}
    return NodeWithScore(node=TextNode(text=document.page_content, metadata=metadata, **identity), score=score)


def _sources(result: Any) -> dict[str, Any]:
    """Read what a response holds beside the answer."""
    missing = [key for key in _HEAD if key not in result] if isinstance(result, Mapping) else list(_HEAD)
    if missing:
        raise InvalidInputError(
            f"the chain's result {result!r:.80} has no {', '.join(missing)}",
            expected="the result of an AdaptiveRetrievalChain",
            hint="AdaptiveQueryEngine(chain), without .pick(…) or a parser behind the chain",
        )
    decision = result["decision"]
    return {
        "source_nodes": [as_node(document) for document in result["context"]],
        "metadata": {
            "route": decision.route,
            "ret_probability": result["ret_probability"],
            "decision": asdict(decision),
        },
    }


class _Head(dict[str, Any]):
    """What a stream tells before the answer."""

    def takes(self, chunk: Any) -> bool:
        """Add a chunk, and say whether more is needed."""
        if not isinstance(chunk, Mapping):
            _sources(chunk)
        self.update(chunk)
        return any(key not in self for key in _HEAD)


def _head(chunks: Iterator[Any]) -> _Head:
    head = _Head()
    for chunk in chunks:
        if not head.takes(chunk):
            break
    return head


async def _ahead(chunks: AsyncIterator[Any]) -> _Head:
    head = _Head()
    async for chunk in chunks:
        if not head.takes(chunk):
            break
    return head


def _answer(head: _Head, chunks: Generator[Any]) -> Generator[str]:
    # Closed with the answer: who stops reading stops the model.
    with closing(chunks):
        if "answer" in head:
            yield head["answer"]
        for chunk in chunks:
            yield chunk["answer"]


async def _aanswer(head: _Head, chunks: AsyncGenerator[Any]) -> AsyncGenerator[str]:
    async with aclosing(chunks):
        if "answer" in head:
            yield head["answer"]
        async for chunk in chunks:
            yield chunk["answer"]
