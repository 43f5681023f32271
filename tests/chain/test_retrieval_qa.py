"""In place of LangChain's RetrievalQA: one line changed, the same keys."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_classic.chains import RetrievalQA
from langchain_core.prompts import PromptTemplate

from adaptllm_chain.chain import AdaptiveRetrievalChain
from adaptllm_chain.testing import CountingRetriever, Reply, ScriptedLLM
from tests.chain.scenes import PASSAGES, make, script

DECIDED = {"retrieved", "ret_probability", "decision"}
# The old chain's prompt is the paper's context prompt here, so that both ask the fake model the same.
SAID = {"If you need help": "<RET>", "given the context": Reply("It is Paris", ("It ", "is ", "Paris"))}
PROMPT = PromptTemplate.from_template("Answer the question Q given the context C. Q: {question}, C: {context}")


def both(*, documents: bool = False) -> tuple[Any, Any]:
    """The chain before and the chain after, with the same model on the same passages."""
    llm, retriever = ScriptedLLM(script=SAID), CountingRetriever(documents=PASSAGES)
    theirs = RetrievalQA.from_chain_type(
        llm, retriever=retriever, chain_type_kwargs={"prompt": PROMPT}, return_source_documents=documents
    )
    ours = AdaptiveRetrievalChain(llm=llm, retriever=retriever).as_retrieval_qa(return_source_documents=documents)
    return theirs, ours


# That it is deprecated is why somebody replaces it.
pytestmark = pytest.mark.filterwarnings("ignore:.*was deprecated in LangChain")


@pytest.mark.parametrize("documents", [False, True])
@pytest.mark.parametrize(
    "value", [{"query": "Which city?"}, "Which city?", {"query": "Which city?", "id": 7}], ids=repr
)
def test_the_same_keys_with_the_same_values(ask: Any, value: Any, documents: bool) -> None:
    theirs, ours = both(documents=documents)
    expected, result = ask(theirs, value), ask(ours, value)
    assert {key: result[key] for key in expected} == expected
    assert set(result) - set(expected) == DECIDED
    assert ("source_documents" in result) is documents


def test_a_direct_answer_has_no_documents(ask: Any) -> None:
    result = ask(make("Paris").as_retrieval_qa(return_source_documents=True), {"query": "q"})
    assert (result["result"], result["source_documents"], result["retrieved"]) == ("Paris", [], False)


def test_it_streams() -> None:
    _, ours = both(documents=True)
    chunks = list(ours.stream({"query": "q"}))
    assert [chunk["result"] for chunk in chunks if "result" in chunk] == ["It", " is", " Paris"]
    assert chunks[0] == {"query": "q"}

    async def achunks() -> list[Any]:
        return [chunk async for chunk in ours.astream({"query": "q"})]

    assert asyncio.run(achunks()) == chunks


def test_a_batch_is_still_a_batch() -> None:
    chain = make("Paris")
    results = chain.as_retrieval_qa().batch([{"query": "a"}, "b"])
    assert [result["query"] for result in results] == ["a", "b"]
    assert list(map(len, chain.llm.calls)) == [2]


def test_keys_of_the_input_do_not_stand_in_for_the_results(ask: Any) -> None:
    value = {"input": "asked", "query": "not asked", "result": "gold", "source_documents": "given", "id": 7}
    result = ask(make(script("Paris")).as_retrieval_qa(), value)
    assert {key: result[key] for key in result if key not in DECIDED} == {"query": "asked", "result": "Paris", "id": 7}
