"""Figures with intervals: against direct computation, Wilson's interval, literal repetition, and simulated data."""

from __future__ import annotations

import random
import subprocess
import sys
import tracemalloc
from itertools import chain, repeat

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.evaluation.estimate import Estimate
from adaptllm_chain.evaluation.resampling import Resamples, wilson_share
from adaptllm_chain.metrics import auc, wilson_interval

# Score from few values so that ties are frequent, label, and whether the question counts.
questions = st.lists(
    st.tuples(st.one_of(st.integers(0, 3).map(float), st.floats(-1e9, 1e9)), st.booleans(), st.booleans()),
    min_size=1,
    max_size=12,
)
Row = tuple[float, bool, bool]


def percentiles(figures: list[float]) -> tuple[float, float]:
    low, high = np.percentile(figures, [2.5, 97.5])
    return pytest.approx(low), pytest.approx(high)


def repeated(resamples: Resamples, rows: list[Row]) -> list[list[Row]]:
    """Each draw as the rows that it holds, written out."""
    return [
        list(chain.from_iterable(repeat(row, int(count)) for row, count in zip(rows, counts, strict=True)))
        for counts in resamples.counts
    ]


def test_the_draws_are_multinomial() -> None:
    resamples = Resamples(300, draws=4000, seed=5)
    assert resamples.counts.shape == (4000, 300)
    assert (resamples.counts.sum(axis=1) == 300).all()
    # Of a multinomial: mean 1, variance 1 - 1/n of each count, correlation -1/(n - 1) of any two.
    assert resamples.counts.var(axis=0).mean() == pytest.approx(1 - 1 / 300, abs=0.01)
    assert abs(resamples.counts.mean(axis=0) - 1).max() < 5 / 4000**0.5


def test_few_questions_are_drawn_more_often_than_a_byte_could_hold_in_no_size() -> None:
    assert (Resamples(1, draws=40).counts == 1).all()
    assert (Resamples(255, draws=40).counts.sum(axis=1) == 255).all()


def test_the_seed_decides() -> None:
    flags = [number % 3 == 0 for number in range(200)]
    first, again, other = (Resamples(200, draws=100, seed=seed).share(flags) for seed in (1, 1, 2))
    assert first == again
    assert first != other


@settings(deadline=None)
@given(questions)
def test_every_figure_is_that_of_literally_repeated_rows(rows: list[Row]) -> None:
    resamples = Resamples(len(rows), draws=50)
    scores, labels, among = (list(column) for column in zip(*rows, strict=True))
    kept = [row for row in rows if row[2]]
    draws = [[row for row in drawn if row[2]] for drawn in repeated(resamples, rows)]

    share, mean = resamples.share(labels, among), resamples.mean(scores, among)
    if not kept:
        assert share is None
        assert mean is None
    else:
        count = sum(label for _, label, _ in kept)
        assert share is not None
        assert (share.value, share.count, share.total) == (count / len(kept), count, len(kept))
        shares = [sum(label for _, label, _ in drawn) / len(drawn) for drawn in draws if drawn]
        mixed = 0 < count < len(kept)
        assert (share.low, share.high) == (percentiles(shares) if mixed else wilson_interval(count, len(kept)))
        assert mean is not None
        assert mean.value == pytest.approx(sum(score for score, _, _ in kept) / len(kept), abs=1e-6)
        assert (mean.low, mean.high) == percentiles(
            [sum(score for score, _, _ in drawn) / len(drawn) for drawn in draws if drawn]
        )

    area = resamples.auc(scores, labels, among)
    if len({label for _, label, _ in kept}) < 2:
        assert area is None
    else:
        assert area is not None
        assert (area.value, area.total) == (auc([s for s, _, _ in kept], [y for _, y, _ in kept]), len(kept))
        both = [drawn for drawn in draws if len({label for _, label, _ in drawn}) == 2]
        areas = [auc([s for s, _, _ in drawn], [y for _, y, _ in drawn]) for drawn in both]
        assert (area.low, area.high) == percentiles(areas)


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=20))
def test_a_difference_is_that_of_two_shares_of_the_same_draws(pairs: list[tuple[bool, bool]]) -> None:
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    resamples = Resamples(len(pairs), draws=60)
    estimate = resamples.difference(first, second)
    drawn = resamples.counts.astype(int)
    differences = (drawn @ np.array(first, dtype=int) - drawn @ np.array(second, dtype=int)) / len(pairs)
    assert (estimate.low, estimate.high) == percentiles(differences.tolist())
    assert estimate.value == (sum(first) - sum(second)) / len(pairs)
    assert resamples.difference(second, first).value == -estimate.value


def test_a_paired_difference_is_surer_than_an_unpaired_one() -> None:
    source = random.Random(0)
    first = [source.random() < 0.4 for _ in range(1000)]
    second = [flag or source.random() < 0.03 for flag in first]
    resamples = Resamples(1000, draws=500)
    paired = resamples.difference(second, first)
    one, two = resamples.share(first), resamples.share(second)
    assert one is not None
    assert two is not None
    assert paired.value == pytest.approx(two.value - one.value)
    assert paired.low > 0
    assert paired.high - paired.low < (one.high - one.low) / 2


@pytest.mark.parametrize("count", [60, 700, 1000, 1940])
def test_for_many_questions_the_interval_is_wilsons(count: int) -> None:
    estimate = Resamples(2000).share([number < count for number in range(2000)])
    assert estimate is not None
    assert (estimate.low, estimate.high) == pytest.approx(wilson_interval(count, 2000), abs=0.004)


def test_equal_flags_have_wilsons_interval() -> None:
    resamples = Resamples(10)
    assert resamples.share([False] * 10) == Estimate(
        value=0.0, low=0.0, high=wilson_interval(0, 10)[1], total=10, count=0
    )
    few = resamples.share([True] * 10, [True] * 3 + [False] * 7)
    assert few == Estimate(value=1.0, low=wilson_interval(3, 3)[0], high=1.0, total=3, count=3)


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    source = random.Random(7)
    resamples = Resamples(200, draws=400)
    held_share = held_mean = held_auc = 0
    for _ in range(200):
        labels = [source.random() < 0.4 for _ in range(200)]
        # A positive wins against a negative with probability 1 - .5 · .5² = .875.
        scores = [source.random() + 0.5 * label for label in labels]
        share, mean, area = resamples.share(labels), resamples.mean(scores), resamples.auc(scores, labels)
        assert share is not None
        assert mean is not None
        assert area is not None
        held_share += share.low <= 0.4 <= share.high
        held_mean += mean.low <= 0.7 <= mean.high
        held_auc += area.low <= 0.875 <= area.high
    # 95 % of 200 are 190, give or take 3.1.
    assert [178 <= held <= 199 for held in (held_share, held_mean, held_auc)] == [True, True, True]


def test_memory_is_that_of_the_counts_and_a_little() -> None:
    size, draws = 4_000, 1_500
    source = random.Random(0)
    labels = [source.random() < 0.3 for _ in range(size)]
    scores = [source.random() for _ in range(size)]
    tracemalloc.start()
    resamples = Resamples(size, draws=draws)
    resamples.share(labels, labels[::-1])
    resamples.auc(scores, labels)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert resamples.counts.nbytes == size * draws
    # The counts as 64-bit numbers would take eight times their size.
    assert peak < 4 * size * draws


def test_what_cannot_be_estimated_is_refused() -> None:
    resamples = Resamples(3, draws=40)
    with pytest.raises(InvalidInputError, match="0 questions"):
        Resamples(0)
    with pytest.raises(InvalidInputError, match="39 draws"):
        Resamples(3, draws=39)
    with pytest.raises(InvalidInputError, match="2 values for 3 questions"):
        resamples.share([True, False])
    with pytest.raises(InvalidInputError, match="4 values for 3 questions"):
        resamples.mean([0.0] * 3, [True] * 4)
    with pytest.raises(InvalidInputError, match="not finite"):
        resamples.mean([0.0, 1.0, float("nan")])
    with pytest.raises(InvalidInputError, match="NaN"):
        resamples.auc([0.0, 1.0, float("nan")], [True, False, True])


def test_a_score_that_does_not_count_may_be_missing() -> None:
    resamples = Resamples(3, draws=40)
    area = resamples.auc([0.0, 1.0, float("nan")], [False, True, True], among=[True, True, False])
    assert area == Estimate(value=1.0, low=1.0, high=1.0, total=2)


@given(st.lists(st.booleans(), max_size=30))
def test_a_share_by_itself_has_wilsons_interval(flags: list[bool]) -> None:
    estimate = wilson_share(flags)
    if not flags:
        assert estimate is None
    else:
        assert estimate is not None
        assert (estimate.count, estimate.total, estimate.value) == (sum(flags), len(flags), sum(flags) / len(flags))
        assert (estimate.low, estimate.high) == wilson_interval(sum(flags), len(flags))


def test_a_share_is_written_in_per_cent() -> None:
    assert str(Estimate(value=0.8, low=0.4902, high=0.9433, total=10, count=8)) == "80.0 % [49.0, 94.3]"


def test_only_resampling_needs_numpy() -> None:
    code = """
import sys
sys.modules["numpy"] = None
from adaptllm_chain.errors import MissingExtraError
from adaptllm_chain.evaluation.resampling import Resamples, wilson_share
print(wilson_share([True, False]).value)
try:
    Resamples(3)
except MissingExtraError as error:
    print(error.hint)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["0.5", "pip install 'adaptllm-chain[cpu]'"]
