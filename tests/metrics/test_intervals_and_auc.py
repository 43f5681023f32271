from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.metrics import auc, wilson_interval


@pytest.mark.parametrize(
    ("successes", "total", "low", "high"),
    [
        # With z = 1.959964 and z² = 3.841459: n = 10, p = 0 gives 0 and z² / (n + z²).
        (0, 10, 0.0, 0.277533),
        (10, 10, 0.722467, 1.0),
        # p = .5, n = 100: .5 ± z / (2 · sqrt(n + z²)).
        (50, 100, 0.403832, 0.596168),
        # p = .5, n = 10: .5 ± 1.959964 / (2 · 3.720411).
        (5, 10, 0.236593, 0.763407),
        (1, 1, 0.206549, 1.0),
    ],
)
def test_wilson_by_hand(successes: int, total: int, low: float, high: float) -> None:
    assert wilson_interval(successes, total) == pytest.approx((low, high), abs=2e-6)


@given(st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_solves_its_equation_and_mirrors(counts: tuple[int, int]) -> None:
    successes, total = counts
    low, high = wilson_interval(successes, total)
    share = successes / total
    assert 0 <= low <= share <= high <= 1
    for end in (low, high):
        assert (share - end) ** 2 == pytest.approx(1.959963984540054**2 * end * (1 - end) / total, abs=1e-12)
    mirrored = wilson_interval(total - successes, total)
    assert (1 - mirrored[1], 1 - mirrored[0]) == pytest.approx((low, high))


def test_more_confidence_is_wider() -> None:
    narrow, wide = wilson_interval(3, 10, confidence=0.8), wilson_interval(3, 10, confidence=0.99)
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


@pytest.mark.parametrize(("successes", "total"), [(0, 0), (-1, 5), (6, 5)])
def test_wilson_refuses_what_is_no_proportion(successes: int, total: int) -> None:
    with pytest.raises(InvalidInputError):
        wilson_interval(successes, total)


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95.0])
def test_wilson_refuses_a_percentage(confidence: float) -> None:
    with pytest.raises(InvalidInputError, match="confidence"):
        wilson_interval(1, 2, confidence=confidence)


scored = st.lists(
    st.tuples(st.one_of(st.integers(0, 3).map(float), st.floats(allow_nan=False)), st.booleans()), max_size=40
).filter(lambda pairs: len({label for _, label in pairs}) == 2)


@given(scored)
def test_auc_counts_the_pairs(pairs: list[tuple[float, bool]]) -> None:
    positives = [score for score, label in pairs if label]
    negatives = [score for score, label in pairs if not label]
    won = sum((p > n) + 0.5 * (p == n) for p in positives for n in negatives)
    scores, labels = [score for score, _ in pairs], [label for _, label in pairs]
    area = auc(scores, labels)
    assert area == pytest.approx(won / (len(positives) * len(negatives)))
    assert auc(scores, [not label for label in labels]) == pytest.approx(1 - area)


def test_auc_extremes() -> None:
    assert auc([0.1, 0.9], [False, True]) == 1.0
    assert auc([0.1, 0.9], [True, False]) == 0.0
    assert auc([0.5] * 4, [True, False, True, False]) == 0.5


@pytest.mark.parametrize(
    ("scores", "labels"),
    [([1.0], [True, False]), ([1.0, 2.0], [True, True]), ([], []), ([float("nan"), 1.0], [True, False])],
)
def test_auc_refuses_what_has_no_area(scores: list[float], labels: list[bool]) -> None:
    with pytest.raises(InvalidInputError):
        auc(scores, labels)
