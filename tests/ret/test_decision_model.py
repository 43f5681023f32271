"""The policy that asks a decision model, without a chain around it."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.decisions import ClassifierResponse, Noul, NoulAnswer, NoulCriteria
from langchain_core.runnables import Runnable, RunnableLambda

from adaptllm_chain.errors import InvalidInputError, MissingExtraError
from adaptllm_chain.records import RetSignal
from adaptllm_chain.ret import Adaptive, DecisionModelPolicy, Evidence, as_policy
from adaptllm_chain.testing import ScriptedLLM

unit = st.floats(0, 1)


def answers(probability: float) -> Runnable[Any, Any]:
    def answer(request: Any) -> ClassifierResponse:
        given = {name: NoulAnswer(type="noul", noul=probability) for name in request["questions"]}
        return ClassifierResponse(model="constant", answers=given)

    return RunnableLambda(answer)


def decide(policy: DecisionModelPolicy, question: str = "q") -> Any:
    signal = policy.judge.read(policy.judge.model.invoke(policy.judge.request(question)))
    return policy.decide(Evidence(question=question, signal=signal))


@given(unit, unit, unit)
def test_raising_the_threshold_never_retrieves_more(one: float, other: float, probability: float) -> None:
    low, high = (
        decide(DecisionModelPolicy(model=answers(probability), threshold=cut)).route for cut in sorted((one, other))
    )
    assert not (low == "direct" and high == "retrieve")


@given(unit)
def test_a_probability_that_is_the_threshold_retrieves(threshold: float) -> None:
    assert decide(DecisionModelPolicy(model=answers(threshold), threshold=threshold)).route == "retrieve"


@pytest.mark.parametrize(
    ("probability", "route", "side"), [(0.7312, "retrieve", "reaches"), (0.2, "direct", "is below")]
)
def test_the_decision_says_who_decided_and_how(probability: float, route: str, side: str) -> None:
    decision = decide(DecisionModelPolicy(model=answers(probability)))
    assert (decision.route, decision.rule, decision.threshold) == (route, "decision_model", 0.5)
    assert decision.signal == RetSignal(probability=probability, kind="judged")
    assert decision.reason.startswith("the decision model's probability")
    assert f"{probability:.3g}, {side} the threshold 0.5" in decision.reason


def test_what_is_asked() -> None:
    model = answers(0.5)
    judge = DecisionModelPolicy(
        model=model, instructions="Is it rare?", criteria={"true": "rare", "false": "common"}
    ).judge
    request = judge.request("who?")
    (asked,) = request["questions"].values()
    assert judge.model is model
    assert request["state"] == "who?"
    assert asked == Noul(instructions="Is it rare?", criteria=NoulCriteria(true="rare", false="common"))
    assert "look this question up" in str(DecisionModelPolicy(model=model).judge.noul.instructions)


@pytest.mark.parametrize("wrong", [None, "gpt", lambda request: request, ScriptedLLM(script={})])
def test_what_is_no_decision_model_is_refused_at_once(wrong: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"the decision model is a (?s:.*)RunnableLambda.*policy=Adaptive"):
        DecisionModelPolicy(model=wrong)


@pytest.mark.parametrize("wrong", [{"instructions": 3}, {"criteria": {"yes": "rare"}}, {"criteria": 3}])
def test_what_cannot_be_asked_is_refused_at_once(wrong: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"cannot be asked(?s:.*)instructions as text or JSON"):
        DecisionModelPolicy(model=answers(0.5), **wrong)


def test_wrong_settings() -> None:
    with pytest.raises(InvalidInputError, match="DecisionModelPolicy needs model"):
        DecisionModelPolicy()
    with pytest.raises(InvalidInputError, match=r"DecisionModelPolicy: threshold=2.*(?s:.*)threshold=0\.5"):
        DecisionModelPolicy(model=answers(0.5), threshold=2)
    with pytest.raises(InvalidInputError, match=r"policy=DecisionModelPolicy\(model=…\)"):
        as_policy(DecisionModelPolicy.name)


@pytest.mark.parametrize(
    "wrong", [None, 0.7, ClassifierResponse(model="m", answers={"other": NoulAnswer(type="noul", noul=0.7)})]
)
def test_a_response_without_the_answer_is_refused(wrong: Any) -> None:
    judge = DecisionModelPolicy(model=answers(0.5)).judge
    with pytest.raises(InvalidInputError, match=r"the decision model returned (?s:.*)ClassifierResponse"):
        judge.read(wrong)


@pytest.mark.parametrize("signal", [RetSignal(), RetSignal(probability=0.9, kind="exact")])
def test_what_the_language_model_says_is_no_judgement(signal: RetSignal) -> None:
    with pytest.raises(InvalidInputError, match="holds no answer of the decision model"):
        DecisionModelPolicy(model=answers(0.5)).decide(Evidence(question="q", signal=signal))


def test_a_langchain_without_decision_models_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langchain_core.decisions", None)
    monkeypatch.delitem(sys.modules, "adaptllm_chain.ret.langchain_decisions", raising=False)
    with pytest.raises(MissingExtraError, match=r"pip install -U 'langchain-core>=1\.8'"):
        DecisionModelPolicy(model=answers(0.5))
    with pytest.raises(MissingExtraError, match="no decision models"):
        import_module("adaptllm_chain.ret.langchain_decisions")
    assert Adaptive().judge is None
