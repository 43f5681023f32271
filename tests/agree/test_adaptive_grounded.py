"""Both systems together: who decides, who answers, and what the answer is marked as."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.load import dumpd

from adaptllm_chain.agree import AdaptiveGroundedChain, GroundedAnswerChain, GroundingLoop, PostHocAttribution
from adaptllm_chain.chain import AdaptiveRetrievalChain
from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.ret import Adaptive, DecisionModelPolicy
from adaptllm_chain.testing import CountingRetriever, Reply, ScriptedLLM
from tests.agree.scenes import MODELS, ScriptedScorer, answer, cites, passages, retriever, word_for_word
from tests.chain.decision_scenes import ScriptedJudge
from tests.chain.scenes import all_ways, script

FOUND = ["It is old and grey.", "Rivers."]


def make(
    first: Any = "<RET>",
    drafted: Any = "It is old [1].",
    scorer: Any = None,
    loop: bool = False,
    grounder: dict[str, Any] | None = None,
    **adaptive: Any,
) -> Any:
    decider = AdaptiveRetrievalChain(
        llm=ScriptedLLM(script=script(first)), retriever=CountingRetriever(documents=["Never asked."]), **adaptive
    )
    kind = GroundingLoop if loop else GroundedAnswerChain
    citing = kind(llm=ScriptedLLM(script=lambda prompt: drafted), retriever=retriever(FOUND), **(grounder or {}))
    return AdaptiveGroundedChain(adaptive=decider, grounder=citing, scorer=scorer)


@pytest.mark.parametrize("loop", [False, True])
def test_what_it_does_not_know_is_grounded(loop: bool) -> None:
    chain = make(loop=loop)
    result = answer(chain, {"question": "q", "id": 7, "basis": "of the input"})
    assert (result["basis"], result["retrieved"], result["decision"].route) == ("passages", True, "retrieve")
    assert (result["answer"], result["sentences"]) == ("It is old [1].", [cites("It is old.", 1)])
    assert (result["context"], result["id"]) == (passages(*FOUND), 7)
    assert result.get("stopped") == ("supported" if loop else None)
    # One call of each model a question, and the adaptive chain's own retriever rests.
    assert len(chain.adaptive.llm.calls) == len(chain.grounder.llm.calls) == 6
    assert chain.adaptive.retriever.queries == []


def test_what_it_knows_is_marked_as_from_memory() -> None:
    chain = make("It is old. It is red.")
    result = answer(chain)
    assert (result["basis"], result["retrieved"], result["context"]) == ("memory", False, [])
    assert (result["answer"], result["unsupported"]) == ("It is old. It is red.", [])
    assert result["sentences"] == [cites("It is old."), cites("It is red.")]
    assert (chain.grounder.llm.calls, chain.grounder.retriever.queries) == ([], [])


def test_what_it_knows_is_checked_when_asked() -> None:
    result = answer(make("It is old. It is red.", scorer=ScriptedScorer(word_for_word)))
    assert (result["basis"], result["retrieved"], result["context"]) == ("checked", False, passages(FOUND[0]))
    assert result["answer"] == "It is old. It is red."
    assert result["sentences"] == [cites("It is old.", 1), cites("It is red.")]
    assert result["unsupported"] == ["It is red."]


def test_a_batch_is_a_call_for_each_model_and_a_search() -> None:
    chain = make()
    chain.adaptive.llm.script = lambda prompt: "It is red." if "known" in prompt else "<RET>"
    results = chain.batch(["known", "q", "r", "known"])
    assert [result["basis"] for result in results] == ["memory", "passages", "passages", "memory"]
    assert [len(call) for call in chain.adaptive.llm.calls] == [4]
    assert [len(call) for call in chain.grounder.llm.calls] == [2]
    assert chain.grounder.retriever.batches == [2]


@pytest.mark.parametrize("first", ["It is red.", "<RET>"])
def test_both_kinds_of_answer_are_streamed_live(first: str) -> None:
    chunks = list(make(first).stream("q"))
    pieces = [chunk["answer"] for chunk in chunks if "answer" in chunk]
    assert len(pieces) >= 3
    assert "RET" not in "".join(pieces)


def test_settings_of_a_call() -> None:
    chain = make("It is red.")
    assert answer(chain, config={"configurable": {"policy": "always_retrieve", "k": 1}})["context"] == passages(
        FOUND[0]
    )
    specs = {spec.id: spec.default for spec in chain.config_specs}
    assert (specs.keys(), specs["k"]) == ({"policy", "threshold", "k"}, 5)
    assert answer(chain, stop=["red"])["sentences"] == [cites("It is")]


def test_a_threshold_of_a_call() -> None:
    chain = make(Reply("It is red.", info={"ret_probability": 0.4}))
    results = [answer(chain, config={"configurable": {"threshold": threshold}}) for threshold in (0.3, 0.5)]
    assert [result["basis"] for result in results] == ["passages", "memory"]
    assert [result["decision"].threshold for result in results] == [0.3, 0.5]
    for wrong, message in (({"policy": "sometimes"}, "unknown policy"), ({"k": 0}, "k=0"), ({"threshold": 3}, "=3")):
        with pytest.raises(InvalidInputError, match=message):
            chain.invoke("q", config={"configurable": wrong})


def test_a_decision_model_decides() -> None:
    judge = ScriptedJudge(says=lambda question: float(question == "rare"))
    chain = make(policy=DecisionModelPolicy(model=judge))
    results = chain.batch(["rare", "common"])
    assert [(result["basis"], result["ret_probability"]) for result in results] == [("passages", 1.0), ("memory", 0.0)]
    assert judge.batches == [2]


@pytest.mark.parametrize(
    ("first", "stops", "said"),
    [
        ("It is\nold.\n\nOr not.", {"stop": ["\n\n"]}, "It is\nold."),
        ("<RET>", {"stop": ["\n\n"]}, "One [1]."),
        ("It is\nold.\n\nOr not.", {}, "It is\nold.\n\nOr not."),
    ],
)
def test_each_model_stops_at_the_texts_of_its_own_chain(first: str, stops: dict[str, Any], said: str) -> None:
    chain = make(first, drafted="One [1].\nTwo [2].\n\nThree.", grounder={"stop": ["\n"]}, **stops)
    assert answer(chain)["answer"] == said
    assert {tuple(stop or ()) for stop in chain.adaptive.llm.stops} == {tuple(stops.get("stop", ()))}
    assert all(stop == ["\n"] for stop in chain.grounder.llm.stops)
    # Those of a call are both chains'.
    assert answer(chain, stop=["old", "Two"])["answer"] == ("It is" if "old" in first else "One [1].")


def test_a_threshold_that_overrules_the_request_is_answered_from_memory() -> None:
    said = Reply("<RET>", info={"ret_probability": 0.2, "ret_probability_kind": "exact"})
    result = answer(make(said, policy=Adaptive(threshold=0.5)))
    assert (result["basis"], result["answer"], result["ret_probability"]) == ("memory", "By heart.", 0.2)


def test_wrong_settings() -> None:
    chain = make()
    with pytest.raises(InvalidInputError, match="grounder=PostHocAttribution"):
        AdaptiveGroundedChain(
            adaptive=chain.adaptive,
            grounder=PostHocAttribution(
                llm=chain.grounder.llm, retriever=chain.grounder.retriever, scorer=ScriptedScorer(word_for_word)
            ),
        )
    with pytest.raises(InvalidInputError, match="AdaptiveGroundedChain: grounder="):
        AdaptiveGroundedChain(adaptive=chain.adaptive, grounder=chain.adaptive)


def test_dumping_hides_the_models() -> None:
    model = ScriptedLLM(script={}).bind(api_key="secret")
    chain = AdaptiveGroundedChain(
        adaptive=AdaptiveRetrievalChain(llm=model, retriever=retriever([])),
        grounder=GroundedAnswerChain(llm=model, retriever=retriever([]), k=3),
    )
    dumped = json.dumps(dumpd(chain))
    assert "k=3" in dumped
    assert "secret" not in dumped


pieces = st.lists(
    st.sampled_from(["<", "RET>", "<RET>", "It is old", " [1]", ".", "\n", " ", ""]), min_size=1, max_size=5
)
replies = st.builds(
    lambda chunks, p: Reply("".join(chunks), tuple(chunks), {} if p is None else {"ret_probability": p}),
    pieces,
    st.none() | st.sampled_from([0.1, 0.9]),
)


@settings(max_examples=30, deadline=None)
@given(
    replies,
    replies,
    replies,
    st.sampled_from(["llm", "chat"]),
    st.sampled_from([None, 0.5]),
    st.booleans(),
    st.booleans(),
)
def test_all_ways_agree_on_anything(
    first: Reply, memory: Reply, draft: Reply, model: str, threshold: float | None, loop: bool, checked: bool
) -> None:
    chain = AdaptiveGroundedChain(
        adaptive=AdaptiveRetrievalChain(
            llm=MODELS[model](script(first, memory=memory)),
            retriever=CountingRetriever(),
            policy=Adaptive(threshold=threshold if first.info else None),
        ),
        grounder=(GroundingLoop if loop else GroundedAnswerChain)(
            llm=MODELS[model](lambda prompt: draft), retriever=retriever(FOUND)
        ),
        scorer=ScriptedScorer(word_for_word) if checked else None,
    )
    result, *others = all_ways(chain, {"question": "q", "id": 7})
    assert all(other == result for other in others)
    assert result["basis"] == ("passages" if result["retrieved"] else "checked" if checked else "memory")
    assert "<ret>" not in result["answer"].lower()
