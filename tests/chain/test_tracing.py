"""What a tracer sees: the tree of runs in every way of running, and results that it can write."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any
from unittest.mock import MagicMock

import orjson
import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.tracers.langchain import LangChainTracer
from langchain_core.tracers.run_collector import RunCollectorCallbackHandler
from langsmith import Client

from adaptllm_chain.testing import Reply
from tests.chain.scenes import make, script

# A run as (type, name, tag of ours, runs inside it).
Tree = tuple[str, str, str | None, list[Any]]


def tree(run: Any) -> Tree:
    tag = next((tag.removeprefix("adaptllm:") for tag in run.tags or [] if tag.startswith("adaptllm:")), None)
    return run.run_type, run.name, tag, [tree(child) for child in run.child_runs]


def chain_run(*children: Tree, name: str = "AdaptiveRetrievalChain") -> Tree:
    return "chain", name, None, list(children)


def model_run(tag: str) -> Tree:
    return "llm", "ScriptedLLM", tag, []


SEARCH: Tree = ("retriever", "CountingRetriever", "search", [])
DECISION: Tree = ("chain", "decision", "decide", [])
TREES: dict[str, tuple[Any, str, list[Tree]]] = {
    "direct": ("adaptive", "Paris", [model_run("parametric"), DECISION]),
    "retrieve": ("adaptive", "<RET>", [model_run("parametric"), DECISION, SEARCH, model_run("context")]),
    "never": ("never_retrieve", "Paris", [DECISION, model_run("closed_book")]),
    "always": ("always_retrieve", "Paris", [DECISION, SEARCH, model_run("context")]),
}


def everything(run: Any) -> Iterator[Any]:
    yield run
    for child in run.child_runs:
        yield from everything(child)


@pytest.mark.parametrize("route", TREES)
def test_the_tree_of_runs(ask: Any, route: str) -> None:
    policy, said, children = TREES[route]
    seen = RunCollectorCallbackHandler()
    result = ask(make(said, policy=policy), "q", config={"callbacks": [seen]})
    (root,) = seen.traced_runs
    assert tree(root) == chain_run(*children)
    for run in everything(root):
        assert run.error is None
        assert run.end_time is not None
        assert run.trace_id == root.id
        for child in run.child_runs:
            assert child.parent_run_id == run.id
    assert root.outputs is not None
    assert root.outputs["decision"] == result["decision"]


@pytest.mark.parametrize("way", ["batch", "abatch"])
def test_in_a_batch_every_question_has_a_tree_of_its_own(way: str) -> None:
    seen = RunCollectorCallbackHandler()
    chain = make({"context C": "found", "Q: a": "<RET>", "Q: b": "Paris", "Q: c": "<RET>"})
    config: Any = {"callbacks": [seen]}
    questions = ["a", "b", "c"]
    results = chain.batch(questions, config) if way == "batch" else asyncio.run(chain.abatch(questions, config))
    assert len(results) == 3
    found = {run.inputs["input"]: run for run in seen.traced_runs}
    assert {question: tree(run) for question, run in found.items()} == {
        "a": chain_run(*TREES["retrieve"][2]),
        "b": chain_run(*TREES["direct"][2]),
        "c": chain_run(*TREES["retrieve"][2]),
    }
    # Each search was that of its question.
    for question in ("a", "c"):
        assert found[question].child_runs[2].inputs == {"query": question}


def test_inside_a_sequence(ask: Any) -> None:
    seen = RunCollectorCallbackHandler()
    ask(
        (lambda value: value) | make().pick("answer") | (lambda text: {"answer": text}),
        "q",
        config={"callbacks": [seen]},
    )
    (root,) = seen.traced_runs
    inside = [run for run in everything(root) if run.name == "AdaptiveRetrievalChain"]
    assert [tree(run) for run in inside] == [chain_run(*TREES["retrieve"][2])]


@pytest.mark.parametrize("policy", ["adaptive", "never_retrieve"])
def test_langsmiths_tracer_writes_the_decision(ask: Any, policy: str) -> None:
    session = MagicMock()
    client = Client(api_url="http://localhost:1", api_key="none", session=session, auto_batch_tracing=False)
    tracer = LangChainTracer(client=client, project_name="test")
    result = ask(make(policy=policy), "q", config={"callbacks": [tracer]})
    tracer.wait_for_futures()
    sent = [json.loads(call.kwargs["data"]) for call in session.request.call_args_list if call.kwargs.get("data")]
    decisions = [run["outputs"]["decision"] for run in sent if "decision" in (run.get("outputs") or {})]
    assert decisions
    for decision in decisions:
        assert decision["route"] == result["decision"].route
        assert decision["reason"] == result["decision"].reason


class Heard(BaseCallbackHandler):
    def __init__(self) -> None:
        self.events: list[tuple[str, Any]] = []

    def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
        self.events.append((name, data))


def test_the_decisions_event_can_be_written(ask: Any) -> None:
    heard = Heard()
    ask(make(Reply("Paris", info={"ret_probability": 0.25})), "q", config={"callbacks": [heard]})
    ((name, data),) = heard.events
    assert name == "decision"
    written = json.loads(orjson.dumps(data))
    assert (written["route"], written["signal"]["probability"]) == ("direct", 0.25)


def test_l3_events_in_order_with_their_parents() -> None:
    said = script(Reply("<RET>", ("<", "RET>")), context=Reply("a b c"))

    async def events() -> list[Any]:
        return [event async for event in make(said).astream_events("q", version="v2")]

    seen = asyncio.run(events())
    root = seen[0]["run_id"]
    assert all(event["parent_ids"] == ([] if event["run_id"] == root else [root]) for event in seen)
    kinds = [event["event"] for event in seen if not event["event"].endswith("_stream")]
    assert kinds.count("on_llm_end") == 2
    # A model that streams may end after what it said was acted upon.
    assert [kind for kind in kinds if kind != "on_llm_end"] == [
        "on_chain_start",
        "on_llm_start",
        *("on_chain_start", "on_chain_end"),  # the decision as a run, for traces
        "on_custom_event",
        *("on_retriever_start", "on_retriever_end"),
        "on_llm_start",
        "on_chain_end",
    ]
