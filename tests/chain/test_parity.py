"""invoke == ainvoke == batch == abatch == joined stream == joined astream, whatever the model says."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptllm_chain.ret import Adaptive, PopularityThreshold
from adaptllm_chain.testing import Reply
from tests.chain.scenes import MODELS, all_ways, make, script

POLICIES: dict[str, Any] = {
    "never": "never_retrieve",
    "always": "always_retrieve",
    "token": Adaptive(),
    "probability": Adaptive(threshold=0.5),
    "popularity": PopularityThreshold(threshold=3, lookup=lambda question: float(len(question))),
}


def likely(text: str, probability: float, *chunks: str) -> Reply:
    return Reply(text, chunks, {"ret_probability": probability, "ret_probability_kind": "exact"})


OUTPUTS = {
    "request": likely("<RET>", 0.9, "<", "RE", "T>"),
    "unlikely request": likely("\n<RET>. And more", 0.1, "\n", "<RET", ">. And", " more"),
    "answer": likely(" Paris, the city\nQ: next", 0.1, " Par", "is, the ", "city", "\n", "Q: ", "next"),
    "doubted answer": likely("<b>Paris</b> I need <RET> now", 0.9, "<", "b>Paris</b> I need <", "RET> no", "w"),
    "nothing": likely("", 0.2, "", ""),
    "cut off": likely("Paris <RE", 0.2, "Paris", " <RE"),
}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("model", MODELS)
def test_all_ways_agree(policy: str, output: str, model: str) -> None:
    said = OUTPUTS[output]
    for stop in (None, ["\n"]):
        chain = make(script(said, context=said, memory=said), model=model, policy=POLICIES[policy], stop=stop)
        first, *others = all_ways(chain, "who?")
        assert all(other == first for other in others)
        assert isinstance(first, tuple) == (model == "runnable" and policy == "probability")


pieces = st.lists(
    st.sampled_from(["<", "RET", ">", "<RET>", "<RE", "\n", " ", "Paris", "Q:", ""]), min_size=1, max_size=5
)
replies = st.builds(
    lambda chunks, p: Reply("".join(chunks), tuple(chunks), {} if p is None else {"ret_probability": p}),
    pieces,
    st.none() | st.sampled_from([0.1, 0.9]),
)


@settings(max_examples=60, deadline=None)
@given(
    replies,
    replies,
    replies,
    st.sampled_from(["llm", "chat"]),
    st.sampled_from(sorted(POLICIES)),
    st.sampled_from(["answer", "abstain", "raise"]),
    st.sampled_from([[], ["a"], ["a", "b"]]),
    st.sampled_from([None, ["\n"], ["Q:", " P"]]),
    st.integers(1, 2),
)
def test_all_ways_agree_on_anything(
    first: Reply,
    context: Reply,
    memory: Reply,
    model: str,
    policy: str,
    on_empty: str,
    found: list[str],
    stop: list[str] | None,
    max_rounds: int,
) -> None:
    chain = make(
        script(first, context=context, memory=memory),
        found=found,
        model=model,
        policy=POLICIES[policy],
        on_empty=on_empty,
        stop=stop,
        max_rounds=max_rounds,
    )
    result, *others = all_ways(chain, {"question": "who?", "id": 7})
    assert all(other == result for other in others)
    if isinstance(result, dict):
        assert set(result) == {
            *("id", "question", "input", "context", "answer", "retrieved", "ret_probability", "decision"),
        }
        assert "<ret>" not in result["answer"].lower()
        assert result["retrieved"] == (result["decision"].route == "retrieve")
