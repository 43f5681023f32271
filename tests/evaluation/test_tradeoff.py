"""Accuracy against retrieval share, worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.evaluation import Judgement, Prediction, trade_off


def said(number: int, right: bool, route: str = "direct", probability: float | None = None) -> Judgement:
    fields: dict[str, Any] = {
        "id": str(number),
        "question": f"q{number}",
        "answers": ("yes",),
        "reason": "",
        "route": route,
    }
    answer = "yes" if right else "no"
    return Judgement.of(Prediction(**fields, answer=answer, ret_probability=probability, popularity=None))


NEVER = [said(0, True), said(1, False), said(2, True), said(3, False)]
ALWAYS = [said(n, right, "retrieve") for n, right in enumerate((True, True, False, False))]
# Question 3 was answered from memory by another prompt than the closed-book one, and rightly.
ADAPTIVE = [
    said(0, True, "direct", 0.1),
    said(1, True, "retrieve", 0.9),
    said(2, False, "retrieve", 0.6),
    said(3, True, "direct", 0.2),
]


def test_every_threshold_gives_what_the_chain_would_have_answered() -> None:
    bounds = trade_off(ADAPTIVE, NEVER, ALWAYS, points=5)
    # Sorted by P(<RET>): 0 (memory right, passage right), 3 (right, wrong), 2 (right, wrong), 1 (wrong, right).
    assert [(p.threshold, p.retrieved.count, p.containment.count) for p in bounds.points] == [
        (None, 0, 3), (0.9, 1, 4), (0.6, 2, 3), (0.2, 3, 2), (0.1, 4, 2),
    ]  # fmt: skip
    assert bounds.oracle.count == 4
    assert bounds.oracle_retrieved.count == 1


@given(
    st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans(), st.floats(0, 1)), min_size=1, max_size=30),
    st.integers(2, 9),
)
def test_bounds(rows: list[tuple[bool, bool, bool, float]], points: int) -> None:
    never = [said(n, a) for n, (a, _, _, _) in enumerate(rows)]
    always = [said(n, b, "retrieve") for n, (_, b, _, _) in enumerate(rows)]
    adaptive = [said(n, b, "retrieve" if p else "direct", x) for n, (_, b, p, x) in enumerate(rows)]
    bounds = trade_off(adaptive, never, always, points=points)
    shares = [point.retrieved.count for point in bounds.points]
    assert shares == sorted(set(shares))
    assert (shares[0], shares[-1]) == (0, len(rows))
    assert bounds.points[-1].containment.count == sum(b for _, b, _, _ in rows)
    assert all(point.containment.count <= bounds.oracle.count for point in bounds.points)


def test_modes_that_do_not_fit_together_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="different questions"):
        trade_off(ADAPTIVE, NEVER[::-1], ALWAYS)
    with pytest.raises(InvalidInputError, match="P\\(<RET>\\)"):
        trade_off(NEVER, NEVER, ALWAYS)
