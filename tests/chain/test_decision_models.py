"""A decision model as the chain's policy: waves, isolation, traces, in every way of running a chain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.decisions import ClassifierResponse
from langchain_core.runnables import ConfigurableField, Runnable, RunnableLambda

from adaptllm_chain.chain import AdaptiveRetrievalChain
from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.ret import DecisionModelPolicy
from adaptllm_chain.testing import CountingRetriever, ScriptedLLM
from tests.chain.decision_scenes import ScriptedJudge
from tests.chain.scenes import WAYS, make, script, summary
from tests.chain.test_batch import BATCHES, QUESTIONS
from tests.chain.test_callbacks import Collector, Decisions, leaves


@pytest.fixture(params=BATCHES)
def ask_all(request: pytest.FixtureRequest) -> Callable[..., list[Any]]:
    return BATCHES[request.param]


def judged_by(model: Runnable[Any, Any], threshold: float = 0.5) -> AdaptiveRetrievalChain:
    return make("<RET>", policy=DecisionModelPolicy(model=model, threshold=threshold))


def rare(question: str) -> float:
    """The eighths: of the eight questions, those from the fifth on reach one half."""
    return int(question[-1]) / 8


def test_yes_retrieves_and_no_answers_from_memory(ask: Any) -> None:
    chain = judged_by(ScriptedJudge(says={"rare?": 0.75, "common?": 0.25}.__getitem__))
    yes, no = ask(chain, "rare?"), ask(chain, "common?")
    assert summary(yes) == ("From the passage.", "retrieve", True, 2)
    assert summary(no) == ("By heart.", "direct", False, 0)
    assert [result["ret_probability"] for result in (yes, no)] == [0.75, 0.25]
    assert [result["decision"].rule for result in (yes, no)] == ["decision_model"] * 2
    assert "0.75, reaches the threshold 0.5" in yes["decision"].reason


@settings(max_examples=25, deadline=None)
@given(st.floats(0, 1), st.floats(0, 1), st.sampled_from([None, ["p"]]))
def test_all_ways_agree(probability: float, threshold: float, found: list[str] | None) -> None:
    policy = DecisionModelPolicy(model=ScriptedJudge(says=lambda state: probability), threshold=threshold)
    chain = make("<RET>", found=found or [], policy=policy)
    first, *others = [way(chain, {"question": "who?", "id": 7}) for way in WAYS.values()]
    assert all(other == first for other in others)
    assert first["retrieved"] == (probability >= threshold)
    assert first["ret_probability"] == probability


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=6), st.floats(0, 1), st.floats(0, 1))
def test_raising_the_threshold_never_retrieves_more(said: list[float], one: float, other: float) -> None:
    judge = ScriptedJudge(says=lambda question: said[int(question)])
    low, high = (
        {
            result["input"]
            for result in judged_by(judge, cut).batch(list(map(str, range(len(said)))))
            if result["retrieved"]
        }
        for cut in sorted((one, other))
    )
    assert high <= low


def test_one_call_for_all_questions_and_none_with_the_parametric_prompt(ask_all: Any) -> None:
    judge = ScriptedJudge(says=rare)
    chain = judged_by(judge)
    results = ask_all(chain, QUESTIONS)
    assert judge.batches == [8]
    assert sorted(judge.asked) == QUESTIONS
    assert [result["retrieved"] for result in results] == [False] * 4 + [True] * 4
    assert chain.retriever.batches == [4]
    # Both kinds of prompt in one call.
    assert [len(call) for call in chain.llm.calls] == [8]
    assert not any("If you need help" in prompt for prompt in chain.llm.calls[0])


def test_a_question_that_the_decision_model_fails_on_fails_alone(ask_all: Any) -> None:
    def fails(question: str) -> float:
        if question == "question 4":
            raise ZeroDivisionError(question)
        return rare(question)

    chain = judged_by(ScriptedJudge(says=fails))
    results = ask_all(chain, [*QUESTIONS, " "], return_exceptions=True)
    assert [type(result) for result in results if isinstance(result, Exception)] == [
        ZeroDivisionError,
        InvalidInputError,
    ]
    assert [summary(result)[1] for result in results[:4] + results[5:8]] == ["direct"] * 4 + ["retrieve"] * 3
    with pytest.raises(ZeroDivisionError):
        ask_all(chain, QUESTIONS)


def test_it_fails_one_question_in_every_way(ask: Any) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        ask(judged_by(ScriptedJudge(says=rare)), "no number")


def test_a_decision_model_that_fails_as_a_whole_is_asked_for_less(ask_all: Any) -> None:
    class Fragile(ScriptedJudge):
        def batch(self, inputs: list[Any], *args: Any, **kwargs: Any) -> Any:
            if len(inputs) > 4:
                raise MemoryError
            return super().batch(inputs, *args, **kwargs)

        async def abatch(self, inputs: list[Any], *args: Any, **kwargs: Any) -> Any:
            if len(inputs) > 4:
                raise MemoryError
            return await super().abatch(inputs, *args, **kwargs)

    judge = Fragile(says=rare)
    assert sum(result["retrieved"] for result in ask_all(judged_by(judge), QUESTIONS)) == 4
    assert judge.batches == [4, 4]


def test_a_response_without_an_answer_fails_its_question_alone(ask_all: Any) -> None:
    judge = ScriptedJudge(says=rare)

    def answer(request: Any) -> ClassifierResponse:
        if request["state"] == "question 4":
            return ClassifierResponse(model="m", answers={})
        return judge.invoke(request)

    results = ask_all(judged_by(RunnableLambda(answer)), QUESTIONS, return_exceptions=True)
    assert [isinstance(result, InvalidInputError) for result in results] == [index == 4 for index in range(8)]
    assert "the decision model returned" in str(results[4])


@pytest.mark.parametrize("wrap", [lambda judge: judge.with_retry(), lambda judge: judge.with_config(tags=["judge"])])
def test_any_runnable_with_the_same_contract(ask: Any, wrap: Any) -> None:
    chain = judged_by(wrap(ScriptedJudge(says=rare)))
    assert [ask(chain, question)["retrieved"] for question in ("question 3", "question 4")] == [False, True]


def test_the_judgement_stands_in_the_trace(ask: Any) -> None:
    tracer, handler = Collector(), Decisions()
    chain = judged_by(ScriptedJudge(says=rare))
    result = ask(chain, "question 4", config={"callbacks": [tracer, handler], "tags": ["mine"]})
    (root,) = tracer.roots
    calls = leaves(root)
    assert [run.name for run in calls] == ["ScriptedJudge", "CountingRetriever", "ScriptedLLM"]
    assert all("mine" in (run.tags or []) and run.error is None for run in calls)
    assert "adaptllm:consult" in (calls[0].tags or [])
    assert handler.heard == [("decision", result["decision"])]


def test_each_judgement_stands_under_its_question(ask_all: Any) -> None:
    tracer = Collector()
    ask_all(judged_by(ScriptedJudge(says=rare)), QUESTIONS, config={"callbacks": [tracer]})
    assert [run.parent_run_id for run in tracer.roots] == [None] * 8
    assert sorted(len(leaves(root)) for root in tracer.roots) == [2] * 4 + [3] * 4
    for root in tracer.roots:
        assert root.inputs["input"] == leaves(root)[0].inputs["state"]


def test_the_fallbacks_are_those_of_the_chain(ask: Any) -> None:
    policy = DecisionModelPolicy(model=ScriptedJudge(says=lambda state: 1.0))
    result = ask(make(script("?"), found=[], policy=policy, on_empty="abstain"), "q")
    assert result["answer"] == "I don't know."
    assert "reaches the threshold 0.5; the search brought nothing: abstained" in result["decision"].reason


def test_it_may_retrieve_so_it_needs_a_retriever() -> None:
    policy = DecisionModelPolicy(model=ScriptedJudge(says=rare))
    with pytest.raises(InvalidInputError, match=r"'decision_model' may retrieve, but there is no retriever"):
        AdaptiveRetrievalChain(llm=ScriptedLLM(script={}), policy=policy)


def test_its_configurable_fields_are_the_chains(ask: Any) -> None:
    class Constant(ScriptedJudge):
        constant: float = 0.0

        def _classify(self, state: Any, questions: dict[str, Any]) -> ClassifierResponse:
            return ScriptedJudge(says=lambda _: self.constant)._classify(state, questions)

    judge = Constant(says=rare).configurable_fields(constant=ConfigurableField(id="judge_constant"))
    chain = AdaptiveRetrievalChain(
        llm=ScriptedLLM(script=script("?")), retriever=CountingRetriever(), policy=DecisionModelPolicy(model=judge)
    )
    assert "judge_constant" in {spec.id for spec in chain.config_specs}
    assert ask(chain, "q")["ret_probability"] == 0.0
    assert ask(chain, "q", config={"configurable": {"judge_constant": 0.25}})["ret_probability"] == 0.25
