"""The exact test, by hand and against SciPy's binomial test."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.metrics import McNemar, mcnemar


@pytest.fixture(scope="module")
def stats() -> Any:
    return pytest.importorskip("scipy.stats")


def runs(only_first: int, only_second: int, same: int = 0) -> tuple[list[bool], list[bool]]:
    first = [True] * only_first + [False] * only_second
    shared = [number % 2 == 0 for number in range(same)]
    return first + shared, [not flag for flag in first] + shared


@given(st.integers(0, 400), st.integers(0, 400), st.integers(0, 20))
def test_it_equals_the_binomial_test(stats: Any, only_first: int, only_second: int, same: int) -> None:
    result = mcnemar(*runs(only_first, only_second, same))
    assert (result.only_first, result.only_second) == (only_first, only_second)
    tosses = only_first + only_second
    expected = stats.binomtest(only_first, tosses, 0.5).pvalue if tosses else 1.0
    assert result.p_value == pytest.approx(expected, rel=1e-9)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=60), st.randoms())
def test_neither_the_order_of_pairs_nor_that_of_runs_matters(pairs: list[tuple[bool, bool]], random: Random) -> None:
    result = mcnemar([a for a, _ in pairs], [b for _, b in pairs])
    random.shuffle(pairs)
    assert mcnemar([a for a, _ in pairs], [b for _, b in pairs]) == result
    turned = mcnemar([b for _, b in pairs], [a for a, _ in pairs])
    assert turned == McNemar(only_first=result.only_second, only_second=result.only_first, p_value=result.p_value)


@pytest.mark.parametrize(
    ("only_first", "only_second", "p_value"),
    [
        (0, 0, 1.0),
        (1, 0, 1.0),
        (5, 0, 2 / 32),
        # 2 · (1 + 10) / 2¹⁰.
        (1, 9, 22 / 1024),
        (5, 5, 1.0),
        # An odd number of tosses: each tail is a half, and there is no middle.
        (4, 5, 1.0),
    ],
)
def test_by_hand(only_first: int, only_second: int, p_value: float) -> None:
    assert mcnemar(*runs(only_first, only_second, 7)).p_value == p_value


def test_twenty_thousand_pairs_do_not_overflow(stats: Any) -> None:
    assert mcnemar(*runs(9_900, 10_100)).p_value == pytest.approx(stats.binomtest(9_900, 20_000).pvalue, rel=1e-9)
    assert mcnemar(*runs(10_000, 10_000)).p_value == 1.0
    # 2 / 2²⁰⁰⁰⁰ is less than any positive float.
    assert mcnemar(*runs(0, 20_000)).p_value == 0.0


def test_runs_of_different_lengths_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="2 and 1"):
        mcnemar([True, False], [True])
