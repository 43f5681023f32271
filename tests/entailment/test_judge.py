"""A chat model as a judge: what it is asked, and how its reply is read."""

from __future__ import annotations

from math import exp, log
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.runnables import RunnableLambda

from adaptllm_chain.entailment import JudgeScorer
from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.testing import ScriptedChatModel
from adaptllm_chain.testing.script import Reply

PAIR = ("The mill was built in 1881.", "The mill is old.")


def judged(reply: str | Reply, **arguments: Any) -> float:
    (score,) = JudgeScorer(ScriptedChatModel(script=lambda _: reply), **arguments).score([PAIR])
    return score


def reply(text: str, *tokens: tuple[str, float, dict[str, float]]) -> Reply:
    rows = [
        {
            "token": token,
            "logprob": log(probability),
            "top_logprobs": [{"token": name, "logprob": log(value)} for name, value in listed.items()],
        }
        for token, probability, listed in tokens
    ]
    return Reply(text, info={"logprobs": {"content": rows}})


@pytest.mark.parametrize(
    "text", ["Yes", "yes.", " YES", "**Yes**", "Yes, it does.", "<think>No, wait. Yes.</think>\nYes"]
)
def test_yes_is_1(text: str) -> None:
    assert judged(text) == 1.0


@pytest.mark.parametrize("text", ["No", "no.", '"No"', "No - yes would be wrong", "<think>Yes?</think>No"])
def test_no_is_0(text: str) -> None:
    assert judged(text) == 0.0


@pytest.mark.parametrize("text", ["", "Maybe", "Nothing supports it", "Yesterday", "The answer is yes", "<think>Yes"])
def test_anything_else_is_an_error_that_shows_it_or_the_score_that_was_asked_for(text: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        judged(text)
    assert repr(text) in str(caught.value)
    assert "unclear=0.0" in str(caught.value)
    assert judged(text, unclear=0.25) == 0.25


def test_probabilities_are_weighed_where_they_are_reported() -> None:
    assert judged(reply("Yes", ("Yes", 0.6, {"Yes": 0.6, "No": 0.2}))) == pytest.approx(0.75)
    assert judged(reply("No", ("No", 0.5, {"No": 0.5, " yes": 0.1, "Yes": 0.2, "Hm": 0.1}))) == pytest.approx(0.375)


@given(st.floats(min_value=exp(-9), max_value=1))
def test_without_the_other_word_all_the_rest_counts_as_its(probability: float) -> None:
    assert judged(reply("Yes", ("Yes", probability, {"Yes": probability}))) == pytest.approx(probability)
    assert judged(reply("No", ("No", probability, {}))) == pytest.approx(1 - probability)


def test_the_place_of_the_reply_is_weighed_not_that_of_a_thought() -> None:
    thought = ("<think>", 1.0, {}), ("Yes", 0.9, {"Yes": 0.9, "No": 0.1}), ("</think>", 1.0, {})
    said = ("Yes", 0.3, {"Yes": 0.3, "No": 0.2})
    assert judged(reply("<think>Yes</think>Yes", *thought, said)) == pytest.approx(0.6)


def test_log_probabilities_of_other_tokens_leave_the_word() -> None:
    assert judged(reply("Yes", ("Ye", 0.6, {"Ye": 0.6}), ("s", 1.0, {}))) == 1.0


@given(st.lists(st.sampled_from(["Yes", "No"]), max_size=8))
def test_pairs_are_scored_in_order(replies: list[str]) -> None:
    script = {f"statement {place}.": text for place, text in enumerate(replies)}
    scores = JudgeScorer(ScriptedChatModel(script=script)).score(
        [("p", f"statement {n}.") for n in range(len(replies))]
    )
    assert scores == [float(text == "Yes") for text in replies]


async def test_async_gives_the_same_and_calls_the_model_as_often() -> None:
    model = ScriptedChatModel(script={"is old": "Yes", "is new": "No"})
    scorer = JudgeScorer(model)
    pairs = [PAIR, (PAIR[0], "The mill is new.")]
    assert await scorer.ascore(pairs) == scorer.score(pairs) == [1.0, 0.0]
    assert len(model.calls) == 4


def test_texts_reach_the_model_as_they_are() -> None:
    model = ScriptedChatModel(script=lambda _: "No")
    JudgeScorer(model).score([("a {hypothesis} {0}", "a {premise} {")])
    assert "a {hypothesis} {0}" in model.calls[0]
    assert "a {premise} {" in model.calls[0]


def test_a_runnable_that_gives_text_is_a_judge_too() -> None:
    seen = []
    judge = RunnableLambda(lambda messages: seen.append(messages) or "Yes")
    assert JudgeScorer(judge, instructions="Be strict.").score([PAIR]) == [1.0]
    assert seen[0][0].content == "Be strict."


def test_errors() -> None:
    with pytest.raises(InvalidInputError, match="a LangChain chat model"):
        JudgeScorer("gpt")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="unclear is 2"):
        JudgeScorer(ScriptedChatModel(script={}), unclear=2)
    with pytest.raises(InvalidInputError, match="blank"):
        JudgeScorer(ScriptedChatModel(script={})).score([("", "x")])
