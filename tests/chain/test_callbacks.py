"""Runs and events: every child under its parent, the decision among the events (L3)."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.tracers import BaseTracer
from langchain_core.tracers.schemas import Run

from adaptllm_chain.records import Decision
from adaptllm_chain.ret import Adaptive
from adaptllm_chain.testing import Reply
from tests.chain.scenes import MODELS, make, script


class Collector(BaseTracer):
    def __init__(self) -> None:
        super().__init__()
        self.roots: list[Run] = []

    def _persist_run(self, run: Run) -> None:
        self.roots.append(run)


def leaves(run: Run) -> list[Run]:
    if run.run_type in ("llm", "retriever"):
        return [run]
    return [leaf for child in run.child_runs for leaf in leaves(child)]


@pytest.mark.parametrize("model", sorted(set(MODELS) - {"runnable"}))
def test_every_call_stands_under_its_question(ask: Any, model: str) -> None:
    tracer = Collector()
    ask(make(model=model), "q", config={"callbacks": [tracer], "tags": ["mine"], "metadata": {"user": 1}})
    (root,) = tracer.roots
    assert root.name == "AdaptiveRetrievalChain"
    kinds = [("llm", "adaptllm:parametric"), ("retriever", "adaptllm:search"), ("llm", "adaptllm:context")]
    calls = leaves(root)
    assert [run.run_type for run in calls] == [kind for kind, _ in kinds]
    for run, (_, tag) in zip(calls, kinds, strict=True):
        assert tag in (run.tags or [])
        assert "mine" in (run.tags or [])
        assert run.metadata["user"] == 1
        assert run.error is None
    assert root.outputs is not None
    assert root.outputs["answer"] == "From the passage."


def test_in_a_batch_too() -> None:
    def check(tracer: Collector) -> None:
        assert sorted(len(leaves(root)) for root in tracer.roots) == [1, 3, 3]
        assert all(root.parent_run_id is None for root in tracer.roots)

    said = {"given the context C": "found", "Q: a": "<RET>", "Q: b": "Paris", "Q: c": "<RET>"}
    tracer = Collector()
    make(said).batch(["a", "b", "c"], {"callbacks": [tracer]})
    check(tracer)
    tracer = Collector()
    asyncio.run(make(said).abatch(["a", "b", "c"], {"callbacks": [tracer]}))
    check(tracer)


def test_inside_another_chain(ask: Any) -> None:
    tracer = Collector()
    outer = (lambda value: value) | make()
    ask(outer, "q", config={"callbacks": [tracer]})
    (root,) = tracer.roots
    assert root.name == "RunnableSequence"
    assert len(leaves(root)) == 3


class Decisions(BaseCallbackHandler):
    def __init__(self) -> None:
        self.heard: list[tuple[str, Any]] = []

    def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
        self.heard.append((name, data))


def test_the_decision_is_an_event_in_every_mode(ask: Any) -> None:
    handler = Decisions()
    result = ask(make(), "q", config={"callbacks": [handler]})
    assert handler.heard == [("decision", result["decision"])]


@pytest.mark.parametrize("model", ["llm", "chat"])
def test_l3_events(model: str) -> None:
    said = script(Reply("<RET>", ("<", "RET>")), context=Reply("a b c"))

    async def events() -> list[Any]:
        return [event async for event in make(said, model=model).astream_events("q", version="v2")]

    seen = asyncio.run(events())
    names = [event["event"] for event in seen]
    (decided,) = [event for event in seen if event["event"] == "on_custom_event"]
    assert decided["name"] == "decision"
    assert isinstance(decided["data"], Decision)
    assert names.index("on_custom_event") < names.index("on_retriever_start") < names.index("on_retriever_end")
    pieces = [event["data"]["chunk"] for event in seen if event["event"] == "on_chain_stream"]
    assert [piece["answer"] for piece in pieces if "answer" in piece] == ["a", " b", " c"]
    assert seen[-1]["event"] == "on_chain_end"
    assert seen[-1]["data"]["output"]["answer"] == "a b c"
    assert any("adaptllm:context" in event["tags"] for event in seen)


def test_an_interrupted_model_ends_its_run(ask: Any) -> None:
    tracer = Collector()
    ask(make(Reply("<RET> and on and on")), "q", config={"callbacks": [tracer]})
    assert all(run.end_time for root in tracer.roots for run in leaves(root))


def test_async_handlers(ask: Any, caplog: pytest.LogCaptureFixture) -> None:
    class Handler(AsyncCallbackHandler):
        async def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
            heard.append(name)

    heard: list[str] = []
    with caplog.at_level(logging.WARNING):
        ask(make(), "q", config={"callbacks": [Handler()]})
    assert heard == ["decision"]
    assert not caplog.records


@pytest.mark.parametrize("model", MODELS)
def test_no_callback_of_ours_complains(ask: Any, caplog: pytest.LogCaptureFixture, model: str) -> None:
    with caplog.at_level(logging.WARNING):
        ask(make(model=model, policy=Adaptive()), "q")
    assert not caplog.records
