"""D1, D12: the cut that serves an objective best, against trying every threshold in the policy itself."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.records import RetSignal
from adaptllm_chain.ret import Adaptive, Calibration, Evidence, Objective, choose_threshold
from adaptllm_chain.ret.calibration import FEW


class Row(NamedTuple):
    probability: float
    from_memory: bool
    with_passages: bool


Rows = list[Row]

# Many ties, both ends, and neighbours without a number between them.
hard = [0.0, 5e-324, 0.25, math.nextafter(0.5, 0), 0.5, math.nextafter(1, 0), 1.0]
probability = st.floats(0, 1) | st.sampled_from(hard)
rows_of = st.lists(st.builds(Row, probability, st.booleans(), st.booleans()), min_size=1, max_size=10)
budgets = st.floats(0, 1) | st.sampled_from([0.0, 0.2, 0.5, 1.0])
prices = st.floats(0, 2) | st.sampled_from([0.0, 0.1, 0.5, 1.0])


def calibrate(rows: Rows, **objective: float) -> Calibration:
    p, memory, passages = (list(column) for column in zip(*rows, strict=True))
    return choose_threshold(p, memory, passages, Objective(**objective))


def with_threshold(rows: Rows, threshold: float) -> tuple[int, int]:
    """How many are right, and how many retrieve, as the policy itself decides."""
    policy = Adaptive(threshold=threshold)
    routes = [
        policy.decide(
            Evidence(question="q", spelling="answer", signal=RetSignal(probability=row.probability, kind="exact"))
        ).route
        for row in rows
    ]
    right = [
        row.with_passages if route == "retrieve" else row.from_memory for row, route in zip(rows, routes, strict=True)
    ]
    return sum(right), routes.count("retrieve")


def every_division(rows: Rows) -> list[tuple[int, int]]:
    """A division of the questions is that of a probability, or that of 1: no threshold makes another."""
    return [with_threshold(rows, threshold) for threshold in {0.0, 1.0, *(row.probability for row in rows)}]


@given(rows_of, budgets, prices)
@example([Row(1.0, True, False)], 1.0, 0.0)
@example([Row(0.0, True, False), Row(5e-324, False, True)], 1.0, 0.0)
def test_no_threshold_does_better_and_none_as_good_retrieves_less(rows: Rows, budget: float, price: float) -> None:
    possible = [(right, k) for right, k in every_division(rows) if k / len(rows) <= budget]
    assume(possible)
    chosen = calibrate(rows, budget=budget, price=price)
    worth = {(right, k): right - Fraction(repr(price)) * k for right, k in possible}
    best = min((k, right) for (right, k), value in worth.items() if value == max(worth.values()))
    retrieved, right = best
    assert with_threshold(rows, chosen.threshold) == (right, retrieved)
    assert (chosen.accuracy, chosen.retrieved) == (right / len(rows), retrieved / len(rows))


@given(rows_of)
def test_never_and_always_are_the_ends(rows: Rows) -> None:
    chosen = calibrate(rows)
    assert chosen.never == sum(row.from_memory for row in rows) / len(rows)
    assert chosen.always == with_threshold(rows, 0.0)[0] / len(rows)
    assert chosen.accuracy >= chosen.always
    assert chosen.accuracy >= chosen.never or any(row.probability == 1 for row in rows)


@given(rows_of, budgets, budgets, prices)
def test_a_larger_budget_is_never_less_accurate(rows: Rows, one: float, other: float, price: float) -> None:
    low, high = sorted((one, other))
    assume(low >= sum(row.probability == 1 for row in rows) / len(rows))
    small, large = calibrate(rows, budget=low), calibrate(rows, budget=high)
    assert small.accuracy <= large.accuracy
    assert small.retrieved <= low
    assert calibrate(rows, budget=low, price=price).retrieved <= small.retrieved


@given(rows_of, prices, prices)
def test_a_higher_price_never_retrieves_more(rows: Rows, one: float, other: float) -> None:
    cheap, dear = (calibrate(rows, price=price) for price in sorted((one, other)))
    assert dear.retrieved <= cheap.retrieved
    assert dear.accuracy <= cheap.accuracy


@given(rows_of)
def test_the_order_of_the_questions_does_not_matter(rows: Rows) -> None:
    assert calibrate(rows) == calibrate(rows[::-1])


@pytest.mark.parametrize(
    ("needs", "threshold", "retrieved"),
    [
        # Midway between the neighbours, and between the outermost and the end of the scale.
        ((), (0.9 + 1) / 2, 0),
        ((0.9,), (0.3 + 0.9) / 2, 1),
        ((0.9, 0.3), (0.05 + 0.3) / 2, 2),
        ((0.9, 0.3, 0.05), 0.05 / 2, 3),
    ],
)
def test_d1_the_cut_lies_midway(needs: tuple[float, ...], threshold: float, retrieved: int) -> None:
    chosen = calibrate([Row(p, p not in needs, p in needs) for p in (0.9, 0.3, 0.05)])
    assert (chosen.threshold, chosen.retrieved, chosen.accuracy) == (threshold, retrieved / 3, 1.0)


# From the highest P on, passages win, change nothing, win, lose, win, lose: 2, 3, 3, 4, 3, 4, 3 are right.
SIX = [
    Row(0.95, False, True),
    Row(0.80, False, False),
    Row(0.70, False, True),
    Row(0.40, True, False),
    Row(0.20, False, True),
    Row(0.10, True, False),
]


@pytest.mark.parametrize(
    ("objective", "says", "threshold", "right", "retrieved"),
    [
        ({}, "the best accuracy", (0.4 + 0.7) / 2, 4, 3),  # five would be as good, and cost more
        ({"budget": 0.4}, "the best accuracy with at most 40 % of the questions retrieving", (0.8 + 0.95) / 2, 3, 1),
        ({"budget": 0.5}, "the best accuracy with at most 50 % of the questions retrieving", (0.4 + 0.7) / 2, 4, 3),
        ({"budget": 0.0}, "the best accuracy with at most 0 % of the questions retrieving", (0.95 + 1) / 2, 2, 0),
        ({"price": 0.3}, "the best accuracy less 0.3 for each retrieval", (0.4 + 0.7) / 2, 4, 3),  # 3.1 against 2.7
        ({"price": 0.5}, "the best accuracy less 0.5 for each retrieval", (0.8 + 0.95) / 2, 3, 1),  # both 2.5: fewer
        ({"price": 1.0}, "the best accuracy less 1 for each retrieval", (0.95 + 1) / 2, 2, 0),  # 2 and 3 - 1: fewer
        (
            {"price": 0.1, "budget": 0.3},
            "the best accuracy less 0.1 for each retrieval with at most 30 % of the questions retrieving",
            (0.8 + 0.95) / 2,
            3,
            1,
        ),
    ],
)
def test_d12_six_questions(
    objective: dict[str, float], says: str, threshold: float, right: int, retrieved: int
) -> None:
    chosen = calibrate(SIX, **objective)
    assert str(chosen.objective) == says
    assert chosen.threshold == threshold
    assert (chosen.accuracy, chosen.retrieved) == (right / 6, retrieved / 6)
    assert (chosen.questions, chosen.never, chosen.always) == (6, 2 / 6, 3 / 6)
    assert [note.partition(":")[0] for note in chosen.notes] == ["few questions"]


def test_enough_questions_are_not_called_few() -> None:
    assert calibrate([SIX[0]] * (FEW - 1)).notes
    assert not calibrate([SIX[0]] * FEW).notes


def test_a_price_is_what_was_typed() -> None:
    """Three retrievals at 0.1 cost 0.30000000000000004 in floats, ten at 0.3 less than 3: here they are ties."""
    for wins, retrievals, price in ((3, 10, 0.3), (1, 10, 0.1), (7, 10, 0.7)):
        rows = [Row(0.5, False, n < wins) for n in range(retrievals)]
        assert calibrate(rows, price=price).retrieved == 0


@pytest.mark.parametrize("count", [7, 14, 28, 29, 57, 58])
def test_a_budget_is_what_was_typed(count: int) -> None:
    """0.29 * 100 is 28.999999999999996, yet 29 questions of 100 are within 0.29."""
    rows = [Row(0.9 if n < count else 0.1, False, n < count) for n in range(100)]
    assert calibrate(rows, budget=float(f"0.{count:02}")).retrieved == count / 100


def test_no_threshold_holds_back_what_is_certain() -> None:
    rows = [Row(1.0, True, False), Row(1.0, True, False), Row(0.5, True, True), Row(0.4, True, True)]
    chosen = calibrate(rows)
    assert (chosen.threshold, chosen.retrieved, chosen.accuracy, chosen.never) == (0.75, 0.5, 0.5, 1.0)
    assert any("2 of 4 questions have P(<RET>) = 1" in note and "never_retrieve" in note for note in chosen.notes)
    assert calibrate(rows, budget=0.5).threshold == 0.75
    with pytest.raises(InvalidInputError, match=r"2 of 4 questions.*\n.*a budget of 0\.5 or more\n.*never_retrieve"):
        calibrate(rows, budget=0.49)
    # Where retrieving for them is right, nothing is left to say.
    helped = calibrate([Row(1.0, False, True)] * FEW)
    assert (helped.threshold, helped.notes) == (0.5, ())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], [], []), "there are no questions"),
        (([0.5], [True, False], [True]), "1 probabilities, 2 answers from memory and 1 with passages"),
        (([0.5], [True], []), "1 probabilities, 1 answers from memory and 0 with passages"),
        (([0.5, math.nan], [True, True], [True, True]), "is nan"),
        (([1.1], [True], [True]), "is 1.1"),
        (([-0.1], [True], [True]), "is -0.1"),
    ],
)
def test_what_nothing_can_be_chosen_from(arguments: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        choose_threshold(*arguments)


@pytest.mark.parametrize(
    "wrong", [{"budget": -0.1}, {"budget": 1.1}, {"budget": math.nan}, {"price": -1}, {"price": math.inf}]
)
def test_objectives_that_are_none(wrong: dict[str, float]) -> None:
    (name,) = wrong
    with pytest.raises(InvalidInputError, match=rf"the {name} is .*\n  expected: .*\n  try: 0\.\d"):
        Objective(**wrong)
