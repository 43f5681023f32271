"""In an agent: as a tool of LangChain's create_agent, and as a node of a LangGraph graph."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.tracers.run_collector import RunCollectorCallbackHandler
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_tests.integration_tests import ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, MessagesState, StateGraph
from pydantic import BaseModel

from adaptllm_chain.chain import AdaptiveRetrievalChain, condense_question
from adaptllm_chain.ret import PopularityThreshold
from adaptllm_chain.testing import CountingRetriever, Reply, ScriptedChatModel
from tests.chain.scenes import PASSAGES, make, script

QUESTION = "When did the Falkirk Wheel open?"


class ToolCalling(GenericFakeChatModel):
    """Says its messages one after the other, whatever tools it is given."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self


def calling(name: str, **arguments: Any) -> ToolCalling:
    call = {"name": name, "args": arguments, "id": "call-1", "type": "tool_call"}
    return ToolCalling(messages=iter([AIMessage("", tool_calls=[call]), AIMessage("It opened in 2002.")]))


class TestStandard(ToolsIntegrationTests):
    @property
    def tool_constructor(self) -> BaseTool:
        return make().as_tool()

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return {"question": QUESTION}


class TestStandardUnit(ToolsUnitTests):
    @property
    def tool_constructor(self) -> BaseTool:
        return make().as_tool()

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return {"question": QUESTION}


def test_what_an_agent_reads_of_the_tool() -> None:
    described = convert_to_openai_tool(make().as_tool())["function"]
    assert described["name"] == "answer_question"
    assert "passages" in described["description"]
    assert described["parameters"] == {
        "type": "object",
        "required": ["question"],
        "properties": {
            "question": {
                "type": "string",
                "description": "One question that can be understood without the conversation.",
            }
        },
    }
    named = make().as_tool(name="ask_manual", description="Knows the manual.")
    assert (named.name, named.description) == ("ask_manual", "Knows the manual.")


def test_the_tool_answers_and_keeps_the_result_as_artifact() -> None:
    tool = make(script("<RET>", context="In 2002.")).as_tool()
    assert tool.invoke({"question": QUESTION}) == "In 2002."
    assert asyncio.run(tool.ainvoke({"question": QUESTION})) == "In 2002."
    message = tool.invoke({"type": "tool_call", "id": "1", "name": tool.name, "args": {"question": QUESTION}})
    assert message.content == "In 2002."
    assert message.artifact["context"] == PASSAGES
    assert message.artifact["decision"].route == "retrieve"


def test_a_tool_with_arguments_of_ones_own() -> None:
    class Popular(BaseModel):
        """A question and how popular its subject is."""

        question: str
        popularity: float

    chain = make(policy=PopularityThreshold(threshold=1000))
    for tool in (chain.as_tool(Popular), chain.as_tool(arg_types={"question": str, "popularity": float})):
        assert tool.invoke({"question": "q", "popularity": 2000}) == "By heart."
        assert tool.invoke({"question": "q", "popularity": 2}) == "From the passage."


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_a_tool_of_an_agent(way: str) -> None:
    chain = make(script("<RET>", context="In 2002."))
    agent = create_agent(calling("answer_question", question=QUESTION), tools=[chain.as_tool()])
    seen = RunCollectorCallbackHandler()
    value: Any = {"messages": [HumanMessage("The Falkirk Wheel, when was that?")]}
    config: Any = {"callbacks": [seen]}
    state = agent.invoke(value, config) if way == "invoke" else asyncio.run(agent.ainvoke(value, config))
    assert [message.type for message in state["messages"]] == ["human", "ai", "tool", "ai"]
    told = state["messages"][2]
    assert isinstance(told, ToolMessage)
    assert told.content == "In 2002."
    assert told.artifact["retrieved"] is True
    assert chain.retriever.queries == [QUESTION]
    # The chain's runs stand under the tool's.
    (root,) = seen.traced_runs
    (tool,) = runs(root, "answer_question")
    (inside,) = runs(tool, "AdaptiveRetrievalChain")
    assert [child.run_type for child in inside.child_runs if child.run_type != "chain"] == ["llm", "retriever", "llm"]


def runs(run: Any, name: str) -> list[Any]:
    found = [run] if run.name == name else []
    return found + [inner for child in run.child_runs for inner in runs(child, name)]


def graph_of(node: Any, **options: Any) -> Any:
    graph = StateGraph(MessagesState)
    graph.add_node("answer", node)
    graph.add_edge(START, "answer")
    graph.add_edge("answer", END)
    return graph.compile(**options)


def test_a_node_of_a_graph_that_keeps_the_conversation() -> None:
    chain = condense_question(ScriptedChatModel(script={"": QUESTION})) | make(script("<RET>", context="In 2002."))

    def answer(state: MessagesState) -> dict[str, Any]:
        result = chain.invoke(state)
        return {"messages": [AIMessage(result["answer"], additional_kwargs={"retrieved": result["retrieved"]})]}

    graph = graph_of(answer, checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}
    graph.invoke({"messages": [HumanMessage("What is the Falkirk Wheel?")]}, config)
    state = graph.invoke({"messages": [HumanMessage("And when did it open?")]}, config)
    assert [message.text for message in state["messages"]] == [
        "What is the Falkirk Wheel?",
        "In 2002.",
        "And when did it open?",
        "In 2002.",
    ]
    last = chain.last
    assert isinstance(last, AdaptiveRetrievalChain)
    assert isinstance(last.retriever, CountingRetriever)
    assert last.retriever.queries == ["What is the Falkirk Wheel?", QUESTION]
    assert state["messages"][-1].additional_kwargs == {"retrieved": True}


def test_settings_of_a_call_reach_the_node() -> None:
    chain = make("Paris")
    graph = graph_of(lambda state: {"messages": [AIMessage(chain.invoke(state)["answer"])]})
    value = {"messages": [HumanMessage("q")]}
    assert graph.invoke(value)["messages"][-1].text == "Paris"
    config = {"configurable": {"policy": "always_retrieve"}}
    assert graph.invoke(value, config)["messages"][-1].text == "From the passage."


def test_a_node_that_streams_the_answer() -> None:
    # LangGraph's "messages" mode would show what the model says word by word, <RET> too: "nostream" leaves that out.
    said = script(Reply("<RET>", ("<", "RET>")), context=Reply("It is Paris", ("It ", "is ", "Paris")))
    llm = ScriptedChatModel(script=said)
    chain = AdaptiveRetrievalChain(llm=llm.with_config(tags=["nostream"]), retriever=lambda query: PASSAGES)

    def answer(state: MessagesState) -> dict[str, Any]:
        write, text = get_stream_writer(), ""
        for chunk in chain.stream(state):
            write(chunk.get("answer", ""))
            text += chunk.get("answer", "")
        return {"messages": [AIMessage(text)]}

    parts = list(graph_of(answer).stream({"messages": [HumanMessage("q")]}, stream_mode=["custom", "messages"]))
    assert [piece for mode, piece in parts if mode == "custom" and piece] == ["It", " is", " Paris"]
    assert [piece[0].text for mode, piece in parts if mode == "messages"] == ["It is Paris"]


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_settings_of_a_call_reach_the_tool(way: str) -> None:
    tool = make("Paris").as_tool()
    config: Any = {"configurable": {"policy": "always_retrieve"}}
    value = {"question": "q"}
    answer = tool.invoke(value, config) if way == "invoke" else asyncio.run(tool.ainvoke(value, config))
    assert answer == "From the passage."


def test_an_agents_conversation_survives_a_checkpoint() -> None:
    tool = make(script("<RET>", context="In 2002.")).as_tool()
    agent = create_agent(calling(tool.name, question=QUESTION), tools=[tool], checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}
    agent.invoke({"messages": [HumanMessage("when?")]}, config)
    kept = agent.get_state(config).values["messages"][2]
    assert kept.content == "In 2002."
    # A checkpoint keeps an artifact as plain data.
    assert kept.artifact["decision"]["route"] == "retrieve"
    assert [passage["page_content"] for passage in kept.artifact["context"]] == [p.page_content for p in PASSAGES]
