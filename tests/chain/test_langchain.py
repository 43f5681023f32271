"""In LangChain's company: its fakes, its retrieval chain, its composition (L1, L5)."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import pytest
from langchain_classic.chains import create_retrieval_chain
from langchain_core.language_models import FakeListLLM, GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough

from adaptllm_chain.chain import AdaptiveRetrievalChain
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


def test_l5_the_keys_of_langchains_own_retrieval_chain() -> None:
    theirs = create_retrieval_chain(CountingRetriever(documents=PASSAGES), RunnableLambda(lambda _: "Paris"))
    ours = make(script("<RET>", context="Paris"))
    for value in ({"input": "q"}, {"input": "q", "id": 7}):
        expected, result = theirs.invoke(value), ours.invoke(value)
        assert {key: result[key] for key in expected} == expected
        assert set(result) - set(expected) == {"retrieved", "ret_probability", "decision"}
        assert next(iter(theirs.stream(value))) == next(iter(ours.stream(value)))


def test_composition(ask: Any) -> None:
    chain = RunnableLambda(str.strip) | make("Paris") | itemgetter("answer")
    assert chain.invoke(" q ") == "Paris"
    assert chain.batch([" q ", "r"]) == ["Paris", "Paris"]
    assert "".join(chain.stream("q")) == "Paris"
    picked = make(Reply("Paris it is")).pick("answer")
    assert list(picked.stream("q")) == ["Paris", " it", " is"]
    both = RunnableParallel(adaptive=make("Paris"), question=RunnablePassthrough())
    assert ask(both, "q")["adaptive"]["answer"] == "Paris"


def test_fallbacks_and_retries_around_the_chain() -> None:
    def broken(prompt: str) -> str:
        raise ZeroDivisionError(prompt)

    chain = AdaptiveRetrievalChain(llm=ScriptedLLM(script=broken), retriever=lambda query: [])
    assert chain.with_fallbacks([make("Paris")]).invoke("q")["answer"] == "Paris"
    with pytest.raises(ZeroDivisionError):
        chain.with_retry(stop_after_attempt=2, wait_exponential_jitter=False).invoke("q")


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
