from __future__ import annotations

import warnings
from typing import Any
from uuid import uuid4

import pytest
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_tests.integration_tests import RetrieversIntegrationTests

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.records import Question
from adaptllm_chain.retrieval import FaissPassageStore, GivenPassagesRetriever, PassageRetriever
from tests.retrieval.conftest import WORDS, CountingEmbedding


class TestStandard(RetrieversIntegrationTests):
    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return PassageRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"vectorstore": FaissPassageStore.from_texts(WORDS, DeterministicFakeEmbedding(size=8))}

    @property
    def retriever_query_example(self) -> str:
        return "lamp"


class TestStandardGiven(RetrieversIntegrationTests):
    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return GivenPassagesRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"passages": {"lamp": [Document(page_content=word) for word in WORDS]}}

    @property
    def retriever_query_example(self) -> str:
        return "lamp"


class Record(BaseCallbackHandler):
    def __init__(self) -> None:
        self.starts: list[dict[str, Any]] = []
        self.ends: list[Any] = []
        self.errors: list[Any] = []
        self.chains: list[Any] = []

    def on_chain_start(self, serialized: Any, inputs: Any, *, run_id: Any, **kwargs: Any) -> None:
        self.chains.append(run_id)

    def on_retriever_start(self, serialized: Any, query: str, **kwargs: Any) -> None:
        self.starts.append({"query": query, **kwargs})

    def on_retriever_end(self, documents: Any, *, run_id: Any, **kwargs: Any) -> None:
        self.ends.append((run_id, documents))

    def on_retriever_error(self, error: BaseException, *, run_id: Any, **kwargs: Any) -> None:
        self.errors.append((run_id, error))


class AsyncRecord(AsyncCallbackHandler):
    def __init__(self) -> None:
        self.queries: list[str] = []
        self.ends = 0
        self.errors = 0

    async def on_retriever_start(self, serialized: Any, query: str, **kwargs: Any) -> None:
        self.queries.append(query)

    async def on_retriever_end(self, documents: Any, **kwargs: Any) -> None:
        self.ends += 1

    async def on_retriever_error(self, error: BaseException, **kwargs: Any) -> None:
        self.errors += 1


class CountingStore(FaissPassageStore):
    searches = 0

    def _nearest(self, vectors: Any, k: int) -> Any:
        self.searches += 1
        return super()._nearest(vectors, k)


@pytest.fixture
def store(counting: CountingEmbedding, passages: list[Document]) -> CountingStore:
    store = CountingStore.from_documents(passages, counting)
    counting.document_calls.clear()
    return store


QUERIES = ["one", "two", "three", "four"]


def test_a_batch_is_one_embedding_call_and_one_search(store: CountingStore, counting: CountingEmbedding) -> None:
    retriever = store.as_retriever(k=3)
    retriever.batch(QUERIES)  # the first batch tries out how queries are embedded
    counting.document_calls.clear()
    counting.query_calls.clear()
    store.searches = 0
    found = retriever.batch(QUERIES)
    assert counting.document_calls == [QUERIES]
    assert counting.query_calls == []
    assert store.searches == 1
    assert found == [retriever.invoke(query) for query in QUERIES]
    assert [len(documents) for documents in found] == [3, 3, 3, 3]


async def test_an_async_batch_is_one_embedding_call_and_one_search(
    store: CountingStore, counting: CountingEmbedding
) -> None:
    retriever = store.as_retriever(k=2)
    expected = retriever.batch(QUERIES)
    counting.document_calls.clear()
    store.searches = 0
    record = AsyncRecord()
    assert await retriever.abatch(QUERIES, {"callbacks": [record]}) == expected
    assert len(counting.document_calls) == store.searches == 1
    assert record.queries == QUERIES
    assert record.ends == 4


def test_every_query_keeps_its_own_run_under_its_parent(store: CountingStore) -> None:
    record = Record()
    ids = [uuid4(), uuid4()]
    configs: list[RunnableConfig] = [
        {"callbacks": [record], "tags": ["first"], "metadata": {"n": 1}, "run_id": ids[0], "run_name": "mine"},
        {"callbacks": [record], "tags": ["second"], "run_id": ids[1]},
    ]
    found = store.as_retriever(tags=["store"]).batch(["one", "two"], configs)
    assert [start["query"] for start in record.starts] == ["one", "two"]
    assert [start["run_id"] for start in record.starts] == ids
    assert [start["name"] for start in record.starts] == ["mine", "PassageRetriever"]
    assert set(record.starts[0]["tags"]) == {"first", "store"}
    assert record.starts[0]["metadata"]["n"] == 1
    assert record.ends == list(zip(ids, found, strict=True))


def test_runs_hang_under_the_runnable_that_calls(store: CountingStore) -> None:
    record = Record()
    retriever = store.as_retriever()

    def explicit(queries: list[str], config: RunnableConfig) -> list[list[Document]]:
        return retriever.batch(queries, config)

    def silent(queries: list[str]) -> list[list[Document]]:
        return retriever.batch(queries)

    RunnableLambda(explicit).invoke(["one", "two"], {"callbacks": [record]})
    assert [start["parent_run_id"] for start in record.starts] == record.chains * 2
    implicit = Record()
    RunnableLambda(silent).invoke(["one", "two"], {"callbacks": [implicit]})
    assert [start["parent_run_id"] for start in implicit.starts] == implicit.chains * 2


def test_a_bad_query_fails_alone_when_exceptions_are_returned(store: CountingStore) -> None:
    record = Record()
    queries: list[Any] = ["one", None, "three"]
    found = store.as_retriever(k=1).batch(queries, {"callbacks": [record]}, return_exceptions=True)
    assert isinstance(found[1], InvalidInputError)
    assert [len(found[0]), len(found[2])] == [1, 1]
    assert len(record.ends) == 2
    assert len(record.errors) == 1
    with pytest.raises(InvalidInputError):
        store.as_retriever(k=1).batch(queries)


class Refusing(CountingEmbedding):
    """Refuses a whole call for one text in it, as servers do."""

    symmetric = True

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        if "too long" in texts:
            raise RuntimeError("token limit")
        return super().embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


async def test_an_embedder_that_fails_for_one_fails_for_one(passages: list[Document]) -> None:
    retriever = FaissPassageStore.from_documents(passages, Refusing()).as_retriever(k=1)
    queries = ["one", "too long", "three"]
    for found in (
        retriever.batch(queries, return_exceptions=True),
        await retriever.abatch(queries, return_exceptions=True),
    ):
        assert [type(result) for result in found] == [list, RuntimeError, list]
    record = Record()
    with pytest.raises(RuntimeError, match="token limit"):
        retriever.batch(queries, {"callbacks": [record]})
    assert len(record.errors) == 3  # no run is left open
    with pytest.raises(RuntimeError, match="token limit"):
        await retriever.abatch(queries, {"callbacks": [record]})
    assert len(record.errors) == 6


def test_k_of_the_call_beats_search_kwargs_beats_the_field(store: CountingStore) -> None:
    assert len(store.as_retriever().invoke("one")) == 4
    assert len(store.as_retriever(k=2).invoke("one")) == 2
    retriever = store.as_retriever(k=2, search_kwargs={"k": 3})
    assert len(retriever.invoke("one")) == 3
    assert [len(found) for found in retriever.batch(QUERIES)] == [3] * 4
    assert [len(found) for found in retriever.batch(QUERIES, k=1)] == [1] * 4
    assert len(retriever.invoke("one", k=1)) == 1


async def test_other_kinds_of_search_still_work_in_batches(store: CountingStore) -> None:
    retriever = store.as_retriever(search_type="mmr", k=2)
    assert [len(found) for found in retriever.batch(QUERIES)] == [2] * 4
    assert [len(found) for found in await retriever.abatch(QUERIES)] == [2] * 4
    assert len(await retriever.ainvoke("one")) == 2


def test_scores_come_along_when_asked_for(store: CountingStore) -> None:
    scored = store.as_retriever(k=2, with_scores=True).batch(QUERIES)
    expected = [[score for _, score in found] for found in store.search_batch(QUERIES, 2)]
    assert [[document.metadata["score"] for document in found] for found in scored] == expected
    assert "score" not in store.as_retriever(k=2).invoke("one")[0].metadata


def test_an_empty_batch_and_an_empty_store(store: CountingStore, counting: CountingEmbedding) -> None:
    assert store.as_retriever().batch([]) == []
    assert FaissPassageStore(counting).as_retriever().batch(["a", "b"]) == [[], []]


def test_langchain_communitys_retriever_finds_the_same(passages: list[Document]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from langchain_community.vectorstores import FAISS
        from langchain_community.vectorstores.utils import DistanceStrategy

    embedding = DeterministicFakeEmbedding(size=8)
    theirs = FAISS.from_documents(passages, embedding, distance_strategy=DistanceStrategy.MAX_INNER_PRODUCT)
    ours = FaissPassageStore.from_documents(passages, embedding, embed_title=False)
    options: dict[str, Any] = {"search_kwargs": {"k": 3}}
    assert ours.as_retriever(**options).batch(QUERIES) == theirs.as_retriever(**options).batch(QUERIES)


# -- replayed passages ------------------------------------------------------------------------------


def question(name: str, text: str, **kwargs: Any) -> Question:
    return Question(id=name, text=text, answers=("x",), **kwargs)


async def test_given_passages_are_replayed() -> None:
    first, second = Document(page_content="first"), Document(page_content="second")
    questions = [
        question("1", "who?", given_passages=(first, second), gold_passage=second),
        question("2", "who?", given_passages=(second,)),
        question("3", "what?"),
    ]
    given = GivenPassagesRetriever.from_questions(questions)
    assert given.batch(["who?", "what?", "unknown"]) == [[first, second], [], []]
    assert await given.ainvoke("who?", k=1) == [first]
    assert GivenPassagesRetriever.from_questions(questions, source="gold").invoke("who?") == [second]
    assert GivenPassagesRetriever.from_questions(questions, k=1).invoke("who?") == [first]
    given.invoke("who?")[0].metadata["seen"] = True
    assert given.invoke("who?")[0].metadata == {}
    with pytest.raises(InvalidInputError, match="silver"):
        GivenPassagesRetriever.from_questions(questions, source="silver")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="k is 0"):
        given.invoke("who?", k=0)
