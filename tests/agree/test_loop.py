"""Searching on for what is unsupported: each way to go on and to end, worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.callbacks import BaseCallbackHandler

from adaptllm_chain.agree import GroundingLoop
from adaptllm_chain.agree.services import GROUNDING_EVENT
from adaptllm_chain.testing import CountingRetriever, Reply, ScriptedLLM
from tests.agree.scenes import answer, counted, passages, retriever
from tests.chain.scenes import WAYS, added
from tests.chain.test_callbacks import Collector


def section(*statements: str) -> str:
    return "".join(["\n\nUnsupported statements:", *(f"\n- {statement}" for statement in statements)])


def make(said: Any, found: Any, **kwargs: Any) -> Any:
    return GroundingLoop(llm=ScriptedLLM(script=said), retriever=found, **kwargs)


def first_draft_then(second: str, first: str = f"It is old [1]. It hums.{section('It hums.')}") -> Any:
    return lambda prompt: second if "Hum: it hums" in prompt else first


def test_what_is_unsupported_is_searched_for() -> None:
    found = retriever({"q": ["Old.", "B.", "C."], "It hums.": ["B.", "Hum: it hums", "D."]})
    loop = make(first_draft_then("It is old [1]. It hums [2]."), found, k=3)
    result = answer(loop)
    first, second = result["steps"]
    assert first.context == passages("Old.", "B.", "C.")
    assert (first.call, first.answer, first.unsupported) == (1, "It is old [1]. It hums.", ("It hums.",))
    # B. was shown before; Old. is cited and stays, with its number; B. and C. make room.
    assert (first.queries, first.new) == (["It hums."], 2)
    assert second.context == result["context"] == passages("Old.", "Hum: it hums", "D.")
    assert result["answer"] == "It is old [1]. It hums [2]."
    assert (result["stopped"], result["calls"], result["searches"]) == ("supported", 2, 2)
    assert result["step"] == second


def test_it_ends_at_the_budget() -> None:
    found = CountingRetriever(documents=lambda query: [f"{query} {number}" for number in range(99)])
    loop = make(lambda prompt: f"It hums.{section('It hums.')}", found, budget=3, k=2)
    result = answer(loop)
    assert (result["stopped"], result["calls"], result["searches"]) == ("budget", 3, 3)
    assert result["unsupported"] == ["It hums."]
    loop.llm.calls.clear()
    loop.invoke("q")
    assert len(loop.llm.calls) == 3
    assert answer(make(lambda prompt: "It hums.", found, budget=1))["steps"][0].queries == []


def test_without_unsupported_statements_the_next_results_for_the_question_are_taken() -> None:
    found = [f"P{number}." for number in range(5)]
    for source in (retriever({"q": found}), counted({"q": found})):
        result = answer(make(lambda prompt: "It hums.", source, k=2, budget=9))
        assert [step.context for step in result["steps"]] == [
            passages("P0.", "P1."),
            passages("P2.", "P3."),
            passages("P4."),
        ]
        assert (result["stopped"], result["calls"], result["searches"]) == ("nothing_new", 3, 4)


def test_statements_that_bring_nothing_new_give_way_to_the_question() -> None:
    found = retriever({"q": ["A.", "B."], "It hums.": ["A."], "It stinks.": []})
    loop = make(lambda prompt: f"It hums.{section('It hums.', 'It stinks.')}", found, k=1)
    result = answer(loop)
    assert [step.queries for step in result["steps"]] == [["It hums.", "It stinks.", "q"]] * 2
    assert (result["stopped"], result["searches"]) == ("nothing_new", 7)


def test_the_best_passage_for_each_statement_comes_first() -> None:
    found = retriever({"q": ["A."], "S1.": ["1a", "1b", "1c"], "S2.": ["2a", "1a", "2b"]})
    result = answer(make(lambda prompt: f"S1. S2.{section('S1.', 'S2.')}", found, k=4, budget=2))
    assert result["context"] == passages("1a", "2a", "1b", "1c")


def test_where_all_passages_are_cited_one_more_is_shown() -> None:
    found = retriever({"q": ["A.", "B."], "S.": ["C.", "D."]})
    result = answer(make(lambda prompt: f"One [2]. Two [1]. S.{section('S.')}", found, k=2, budget=2))
    assert result["context"] == passages("B.", "A.", "C.")


def test_a_batch_goes_on_side_by_side() -> None:
    found = retriever({"q": ["Old."], "r": ["Hum: it hums"], "It hums.": ["Hum: it hums"]})
    loop = make(first_draft_then("It hums [1]."), found)
    results = loop.batch(["q", "r", "q"])
    assert [result["calls"] for result in results] == [2, 1, 2]
    # The two that go on are searched for and asked together.
    assert [len(call) for call in loop.llm.calls] == [3, 2]
    assert loop.retriever.batches == [3, 2]


class Listener(BaseCallbackHandler):
    def __init__(self) -> None:
        self.heard: list[Any] = []

    def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
        if name == GROUNDING_EVENT:
            self.heard.append(data)


def test_every_step_is_an_event_and_a_chunk() -> None:
    found = retriever({"q": ["Old."], "It hums.": ["Hum: it hums"]})
    loop = make(first_draft_then("It is old [1]. It hums [2]."), found)
    listener = Listener()
    result = answer(loop, config={"callbacks": [listener]})
    assert listener.heard == result["steps"] * 6
    chunks = list(loop.stream("q"))
    assert [chunk["step"] for chunk in chunks if "step" in chunk] == result["steps"]
    # The first step is passed on before the model is asked again.
    loop.llm.calls.clear()
    stream = loop.stream("q")
    assert next(chunk for chunk in stream if "step" in chunk)["step"].call == 1
    assert len(loop.llm.calls) == 1
    stream.close()


@pytest.mark.parametrize("way", WAYS)
def test_every_step_stands_in_the_trace(way: str) -> None:
    found = retriever({"q": ["Old."], "It hums.": ["Hum: it hums"]})
    tracer = Collector()
    result = WAYS[way](
        make(first_draft_then("It is old [1]. It hums [2]."), found), "q", config={"callbacks": [tracer]}
    )
    (root,) = tracer.roots
    kinds = [(run.name, (run.tags or [])[-1]) for run in root.child_runs]
    draft, search = ("ScriptedLLM", "adaptllm:grounded"), ("CountingRetriever", "adaptllm:search")
    step = (GROUNDING_EVENT, "adaptllm:ground")
    assert kinds == [search, draft, search, step, draft, step]
    assert [run.outputs["answer"] for run in root.child_runs if run.name == GROUNDING_EVENT and run.outputs] == [
        step.answer for step in result["steps"]
    ]
    assert all(run.end_time and run.error is None for run in root.child_runs)


def test_a_listener_that_fails_fails_its_question() -> None:
    class Failing(Listener):
        raise_error = True

        def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
            raise RuntimeError("deaf")

    loop = make(lambda prompt: "It is old [1].", retriever(["Old."]))
    bad, good = loop.batch(["q", "q"], config=[{"callbacks": [Failing()]}, {}], return_exceptions=True)
    assert isinstance(bad, RuntimeError)
    assert good["stopped"] == "supported"


def test_the_draft_that_the_budget_ends_is_streamed_live() -> None:
    said = Reply("It hums.", ("It", " hums", "."))
    for budget, pieces in ((1, 3), (2, 1)):
        loop = make(lambda prompt: said, retriever(["Old."]), budget=budget)
        chunks = list(loop.stream("q"))
        assert len([chunk for chunk in chunks if "answer" in chunk]) == pieces
        assert added(chunks) == loop.invoke("q")


names = st.lists(st.sampled_from("abcdefgh"), max_size=5)


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(st.sampled_from(["q", "S1.", "S2."]), names, min_size=1),
    st.lists(st.sampled_from(["S1.", "S2."]), unique=True),
    st.lists(st.integers(1, 4), max_size=2),
    st.integers(1, 4),
    st.integers(1, 3),
)
def test_nothing_that_was_dropped_comes_back(
    found: dict[str, list[str]], statements: list[str], cited: list[int], budget: int, k: int
) -> None:
    marks = "".join(f"[{number}]" for number in cited)
    said = f"One {marks}. Two.{section(*statements) if statements else ''}"
    loop = make(lambda prompt: said, retriever(found), budget=budget, k=k)
    result = loop.invoke("q")
    shown: list[str] = []
    before: list[str] = []
    for step in result["steps"]:
        texts = [passage.page_content for passage in step.context]
        kept = [text for text in texts if text in before]
        assert not set(texts) - set(before) & set(shown)
        assert kept == texts[: len(kept)]
        assert len(texts) <= max(k, len(kept) + 1)
        assert len(set(texts)) == len(texts)
        shown += texts
        before = texts
    assert len(result["steps"]) == result["calls"] == len(loop.llm.calls) <= budget
    assert result["searches"] == len(loop.retriever.queries)
    assert result["stopped"] == ("budget" if result["calls"] == budget else "nothing_new")


@pytest.mark.parametrize("budget", [0, -1, 1.5])
def test_a_budget_is_a_number_of_calls(budget: Any) -> None:
    with pytest.raises(Exception, match=f"GroundingLoop: budget={budget}"):
        make(lambda prompt: "", retriever([]), budget=budget)
