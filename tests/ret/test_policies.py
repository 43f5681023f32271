"""D1, D2, D4, D5: what decides, and that it says why."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from adaptllm_chain.errors import InvalidInputError, MissingLogprobsError
from adaptllm_chain.records import RetSignal
from adaptllm_chain.ret import (
    Adaptive,
    AlwaysRetrieve,
    Evidence,
    NeverRetrieve,
    Policy,
    PopularityThreshold,
    Spelling,
    as_policy,
)


def seen(probability: float | None = None, spelling: Spelling = "answer", kind: str = "exact") -> Evidence:
    known = RetSignal() if probability is None else RetSignal(probability=probability, kind=kind)  # type: ignore[arg-type]
    return Evidence(question="q", spelling=spelling, signal=known)


@pytest.mark.parametrize(("threshold", "retrieved"), [(0.2, 2), (0.5, 1), (0.95, 0)])
def test_d1_thresholds(threshold: float, retrieved: int) -> None:
    decisions = [Adaptive(threshold=threshold).decide(seen(p)) for p in (0.9, 0.3, 0.05)]
    assert sum(decision.route == "retrieve" for decision in decisions) == retrieved
    assert all(decision.threshold == threshold and decision.rule == "probability" for decision in decisions)


unit = st.floats(0, 1)


@given(unit, unit, unit, st.sampled_from(["exact", "first_piece", "upper_bound"]))
def test_d1_raising_a_threshold_never_retrieves_more(one: float, other: float, p: float, kind: str) -> None:
    low, high = (Adaptive(threshold=cut).decide(seen(p, kind=kind)).route for cut in sorted((one, other)))
    assert not (low == "direct" and high == "retrieve")


def test_d2_an_upper_bound_answers_directly_and_says_so() -> None:
    decision = Adaptive(threshold=0.1).decide(seen(0.3, kind="upper_bound"))
    assert decision.route == "direct"
    assert "at most 0.3" in decision.reason
    assert "undecided" in decision.reason
    assert "undecided" not in Adaptive(threshold=0.5).decide(seen(0.3, kind="upper_bound")).reason


def test_d5_the_token_rule_and_the_probability_rule_may_differ() -> None:
    evidence = seen(0.4, spelling="marker")
    assert Adaptive().decide(evidence).route == "retrieve"
    assert Adaptive(threshold=0.5).decide(evidence).route == "direct"


@pytest.mark.parametrize("spelling", ["marker", "cut_off", "empty"])
def test_the_token_rule_says_why(spelling: Spelling) -> None:
    decision = Adaptive().decide(seen(spelling=spelling))
    assert (decision.route, decision.rule) == ("retrieve", "token")
    assert decision.reason


def test_a_threshold_without_logprobs_names_the_way_out() -> None:
    with pytest.raises(MissingLogprobsError, match="logprobs=True"):
        Adaptive(threshold=0.5).decide(seen())


@pytest.mark.parametrize("threshold", [-0.1, 1.1, float("nan")])
def test_thresholds_are_probabilities(threshold: float) -> None:
    with pytest.raises(InvalidInputError, match=r"Adaptive: threshold=.*\n.*expected: .*\n.*try: threshold=0\.5"):
        Adaptive(threshold=threshold)


def test_wrong_settings_are_our_errors() -> None:
    with pytest.raises(InvalidInputError, match=r"PopularityThreshold: threshold=-1.*\n.*greater than or equal to 0"):
        PopularityThreshold(threshold=-1)
    with pytest.raises(InvalidInputError, match="PopularityThreshold needs threshold"):
        PopularityThreshold()  # type: ignore[call-arg]
    with pytest.raises(InvalidInputError, match=r"no setting 'treshold'\n.*one of threshold"):
        Adaptive(treshold=0.5)  # type: ignore[call-arg]
    with pytest.raises(InvalidInputError, match=r"no setting 'threshold'\n.*no settings"):
        NeverRetrieve(threshold=0.5)  # type: ignore[call-arg]


@given(unit)
def test_a_probability_that_is_the_threshold_retrieves(threshold: float) -> None:
    for kind in ("exact", "first_piece"):
        assert Adaptive(threshold=threshold).decide(seen(threshold, kind=kind)).route == "retrieve"


def test_nan_is_unknown() -> None:
    with pytest.raises(MissingLogprobsError):
        Adaptive(threshold=0.5).decide(seen(math.nan))


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf, "1200", True, [3]])
def test_a_popularity_that_is_no_number(wrong: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"popularity of 'q' in the lookup is"):
        PopularityThreshold(threshold=100, lookup=lambda question: wrong).decide(Evidence(question="q"))
    with pytest.raises(InvalidInputError, match=r"popularity of 'q' in the input is"):
        PopularityThreshold(threshold=100).decide(Evidence(question="q", popularity=wrong))


@pytest.mark.parametrize("number", [100, 100.0, Fraction(100), np.float32(100), np.int64(100)])
def test_a_popularity_may_be_any_real_number(number: Any) -> None:
    policy = PopularityThreshold(threshold=100, lookup=lambda question: number)
    assert policy.decide(Evidence(question="q")).route == "direct"
    assert policy.decide(Evidence(question="q", popularity=number)).route == "direct"


def test_popularity() -> None:
    policy = PopularityThreshold(threshold=100)
    assert policy.decide(Evidence(question="q", popularity=100)).route == "direct"
    assert policy.decide(Evidence(question="q", popularity=99)).route == "retrieve"
    looked_up = PopularityThreshold(threshold=100, lookup={"known": 500.0}.get)
    assert looked_up.decide(Evidence(question="known")).route == "direct"
    assert looked_up.decide(Evidence(question="known", popularity=1)).route == "retrieve"
    for asked in (policy, looked_up):
        with pytest.raises(InvalidInputError, match="popularity"):
            asked.decide(Evidence(question="unknown"))


def test_names() -> None:
    assert as_policy("never_retrieve") == NeverRetrieve()
    assert as_policy("always_retrieve") == AlwaysRetrieve()
    assert as_policy("adaptive") == Adaptive(threshold=None)
    own = Adaptive(threshold=0.3)
    assert as_policy(own) is own
    with pytest.raises(InvalidInputError, match="PopularityThreshold"):
        as_policy("popularity")
    for wrong in ("sometimes", 3, None):
        with pytest.raises(InvalidInputError, match="never_retrieve"):
            as_policy(wrong)  # type: ignore[arg-type]


def test_policies_are_frozen_and_cannot_be_half_made() -> None:
    with pytest.raises(ValidationError):
        Adaptive().threshold = 0.5  # type: ignore[misc]
    with pytest.raises(TypeError):
        Policy()  # type: ignore[abstract]
