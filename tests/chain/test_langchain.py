"""In LangChain's company: its fakes, its retrieval chain, its composition (L1, L5)."""

from __future__ import annotations

import asyncio
from operator import itemgetter
from typing import Any

import pytest
from langchain_classic.chains import create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_core.language_models import FakeListLLM, GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda, RunnableParallel, RunnablePassthrough
from langchain_core.tracers.run_collector import RunCollectorCallbackHandler
from pydantic import ValidationError

from adaptllm_chain.chain import AdaptiveRetrievalChain
from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.ret import Adaptive
from adaptllm_chain.testing import CountingRetriever, Reply, ScriptedChatModel, ScriptedLLM
from tests.chain.scenes import MODELS, PASSAGES, make, script


def test_l1_the_same_object_answers_both_times(ask: Any) -> None:
    llm = FakeListLLM(responses=["<RET>", "Paris"])
    chain = AdaptiveRetrievalChain(llm=llm, retriever=lambda query: PASSAGES)
    assert chain.llm is llm
    assert ask(chain, "q")["answer"] == "Paris"
    assert llm.i == 0


def test_a_generic_chat_model(ask: Any) -> None:
    llm = GenericFakeChatModel(messages=iter([AIMessage("<RET>"), AIMessage("It is Paris")]))
    assert ask(AdaptiveRetrievalChain(llm=llm, retriever=lambda query: PASSAGES), "q")["answer"] == "It is Paris"


def build_theirs(llm: Any, retriever: Any) -> Runnable[Any, Any]:
    prompt = ChatPromptTemplate.from_template("Answer the question Q given the context C. Q: {input}, C: {context}")
    return create_retrieval_chain(retriever, create_stuff_documents_chain(llm, prompt))


def build_ours(llm: Any, retriever: Any) -> Runnable[Any, Any]:
    return AdaptiveRetrievalChain(llm=llm, retriever=retriever)


def tutorial(build: Any) -> dict[str, Any]:
    """What users of create_retrieval_chain write, with the constructor as the one thing that differs."""
    llm = ScriptedLLM(script=script("<RET>", context=Reply("It is Paris", ("It ", "is ", "Paris"))))
    rag_chain = build(llm, CountingRetriever(documents=PASSAGES))
    response = rag_chain.invoke({"input": "What is the capital?", "user": 7})
    streamed: dict[str, Any] = {}
    for chunk in rag_chain.stream({"input": "What is the capital?"}):
        for key, value in chunk.items():
            streamed[key] = streamed[key] + value if key in streamed else value

    async def events() -> tuple[list[str], str]:
        titles, text = [], ""
        async for event in rag_chain.astream_events({"input": "What is the capital?"}, version="v2"):
            if event["event"] == "on_retriever_end":
                titles += [document.metadata.get("title", "") for document in event["data"]["output"]]
            if event["event"] == "on_chain_end" and not event["parent_ids"]:
                text = event["data"]["output"]["answer"]
        return titles, text

    return {
        "answer": response["answer"].split(),
        "context": [document.page_content for document in response["context"]],
        "kept": (response["input"], response["user"]),
        "streamed": (streamed["input"], streamed["answer"].split(), len(streamed["context"])),
        "events": asyncio.run(events()),
        "batch": [result["answer"].split() for result in rag_chain.batch([{"input": "a"}, {"input": "b"}])],
        "abatch": [result["answer"] for result in asyncio.run(rag_chain.abatch([{"input": "a"}]))],
        "ainvoke": asyncio.run(rag_chain.ainvoke({"input": "a"}))["input"],
        "picked": (rag_chain | itemgetter("answer")).invoke({"input": "a"}),
    }


def test_a_script_for_langchains_retrieval_chain_runs_unchanged() -> None:
    assert tutorial(build_ours) == tutorial(build_theirs)


def test_l5_the_keys_of_langchains_own_retrieval_chain(ask: Any) -> None:
    theirs = create_retrieval_chain(CountingRetriever(documents=PASSAGES), RunnableLambda(lambda _: "Paris"))
    ours = make(script("<RET>", context="Paris"))
    for value in ({"input": "q"}, {"input": "q", "id": 7}):
        expected, result = ask(theirs, value), ask(ours, value)
        assert {key: result[key] for key in expected} == expected
        assert set(result) - set(expected) == {"retrieved", "ret_probability", "decision"}
        assert next(iter(theirs.stream(value))) == next(iter(ours.stream(value)))


def test_composition(ask: Any) -> None:
    chain = RunnableLambda(str.strip) | make("Paris") | itemgetter("answer")
    assert chain.invoke(" q ") == "Paris"
    assert chain.batch([" q ", "r"]) == ["Paris", "Paris"]
    assert "".join(chain.stream("q")) == "Paris"
    both = RunnableParallel(adaptive=make("Paris"), question=RunnablePassthrough())
    assert ask(both, "q")["adaptive"]["answer"] == "Paris"


TEXT_WAYS: dict[str, Any] = {
    "invoke": lambda chain, value: chain.invoke(value),
    "batch": lambda chain, value: chain.batch([value])[0],
    "stream": lambda chain, value: list(chain.stream(value)),
    "ainvoke": lambda chain, value: asyncio.run(chain.ainvoke(value)),
    "abatch": lambda chain, value: asyncio.run(chain.abatch([value]))[0],
    "astream": lambda chain, value: asyncio.run(_apieces(chain, value)),
}


async def _apieces(chain: Any, value: Any) -> list[str]:
    return [piece async for piece in chain.astream(value)]


TEMPLATE = ChatPromptTemplate.from_messages([("system", "be brief"), ("human", "Where is {place}?")])


@pytest.mark.parametrize("way", TEXT_WAYS)
def test_between_a_prompt_and_a_parser(way: str) -> None:
    chain = TEMPLATE | make(Reply("In France")).pick("answer") | StrOutputParser()
    answer = TEXT_WAYS[way](chain, {"place": "Paris"})
    assert answer == (["In", " France"] if "stream" in way else "In France")


def test_a_parser_reads_no_result() -> None:
    # LangChain's own retrieval chain ends in the same error: parsers take text or a message.
    theirs = create_retrieval_chain(CountingRetriever(documents=PASSAGES), RunnableLambda(lambda _: "Paris"))
    for chain, value in ((TEMPLATE | make("Paris"), {"place": "Paris"}), (theirs, {"input": "q"})):
        with pytest.raises(ValidationError, match="Input should be a valid string"):
            (chain | StrOutputParser()).invoke(value)


def test_after_a_model_that_rewrites_the_question(ask: Any) -> None:
    rewriting = ChatPromptTemplate.from_template("Correct: {input}") | ScriptedChatModel(script={"": "Who wrote Emma?"})
    chain = make()
    assert ask(rewriting | StrOutputParser() | chain, {"input": "who rote emma"})["input"] == "Who wrote Emma?"
    # A model's own message is no question; the user's is.
    with pytest.raises(InvalidInputError, match="no message from the user"):
        ask(rewriting | chain, {"input": "who rote emma"})
    assert chain.retriever.queries == ["Who wrote Emma?"]


def test_with_config_names_and_tags(ask: Any) -> None:
    seen = RunCollectorCallbackHandler()
    ask(make().with_config(run_name="mine", tags=["t"], metadata={"m": 1}), "q", config={"callbacks": [seen]})
    (root,) = seen.traced_runs
    assert (root.name, root.tags, root.metadata["m"]) == ("mine", ["t"], 1)


class Failing(ScriptedLLM):
    """Fails the first so many calls."""

    failures: int = 1

    def _count(self, prompts: list[str], stop: Any) -> None:
        super()._count(prompts, stop)
        if len(self.calls) <= self.failures:
            raise ConnectionError(f"call {len(self.calls)}")


def test_retry(ask: Any, request: pytest.FixtureRequest) -> None:
    llm = Failing(script=script("Paris"))
    chain = AdaptiveRetrievalChain(llm=llm, retriever=lambda query: []).with_retry(
        retry_if_exception_type=(ConnectionError,), stop_after_attempt=2, wait_exponential_jitter=False
    )
    if "stream" in request.node.name:
        # LangChain retries no stream: parts of it may be out already.
        with pytest.raises(ConnectionError):
            ask(chain, "q")
    else:
        assert ask(chain, "q")["answer"] == "Paris"
        assert len(llm.calls) == 2


def test_retry_asks_again_only_for_what_failed() -> None:
    def say(prompt: str) -> str:
        asked.append(prompt[-1])
        if asked.count("b") == 1 and prompt.endswith("b"):
            raise ConnectionError(prompt)
        return "Paris"

    asked: list[str] = []
    chain = AdaptiveRetrievalChain(llm=RunnableLambda(say), retriever=lambda query: [])
    retrying = chain.with_retry(stop_after_attempt=2, wait_exponential_jitter=False)
    assert [result["answer"] for result in retrying.batch(["a", "b", "c"])] == ["Paris"] * 3
    assert sorted(asked) == ["a", "b", "b", "c"]


def test_fallbacks(ask: Any, request: pytest.FixtureRequest) -> None:
    chain = AdaptiveRetrievalChain(llm=Failing(script={}, failures=99), retriever=lambda query: [])
    secured = chain.with_fallbacks([make("Paris")])
    if "stream" in request.node.name:
        # LangChain falls back before the first part is out, and here, as in its retrieval chain, that is the input;
        # fallbacks of the model (below) serve streams too.
        with pytest.raises(ConnectionError):
            ask(secured, "q")
    else:
        assert ask(secured, "q")["answer"] == "Paris"


def test_a_chain_of_prompt_model_and_parser_as_the_model(ask: Any) -> None:
    likely = Reply("Paris", info={"ret_probability": 0.9})
    template = ChatPromptTemplate.from_messages([("system", "be brief"), ("human", "{text}")])
    for inner in (ScriptedLLM(script=script(likely)), ScriptedChatModel(script=script(likely))):
        llm = RunnableLambda(lambda text: {"text": text}) | template | inner | StrOutputParser()
        chain = AdaptiveRetrievalChain(llm=llm, retriever=lambda query: PASSAGES, policy=Adaptive(threshold=0.5))
        # What the model inside reports is heard through the wrapping.
        result = ask(chain, "q")
        assert result["answer"] == "From the passage."
        assert result["ret_probability"] == 0.9


def test_fallbacks_around_the_model(ask: Any) -> None:
    def broken(prompt: str) -> str:
        raise ZeroDivisionError(prompt)

    likely = Reply("Paris", info={"ret_probability": 0.9})
    llm = ScriptedLLM(script=broken).with_fallbacks([ScriptedLLM(script=script(likely))])
    chain = AdaptiveRetrievalChain(llm=llm, retriever=lambda query: PASSAGES)
    assert ask(chain, "q")["ret_probability"] == 0.9


@pytest.mark.parametrize("model", ["llm", "chat", "bound llm", "bound chat", "retrying llm"])
def test_the_probability_is_known_whichever_way_the_model_is_wrapped(ask: Any, model: str) -> None:
    assert model in MODELS
    likely = Reply("Paris it is", info={"ret_probability": 0.25})
    assert ask(make(likely, model=model), "q")["ret_probability"] == 0.25


def test_an_llm_cache_does_not_lose_the_probability(ask: Any) -> None:
    from langchain_core.caches import InMemoryCache

    llm = ScriptedLLM(script=script(Reply("Paris", info={"ret_probability": 0.25})), cache=InMemoryCache())
    chain = AdaptiveRetrievalChain(llm=llm, retriever=lambda query: PASSAGES, policy=Adaptive(threshold=0.5))
    assert ask(chain, "q") == ask(chain, "q")


def test_content_blocks_are_read_as_text(ask: Any) -> None:
    blocks: list[Any] = [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "<RET>"}]
    llm = GenericFakeChatModel(messages=iter([AIMessage(content=blocks), AIMessage("Paris")]))
    chain = AdaptiveRetrievalChain(llm=RunnableLambda(llm.invoke), retriever=lambda query: PASSAGES)
    assert ask(chain, "q")["answer"] == "Paris"
