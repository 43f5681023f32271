"""Reliability, by hand and against scikit-learn."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.evaluation.reliability import reliability

# Few values, so that ties are frequent.
pairs_of = st.lists(
    st.tuples(st.one_of(st.sampled_from([0.0, 0.25, 1.0]), st.floats(0, 1)), st.booleans()), min_size=1, max_size=40
)


def test_by_hand() -> None:
    result = reliability([0.1, 0.3, 0.6, 0.8, 0.8], [False, True, True, True, False], bins=2)
    # Five in two bins: the third has its middle at half the count, and goes up.
    assert [(part.wrong, part.count) for part in result.bins] == [(0.5, 2), (2 / 3, 3)]
    assert [part.probability for part in result.bins] == pytest.approx([0.2, 2.2 / 3])
    # (2 · .3 + 3 · (2.2 - 2) / 3) / 5 and (.01 + .49 + .16 + .04 + .64) / 5.
    assert result.calibration_error == pytest.approx(0.16)
    assert result.brier == pytest.approx(0.268)


def test_what_is_certain_and_right_has_no_error() -> None:
    result = reliability([0.0, 1.0, 1.0], [False, True, True])
    assert (result.calibration_error, result.brier) == (0.0, 0.0)
    worst = reliability([0.0, 1.0, 1.0], [True, False, False])
    assert (worst.calibration_error, worst.brier) == (1.0, 1.0)


@given(pairs_of, st.integers(1, 12), st.randoms(use_true_random=False))
def test_ties_stay_together_and_the_order_does_not_matter(
    pairs: list[tuple[float, bool]], bins: int, random: Random
) -> None:
    result = reliability([p for p, _ in pairs], [label for _, label in pairs], bins=bins)
    assert sum(part.count for part in result.bins) == len(pairs)
    assert len(result.bins) <= bins
    ordered = sorted(p for p, _ in pairs)
    at = 0
    for part in result.bins[:-1]:
        at += part.count
        assert ordered[at - 1] < ordered[at]
    random.shuffle(pairs)
    assert reliability([p for p, _ in pairs], [label for _, label in pairs], bins=bins) == result


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60, unique=True), st.integers(1, 12))
def test_without_ties_counts_are_equal_but_for_one(probabilities: list[float], bins: int) -> None:
    result = reliability(probabilities, [True] * len(probabilities), bins=bins)
    counts = [part.count for part in result.bins]
    assert max(counts) - min(counts) <= 1
    assert len(counts) == min(bins, len(probabilities))


@pytest.fixture(scope="module")
def reference() -> tuple[Any, Any]:
    calibration = pytest.importorskip("sklearn.calibration")
    return calibration.calibration_curve, pytest.importorskip("sklearn.metrics").brier_score_loss


@given(
    st.integers(1, 6).flatmap(lambda n: st.lists(st.integers(0, 1000), min_size=5 * n, max_size=5 * n, unique=True)),
    st.integers(0, 2**30),
)
def test_it_equals_scikit_learn(reference: tuple[Any, Any], thousandths: list[int], bits: int) -> None:
    calibration_curve, brier_score_loss = reference
    probabilities = [number / 1000 for number in thousandths]
    labels = [bool(bits >> at & 1) for at in range(len(probabilities))]
    result = reliability(probabilities, labels, bins=5)
    wrong, predicted = calibration_curve(labels, probabilities, n_bins=5, strategy="quantile", pos_label=True)
    assert [part.wrong for part in result.bins] == pytest.approx(list(wrong))
    assert [part.probability for part in result.bins] == pytest.approx(list(predicted))
    assert result.brier == pytest.approx(brier_score_loss(labels, probabilities, pos_label=True))


@pytest.mark.parametrize(
    ("probabilities", "labels", "bins", "problem"),
    [
        ([], [], 10, "0 probabilities"),
        ([0.5], [True, False], 10, "1 probabilities and 2 labels"),
        ([0.5, 1.5], [True, False], 10, "1.5"),
        ([0.5, float("nan")], [True, False], 10, "nan"),
        ([0.5], [True], 0, "0 bins"),
    ],
)
def test_what_has_no_reliability_is_refused(
    probabilities: list[float], labels: list[bool], bins: int, problem: str
) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        reliability(probabilities, labels, bins=bins)
