"""What users of other chains do to this one, and what went wrong when they did."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.decisions import ClassifierResponse, Noul
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.tools import BaseTool
from langchain_core.vectorstores import InMemoryVectorStore
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from adaptllm_chain import AdaptiveRetrievalChain, PromptTemplates
from adaptllm_chain.chain import condense_question
from adaptllm_chain.chain.ret_decision_model import RetDecisionModel
from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.testing import CountingRetriever, Reply, ScriptedChatModel, ScriptedLLM
from tests.chain.scenes import make, script, summary

UNSURE = Reply("Paris", info={"ret_probability": 0.4})
RIGHT: list[dict[str, Any]] = [{}, {"threshold": 0.3}, {"threshold": 0.5}, {"policy": "never_retrieve"}]
WRONG: list[dict[str, Any]] = [
    {"policy": "sometimes"},
    {"threshold": 1.5},
    {"policy": "always_retrieve", "threshold": 0.5},
    {"k": 0},
    {"k": 2},  # which this retriever does not take
]


def outcome(result: Any) -> Any:
    return (type(result), str(result)) if isinstance(result, Exception) else summary(result)


@given(st.lists(st.sampled_from(RIGHT + WRONG), min_size=1, max_size=6))
def test_wrong_settings_of_a_call_fail_their_own_question_alone(settings: list[dict[str, Any]]) -> None:
    chain = make(script(UNSURE))
    configs: list[Any] = [{"configurable": own} for own in settings]
    questions: list[Any] = [f"who {place}?" for place in range(len(settings))]
    alone = []
    for question, config in zip(questions, configs, strict=True):
        try:
            alone.append(outcome(chain.invoke(question, config)))
        except InvalidInputError as error:
            alone.append(outcome(error))
    together = chain.batch(questions, configs, return_exceptions=True)
    assert list(map(outcome, together)) == alone
    assert [isinstance(result, InvalidInputError) for result in together] == [own in WRONG for own in settings]
    assert list(map(outcome, asyncio.run(chain.abatch(questions, configs, return_exceptions=True)))) == alone


def test_the_decision_can_be_filtered_out_of_the_events_by_its_name() -> None:
    async def events() -> list[Any]:
        return [event async for event in make().astream_events("who?", version="v2", include_names=["decision"])]

    (decided,) = [event for event in asyncio.run(events()) if event["event"] == "on_custom_event"]
    assert decided["data"].route == "retrieve"


class Endless(ScriptedChatModel):
    """Goes on until it is stopped."""

    stopped: bool = False

    async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        try:
            while True:
                async for chunk in super()._astream(*args, **kwargs):
                    yield chunk
        finally:
            self.stopped = True


def test_the_model_has_stopped_when_a_stream_is_closed() -> None:
    llm = Endless(script=script("an answer that goes on "))
    chain = AdaptiveRetrievalChain(llm=llm, retriever=CountingRetriever())

    async def leave() -> bool:
        chunks: Any = chain.astream("who?")
        async for chunk in chunks:
            if "answer" in chunk:
                break
        await chunks.aclose()
        return llm.stopped

    assert asyncio.run(leave())


def called(tool: BaseTool, *calls: dict[str, Any]) -> list[ToolMessage]:
    """Let an agent's graph make several calls of a tool in one message."""
    graph = StateGraph(MessagesState)
    graph.add_node("tools", ToolNode([tool]))
    graph.add_edge(START, "tools")
    graph.add_edge("tools", END)
    calling = [{"name": tool.name, "args": arguments, "id": str(place)} for place, arguments in enumerate(calls)]
    messages = graph.compile().invoke({"messages": [AIMessage("", tool_calls=calling)]})["messages"]
    return [message for message in messages if isinstance(message, ToolMessage)]


def test_an_agent_that_asks_nothing_is_told_so_and_its_other_calls_are_answered() -> None:
    asked, empty, missing = called(make().as_tool(), {"question": "who?"}, {"question": " "}, {})
    assert (asked.status, asked.content) == ("success", "From the passage.")
    assert (empty.status, missing.status) == ("error", "error")
    assert "the question is empty" in str(empty.content)


def test_the_tool_takes_a_bare_text() -> None:
    tool = make().as_tool()
    assert tool.invoke("who?") == asyncio.run(tool.ainvoke("who?")) == tool.invoke({"question": "who?"})


def test_a_vector_store_in_place_of_its_retriever_is_refused_with_the_way_out() -> None:
    store: Any = InMemoryVectorStore(DeterministicFakeEmbedding(size=2))
    with pytest.raises(InvalidInputError, match=r"retriever=store.as_retriever\(\)"):
        AdaptiveRetrievalChain(llm=ScriptedLLM(script={}), retriever=store)
    with pytest.raises(InvalidInputError) as other:
        AdaptiveRetrievalChain(llm=ScriptedLLM(script={}), retriever="faiss")  # type: ignore[arg-type]
    assert other.value.hint is None


def test_a_prompt_of_langchain_is_refused_with_prompts_that_can_be_typed() -> None:
    prompt: Any = ChatPromptTemplate.from_template("{context} {input}")
    with pytest.raises(InvalidInputError) as refused:
        make(prompts=prompt)
    assert str(refused.value.hint) == f"prompts={PromptTemplates()!r}"


@pytest.mark.parametrize(
    "history",
    ["Human: a\nAI: b", [("a", "b")], {"human": "a"}, HumanMessage("a"), 5],
    ids=lambda value: str(value)[:20],
)
def test_a_history_that_is_no_list_of_messages_is_refused_and_the_model_not_asked(history: Any) -> None:
    llm = ScriptedChatModel(script={"": "when?"})
    with pytest.raises(InvalidInputError, match="chat_history"):
        condense_question(llm).invoke({"input": "and when?", "chat_history": history})
    assert llm.calls == []


@pytest.mark.parametrize("llm", ["gpt", None])
def test_condensing_without_a_model_is_refused(llm: Any) -> None:
    with pytest.raises(InvalidInputError, match="llm="):
        condense_question(llm)


def test_questions_without_names_fail_their_own_request_alone() -> None:
    noul = Noul(instructions="Is retrieval needed?")
    requests: list[Any] = [{"state": "who?", "questions": [noul]}, {"state": "who?", "questions": {"search": noul}}]
    unnamed, named = RetDecisionModel(llm=ScriptedLLM(script=lambda _: UNSURE)).batch(requests, return_exceptions=True)
    assert isinstance(unnamed, InvalidInputError)
    assert isinstance(named, ClassifierResponse)
    assert named.nouls["search"].noul == 0.4
