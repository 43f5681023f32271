"""Retrievers of every make under the chain: LangChain's own, a function, an async function alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from langchain_classic.retrievers import ContextualCompressionRetriever, EnsembleRetriever, MultiQueryRetriever
from langchain_classic.retrievers.document_compressors import EmbeddingsFilter
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore

from adaptllm_chain.chain import AdaptiveRetrievalChain
from adaptllm_chain.testing import CountingRetriever, Reply, ScriptedChatModel, ScriptedLLM

pytestmark = pytest.mark.filterwarnings("ignore:`langchain-community` is being sunset:DeprecationWarning")

# An embedding of its text alone: the passage that repeats the question is certain to be the nearest.
EMBEDDING = DeterministicFakeEmbedding(size=16)
TEXTS = ["The wheel was opened in 2002.", "Paris is in France.", "Emma was written by Jane Austen."]
QUESTION = TEXTS[0]


def faiss(k: int = 1) -> Any:
    from langchain_community.vectorstores import FAISS

    return FAISS.from_texts(TEXTS, EMBEDDING).as_retriever(search_kwargs={"k": k})


def in_memory(k: int = 1) -> Any:
    return InMemoryVectorStore.from_texts(TEXTS, EMBEDDING).as_retriever(search_kwargs={"k": k})


async def _afind(query: str) -> list[Document]:
    return await in_memory().ainvoke(query)


MAKES: dict[str, Callable[[], Any]] = {
    "langchain_community's FAISS": faiss,
    "in memory": in_memory,
    "ensemble": lambda: EnsembleRetriever(retrievers=[in_memory(), faiss()], weights=[0.5, 0.5]),
    "compression": lambda: ContextualCompressionRetriever(
        base_compressor=EmbeddingsFilter(embeddings=EMBEDDING, similarity_threshold=0.99), base_retriever=in_memory(k=3)
    ),
    "multi-query": lambda: MultiQueryRetriever.from_llm(
        retriever=in_memory(), llm=ScriptedChatModel(script={"": Reply(f"{QUESTION}\n{QUESTION}")})
    ),
    "function": lambda: lambda query: in_memory().invoke(query),
    "async function": lambda: _afind,
    "sequence": lambda: (lambda query: f" {query}".strip()) | in_memory(),
    "with fallbacks": lambda: CountingRetriever(documents=_broken).with_fallbacks([in_memory()]),
}


def _broken(query: str) -> list[str]:
    raise ConnectionError(query)


def chain_over(retriever: Any) -> AdaptiveRetrievalChain:
    said = {"C: The wheel was opened in 2002.": "2002", "context C": "from elsewhere", "Q: who": "me", "help": "<RET>"}
    return AdaptiveRetrievalChain(llm=ScriptedLLM(script=said), retriever=retriever)


@pytest.mark.parametrize("make", MAKES)
def test_any_retriever(ask: Any, make: str, request: pytest.FixtureRequest) -> None:
    chain = chain_over(MAKES[make]())
    if make == "async function" and request.node.callspec.params["ask"] in ("invoke", "batch", "stream"):
        with pytest.raises(TypeError, match="ainvoke"):
            ask(chain, QUESTION)
        return
    result = ask(chain, QUESTION)
    assert result["answer"] == "2002"
    assert [passage.page_content for passage in result["context"]] == [QUESTION]


@pytest.mark.parametrize("make", sorted(set(MAKES) - {"async function"}))
def test_a_batch_of_which_some_retrieve(make: str) -> None:
    chain = chain_over(MAKES[make]())
    for results in (
        chain.batch([QUESTION, "who are you?", QUESTION]),
        asyncio.run(chain.abatch([QUESTION, "who are you?", QUESTION])),
    ):
        assert [result["answer"] for result in results] == ["2002", "me", "2002"]


def test_k_reaches_stores_and_what_is_built_on_them(ask: Any) -> None:
    for retriever in (faiss(), in_memory(), MAKES["compression"]()):
        chain = chain_over(retriever)
        result = ask(chain, QUESTION, config={"configurable": {"k": 2}})
        # The filter keeps one of the two.
        assert len(result["context"]) == (1 if isinstance(retriever, ContextualCompressionRetriever) else 2)
