"""Follow-up questions: condense_question before the chain, in LangChain's own way of keeping a history."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_classic.chains import create_history_aware_retriever
from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.prompt_values import ChatPromptValue
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from langchain_core.runnables import RunnableLambda
from langchain_core.runnables.history import RunnableWithMessageHistory

from adaptllm_chain.chain import AdaptiveRetrievalChain, condense_question
from adaptllm_chain.chain.history import CONDENSE
from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.testing import CountingRetriever, Reply, ScriptedChatModel, ScriptedLLM
from tests.chain.scenes import PASSAGES, added, make, script

STANDALONE = "When did the Falkirk Wheel open?"
HISTORY = [HumanMessage("What is the Falkirk Wheel?"), AIMessage("A boat lift.")]
FOLLOW_UP = "And when did it open?"


def rewriter() -> ScriptedChatModel:
    return ScriptedChatModel(script={"": Reply(STANDALONE)})


@pytest.mark.parametrize(
    "value",
    [
        "who?",
        {"input": "who?"},
        {"question": "who?", "chat_history": [], "id": 7},
        {"messages": [SystemMessage("be brief"), HumanMessage("who?")]},
        [HumanMessage("who?")],
        ChatPromptValue(messages=[SystemMessage("be brief"), HumanMessage("who?")]),
    ],
    ids=repr,
)
def test_a_first_question_passes_untouched(value: Any) -> None:
    llm = rewriter()
    assert condense_question(llm).invoke(value) is value
    assert llm.calls == []


@pytest.mark.parametrize(
    "value",
    [
        {"input": FOLLOW_UP, "chat_history": HISTORY},
        {"question": FOLLOW_UP, "chat_history": [("human", HISTORY[0].text), ("ai", HISTORY[1].text)]},
        {"messages": [*HISTORY, HumanMessage(FOLLOW_UP)]},
        {"input": [*HISTORY, HumanMessage(FOLLOW_UP)]},
        [SystemMessage("be brief"), *HISTORY, HumanMessage(FOLLOW_UP)],
        ChatPromptValue(messages=[*HISTORY, HumanMessage(FOLLOW_UP)]),
    ],
    ids=repr,
)
def test_a_follow_up_is_written_out(ask: Any, value: Any) -> None:
    seen: list[Any] = []
    llm = RunnableLambda(lambda prompt: seen.append(prompt.to_messages()) or STANDALONE)
    chain = make()
    result = ask(condense_question(llm) | chain, value)
    assert result["input"] == STANDALONE
    assert chain.retriever.queries == [STANDALONE]
    (messages,) = seen
    expected = CONDENSE.invoke({"chat_history": HISTORY, "input": FOLLOW_UP}).to_messages()
    assert [(type(message), message.text) for message in messages] == [
        (type(message), message.text) for message in expected
    ]


def test_other_keys_stay(ask: Any) -> None:
    value = {"question": FOLLOW_UP, "chat_history": HISTORY, "id": 7}
    result = ask(condense_question(rewriter()) | make("Paris"), value)
    assert {key: result[key] for key in ("id", "chat_history", "question")} == {**value}


def test_tools_are_left_out_of_the_conversation() -> None:
    call = AIMessage("", tool_calls=[{"name": "search", "args": {}, "id": "1"}])
    seen: list[Any] = []
    llm = RunnableLambda(lambda prompt: seen.extend(prompt.to_messages()) or STANDALONE)
    condense_question(llm).invoke(
        [HISTORY[0], call, ToolMessage("found", tool_call_id="1"), *HISTORY, HumanMessage("?")]
    )
    assert [message.type for message in seen] == ["system", "human", "human", "ai", "human"]


def test_a_model_that_reads_text_and_a_prompt_of_ones_own(ask: Any) -> None:
    llm = ScriptedLLM(script={"": STANDALONE})
    prompt = PromptTemplate.from_template("{chat_history} / {input}")
    value = {"input": FOLLOW_UP, "chat_history": HISTORY[:1]}
    assert ask(condense_question(llm, prompt) | make("2002"), value)["input"] == STANDALONE
    assert llm.calls[0][0].endswith(f"/ {FOLLOW_UP}")


def test_what_is_no_question_is_refused_as_ever() -> None:
    for value in (3, {}, ["a", "b"]):
        with pytest.raises(InvalidInputError, match="expected"):
            (condense_question(rewriter()) | make()).invoke(value)
    with pytest.raises(InvalidInputError, match="no list of messages"):
        condense_question(rewriter()).invoke([HumanMessage("who?"), 3])


def test_first_questions_of_a_batch_stay_one_batch() -> None:
    chain = make("Paris")
    (condense_question(rewriter()) | chain).batch(["a", "b", {"input": FOLLOW_UP, "chat_history": HISTORY}])
    assert list(map(len, chain.llm.calls)) == [3]


def test_it_stands_in_langchains_history_aware_retriever_too(ask: Any) -> None:
    template = ChatPromptTemplate.from_messages([("placeholder", "{chat_history}"), ("human", "{input}")])
    chain = make()
    theirs = create_history_aware_retriever(rewriter(), chain, template)
    ours = condense_question(rewriter(), template) | chain
    for value in ({"input": "who?"}, {"input": FOLLOW_UP, "chat_history": HISTORY}):
        assert ask(theirs, value)["answer"] == ask(ours, value)["answer"] == "From the passage."
    assert chain.retriever.queries == ["who?", "who?", STANDALONE, STANDALONE]


def converse(way: str, chain: Any, question: str) -> dict[str, Any]:
    config = {"configurable": {"session_id": "one"}}
    value = {"input": question}
    if way == "invoke":
        return dict(chain.invoke(value, config))
    if way == "stream":
        return added(list(chain.stream(value, config)))
    if way == "ainvoke":
        return dict(asyncio.run(chain.ainvoke(value, config)))

    async def astreamed() -> list[Any]:
        return [chunk async for chunk in chain.astream(value, config)]

    return added(asyncio.run(astreamed()))


# Deprecated in favour of LangGraph's persistence (see test_agents.py), and in use until it is gone.
@pytest.mark.filterwarnings("ignore:.*was deprecated in LangChain", "ignore:RunnableWithMessageHistory is deprecated")
@pytest.mark.parametrize("way", ["invoke", "stream", "ainvoke", "astream"])
def test_two_turns_with_langchains_message_history(way: str) -> None:
    kept = InMemoryChatMessageHistory()
    llm = ScriptedLLM(
        script={
            "given the context C. Q: When did": Reply("In 2002"),
            "given the context": Reply("A boat lift"),
            "If you need help": "<RET>",
        }
    )
    retriever = CountingRetriever(documents=PASSAGES)
    asking = rewriter()
    chain = RunnableWithMessageHistory(
        condense_question(asking) | AdaptiveRetrievalChain(llm=llm, retriever=retriever),
        lambda session_id: kept,
        input_messages_key="input",
        history_messages_key="chat_history",
        output_messages_key="answer",
    )
    assert converse(way, chain, "What is the Falkirk Wheel?")["answer"] == "A boat lift"
    result = converse(way, chain, FOLLOW_UP)
    assert result["answer"] == "In 2002"
    assert retriever.queries == ["What is the Falkirk Wheel?", STANDALONE]
    assert len(asking.calls) == 1
    assert [message.text for message in kept.messages] == [
        "What is the Falkirk Wheel?",
        "A boat lift",
        FOLLOW_UP,
        "In 2002",
    ]


def test_the_rewriting_has_a_name_in_traces() -> None:
    async def names() -> set[str]:
        chain = condense_question(rewriter()) | make(script("Paris"))
        value = {"input": FOLLOW_UP, "chat_history": HISTORY}
        return {event["name"] async for event in chain.astream_events(value, version="v2")}

    assert {"condense_question", "ScriptedChatModel", "AdaptiveRetrievalChain"} <= asyncio.run(names())
