"""In LlamaIndex's company: its index as the chain's retriever, the chain as its query engine."""

from __future__ import annotations

import asyncio
import math
import re
import subprocess
import sys
from collections import Counter
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_tests.integration_tests import RetrieversIntegrationTests

pytest.importorskip("llama_index.core", reason="the extra llama-index is not installed")

from llama_index.core import VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.base.response.schema import AsyncStreamingResponse, StreamingResponse
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.retrievers import BaseRetriever as NodeRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.tools import QueryEngineTool

from adaptllm_chain.chain import AdaptiveRetrievalChain
from adaptllm_chain.errors import EmptyRetrievalError, InvalidInputError
from adaptllm_chain.llama_index import AdaptiveQueryEngine, LlamaIndexRetriever, as_document, as_node
from adaptllm_chain.testing import Reply, ScriptedLLM
from tests.chain.scenes import script

# LlamaIndex looks for LangChain's classes in langchain-community, which warns of its own end.
pytestmark = pytest.mark.filterwarnings("ignore:.langchain-community. is being sunset:DeprecationWarning")

VOCABULARY = ("falkirk", "wheel", "paris", "capital", "opened")
NODES = [
    TextNode(id_="wheel", text="The Falkirk Wheel was opened in 2002.", metadata={"title": "Falkirk Wheel"}),
    TextNode(id_="paris", text="Paris is the capital of France.", metadata={"title": "Paris"}),
]
QUESTION = "When was the Falkirk Wheel opened?"
ASKS = Reply("<RET>", info={"ret_probability": 0.75})
KNOWS = Reply("It is Paris", info={"ret_probability": 0.25})


class WordCounts(BaseEmbedding):
    """How often each of five words stands in a text: similarities that can be worked out by hand."""

    def _get_text_embedding(self, text: str) -> list[float]:
        words = Counter(re.findall(r"[a-z]+", text.lower()))
        return [float(words[word]) for word in VOCABULARY]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


def index() -> VectorStoreIndex:
    return VectorStoreIndex(nodes=list(NODES), embed_model=WordCounts(), transformations=[])


def retriever(**settings: Any) -> LlamaIndexRetriever:
    return LlamaIndexRetriever(retriever=index().as_retriever(similarity_top_k=2), **settings)


def chain(first: str | Reply, **settings: Any) -> AdaptiveRetrievalChain:
    settings = {"retriever": retriever(k=1), **settings}
    return AdaptiveRetrievalChain(llm=ScriptedLLM(script=script(first, context="In the year 2002")), **settings)


def _read(response: Any) -> tuple[list[str], Any]:
    if isinstance(response, StreamingResponse):
        return list(response.response_gen), response
    return [str(response)], response


async def _aread(engine: AdaptiveQueryEngine) -> tuple[list[str], Any]:
    response = await engine.aquery(QUESTION)
    if isinstance(response, AsyncStreamingResponse):
        return [piece async for piece in response.async_response_gen()], response
    return [str(response)], response


# Every way of asking one question; each returns the pieces of the answer, and the response.
WAYS = {
    "query": lambda chain: _read(AdaptiveQueryEngine(chain).query(QUESTION)),
    "query of a bundle": lambda chain: _read(AdaptiveQueryEngine(chain).query(QueryBundle(QUESTION))),
    "query, streaming": lambda chain: _read(AdaptiveQueryEngine(chain, streaming=True).query(QUESTION)),
    "aquery": lambda chain: asyncio.run(_aread(AdaptiveQueryEngine(chain))),
    "aquery, streaming": lambda chain: asyncio.run(_aread(AdaptiveQueryEngine(chain, streaming=True))),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("first", [ASKS, KNOWS], ids=["asks", "knows"])
def test_every_way_gives_what_the_chain_gives(way: str, first: Reply) -> None:
    expected = chain(first).invoke(QUESTION)
    pieces, response = WAYS[way](chain(first))
    assert "".join(pieces) == expected["answer"]
    assert len(pieces) == (expected["answer"].count(" ") + 1 if "streaming" in way else 1)
    assert response.metadata == {
        "route": expected["decision"].route,
        "ret_probability": expected["ret_probability"],
        "decision": asdict(expected["decision"]),
    }
    assert [as_document(node) for node in response.source_nodes] == expected["context"]


def test_the_passage_and_its_score() -> None:
    response = AdaptiveQueryEngine(chain(ASKS)).query(QUESTION)
    (source,) = response.source_nodes
    assert str(response) == "In the year 2002"
    assert (source.node_id, source.text, source.metadata) == ("wheel", NODES[0].text, {"title": "Falkirk Wheel"})
    # LlamaIndex embeds the title too: "falkirk" and "wheel" twice, "opened" once, against once each.
    assert source.score == pytest.approx((2 + 2 + 1) / (math.sqrt(9) * math.sqrt(3)))
    assert "Falkirk" in response.get_formatted_sources()
    assert AdaptiveQueryEngine(chain(KNOWS)).query(QUESTION).source_nodes == []


def test_only_a_request_reaches_the_index() -> None:
    class Counting(NodeRetriever):
        queries: list[str] = []  # noqa: RUF012

        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            self.queries.append(query_bundle.query_str)
            return [NodeWithScore(node=NODES[0])]

    found = LlamaIndexRetriever(retriever=Counting())
    AdaptiveQueryEngine(chain(KNOWS, retriever=found)).query(QUESTION)
    assert Counting.queries == []
    response = AdaptiveQueryEngine(chain(ASKS, retriever=found)).query(QUESTION)
    assert Counting.queries == [QUESTION]
    assert response.source_nodes[0].score is None


def test_a_stream_that_nobody_reads_on_stops_the_model() -> None:
    asked = chain(Reply("one two three four five six"))
    response = AdaptiveQueryEngine(asked, streaming=True).query(QUESTION)
    assert next(response.response_gen) == "one"
    response.response_gen.close()
    assert isinstance(asked.llm, ScriptedLLM)
    assert 0 < asked.llm.streamed < 6


async def test_an_async_stream_that_nobody_reads_on_stops_the_model() -> None:
    asked = chain(Reply("one two three four five six"))
    response = await AdaptiveQueryEngine(asked, streaming=True).aquery(QUESTION)
    assert isinstance(response, AsyncStreamingResponse)
    assert await anext(response.response_gen) == "one"
    await response.response_gen.aclose()
    assert isinstance(asked.llm, ScriptedLLM)
    assert 0 < asked.llm.streamed < 6


@pytest.mark.parametrize("streaming", [False, True])
def test_an_abstention_and_an_error(streaming: bool) -> None:
    nothing: Any = {"retriever": lambda query: []}
    engine = AdaptiveQueryEngine(chain(ASKS, on_empty="abstain", **nothing), streaming=streaming)
    assert str(engine.query(QUESTION)) == "I don't know."
    with pytest.raises(EmptyRetrievalError):
        AdaptiveQueryEngine(chain(ASKS, on_empty="raise", **nothing), streaming=streaming).query(QUESTION)


async def test_as_a_tool() -> None:
    tool = QueryEngineTool.from_defaults(AdaptiveQueryEngine(chain(ASKS)), name="facts", description="Answers.")
    for output in (tool.call(QUESTION), await tool.acall(input=QUESTION)):
        assert output.content == "In the year 2002"
        assert output.raw_output.metadata["route"] == "retrieve"


def test_llamaindex_callbacks_hear_the_query() -> None:
    heard = LlamaDebugHandler(print_trace_on_end=False)
    AdaptiveQueryEngine(chain(KNOWS), callback_manager=CallbackManager([heard])).query(QUESTION)
    ((start, end),) = heard.get_event_pairs(CBEventType.QUERY)
    assert start.payload is not None
    assert end.payload is not None
    assert start.payload["query_str"] == QUESTION
    assert str(end.payload["response"]) == "It is Paris"


def test_a_runnable_around_the_chain() -> None:
    for wrapped in (chain(KNOWS).with_config(tags=["x"]), chain(KNOWS).with_retry(), chain(KNOWS).with_fallbacks([])):
        for streaming in (False, True):
            assert str(AdaptiveQueryEngine(wrapped, streaming=streaming).query(QUESTION)) == "It is Paris"


@pytest.mark.parametrize("streaming", [False, True])
def test_what_is_no_chain_is_refused(streaming: bool) -> None:
    with pytest.raises(InvalidInputError, match="a str"):
        AdaptiveQueryEngine("chain", streaming=streaming)  # type: ignore[arg-type]
    for wrong in (chain(KNOWS).pick("answer"), chain(KNOWS).pick(["answer", "context"])):
        with pytest.raises(InvalidInputError, match="decision"):
            AdaptiveQueryEngine(wrong, streaming=streaming).query(QUESTION)
        with pytest.raises(InvalidInputError, match="decision"):
            asyncio.run(AdaptiveQueryEngine(wrong, streaming=streaming).aquery(QUESTION))


class TestStandard(RetrieversIntegrationTests):
    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return LlamaIndexRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        nodes = [TextNode(text=f"Falkirk number {number}") for number in range(5)]
        store = VectorStoreIndex(nodes=nodes, embed_model=WordCounts(), transformations=[])
        return {"retriever": store.as_retriever(similarity_top_k=5)}

    @property
    def retriever_query_example(self) -> str:
        return "falkirk"


async def test_k_limits_what_the_index_finds() -> None:
    everything = [document.id for document in retriever().invoke("the capital Paris")]
    assert everything == ["paris", "wheel"]
    assert [found.id for found in retriever().invoke("the capital Paris", k=1)] == everything[:1]
    assert [found.id for found in await retriever(k=1).ainvoke("the capital Paris")] == everything[:1]
    with pytest.raises(InvalidInputError, match="k is 0"):
        retriever().invoke("q", k=0)


scores = st.none() | st.floats(allow_nan=False) | st.integers(-5, 5)
metadata = st.dictionaries(st.text(max_size=5).filter(lambda key: key != "score"), st.text() | st.integers())


@given(st.text(min_size=1), st.text(), metadata, scores)
def test_passages_cross_over_unchanged(identity: str, text: str, extra: dict[str, Any], score: float | None) -> None:
    node = NodeWithScore(node=TextNode(id_=identity, text=text, metadata=extra), score=score)
    again = as_node(as_document(node))
    assert (again.node_id, again.text, again.metadata, again.score) == (identity, text, extra, score)


@pytest.mark.parametrize("score", [True, "high", None])
def test_a_score_that_is_no_number_stays_metadata(score: Any) -> None:
    node = as_node(Document(page_content="text", metadata={"score": score}))
    assert (node.score, node.metadata) == (None, {"score": score})
    assert node.node_id


def test_a_missing_package_gives_the_command() -> None:
    code = "import sys; sys.modules['llama_index'] = None; import adaptllm_chain.llama_index"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert "the package 'llama-index-core' is not installed" in ran.stderr
    assert "pip install 'adaptllm-chain[llama-index]'" in ran.stderr
