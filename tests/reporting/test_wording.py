"""Cells in words, worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.reporting import Cell
from adaptllm_chain.reporting.scales import short
from adaptllm_chain.reporting.wording import number, setting, word

MINUS = "\N{MINUS SIGN}"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "\N{EN DASH}"),
        ({"text": " "}, "\N{EN DASH}"),
        ({"published": True}, "\N{EN DASH}"),
        ({"value": 0.368, "low": 0.347, "high": 0.39, "unit": "percent"}, "36.8 % [34.7, 39.0]"),
        ({"value": 0.368, "unit": "percent", "count": 184, "total": 500}, "36.8 % (184 of 500)"),
        ({"value": 0.36771, "unit": "percent", "published": True}, "36.8 % (paper)"),
        (
            {"value": 0.5, "unit": "percent", "total": 1399, "published": True, "note": "x"},
            "50.0 % (paper; of 1,399; x)",
        ),
        ({"value": -0.031, "low": -0.05, "high": 0.0, "unit": "percent"}, f"{MINUS}3.1 % [{MINUS}5.0, 0.0]"),
        ({"value": -0.0004, "unit": "percent"}, "0.0 %"),
        ({"value": 1, "unit": "percent"}, "100.0 %"),
        ({"value": 0.51249, "unit": "number"}, "0.512"),
        ({"value": 3, "unit": "number"}, "3"),
        ({"value": 0.00004, "unit": "number"}, f"4.0e{MINUS}05"),
        ({"value": 0.0, "unit": "number"}, "0.000"),
        ({"value": 14267, "unit": "count", "count": 3}, "14,267 (3)"),
        ({"value": 2.5, "unit": "count"}, "2.5"),
        ({"value": 1.5, "unit": "seconds"}, "1.50 s"),
        ({"value": 7.25}, "7.25"),
        ({"value": 7.25, "text": "not reported"}, "not reported"),
    ],
)
def test_a_cell_is_written_as_by_hand(fields: dict[str, Any], words: str) -> None:
    assert str(word(Cell(**fields))) == words


@given(st.floats(-10, 10))
def test_per_cent_are_a_hundred_times_the_share_to_one_decimal(share: float) -> None:
    written = number(share, "percent").removesuffix(" %").replace(MINUS, "-")
    assert len(written.partition(".")[2]) == 1
    assert float(written) == pytest.approx(100 * share, abs=0.0501)
    assert written != "-0.0"


@pytest.mark.parametrize(("low", "high"), [(0.1, None), (None, 0.1), (0.2, 0.1)])
def test_half_an_interval_is_refused(low: float | None, high: float | None) -> None:
    with pytest.raises(InvalidInputError, match="interval"):
        Cell(value=0.15, low=low, high=high)


def test_settings_in_words() -> None:
    assert [setting(value) for value in (True, False, 1, 0.5, "x")] == ["yes", "no", "1", "0.5", "x"]


@pytest.mark.parametrize(
    ("value", "words"),
    [(0, "0"), (0.01, "0.01"), (100, "100"), (1e3, "1k"), (2.5e6, "2.5M"), (1e9, "1G"), (1e13, "1e+13")],
)
def test_ticks_are_short(value: float, words: str) -> None:
    assert short(value) == words
