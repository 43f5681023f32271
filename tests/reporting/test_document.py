"""The parts of a report, and what they refuse."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.reporting import Cell, Chart, Mark, Point, Report, Row, Section, Series, Table
from tests.reporting import sample


@pytest.mark.parametrize(
    "section",
    [
        Section(id="one", title="x", tables=(sample.numbers("one"),)),
        Section(id="s", title="x", tables=(sample.numbers("one"), sample.numbers("one"))),
        Section(id="s", title="x", charts=(sample.bars("one"),), tables=(sample.numbers("one"),)),
        Section(id="s", title="x", charts=(sample.bars("two"),), tables=(sample.numbers("two-data"),)),
    ],
)
def test_an_id_that_is_there_twice_is_refused(section: Section) -> None:
    with pytest.raises(InvalidInputError, match=r"id '(one|two-data)'"):
        Report(title="x", sections=(section,))
    with pytest.raises(InvalidInputError, match="id 's'"):
        Report(title="x", sections=(Section(id="s", title="x"), Section(id="s", title="y")))


@pytest.mark.parametrize("identifier", ["", "A", "a b", "../a", "a.b", "-a", "ä", 'a"', "a\n"])
def test_an_id_that_names_no_file_is_refused(identifier: str) -> None:
    with pytest.raises(InvalidInputError, match="identifier"):
        Section(id=identifier, title="x")


@pytest.mark.parametrize("cells", [(), (Cell(), Cell())])
def test_a_row_that_does_not_fit_the_columns_is_refused(cells: tuple[Cell, ...]) -> None:
    rows = (Row(label=Cell(), cells=(Cell(),)), Row(label=Cell(), cells=cells))
    with pytest.raises(InvalidInputError, match="row 2 of the table 't'"):
        Table(id="t", title="x", caption="", columns=("a", "b"), rows=rows)


def test_a_table_without_columns_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="no columns"):
        Table(id="t", title="x", caption="", columns=())


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"alt": " "}, "empty"),
        ({"title": "\n"}, "empty"),
        ({"kind": "bars", "x_log": True}, "bars on a logarithmic axis"),
        ({"kind": "reliability", "x_log": True}, "reliability on a logarithmic axis"),
        ({"kind": "bars", "marks": (Mark(name="m", x=1, y=1),)}, "has an x"),
        ({"x_log": True, "series": (Series(name="s", points=(Point(x=-1, y=0),)),)}, "negative x"),
        ({"x_log": True, "marks": (Mark(name="m", x=-1),)}, "negative x"),
        ({"kind": "reliability", "series": (Series(name="s", points=(Point(x=0.5, y=36.8),)),)}, "outside the square"),
    ],
)
def test_a_chart_that_cannot_be_drawn_is_refused(fields: dict[str, Any], complaint: str) -> None:
    drawable = {
        "id": "c",
        "title": "x",
        "alt": "x",
        "kind": "lines",
        "x_label": "",
        "y_label": "",
        "data": sample.numbers("d"),
    }
    assert Chart.model_validate(drawable)
    with pytest.raises(InvalidInputError, match=complaint):
        Chart.model_validate(drawable | fields)


def test_a_mark_without_a_place_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="no place"):
        Mark(name="m")


def test_what_is_no_number_is_refused() -> None:
    with pytest.raises(ValidationError, match="finite"):
        Cell(value=float("nan"))


def test_texts_are_one_line() -> None:
    assert Cell(text="a\r\nb\tc\u2028d\x00").text == "a  b c d "


def test_settings_are_in_the_order_of_their_names() -> None:
    one, two = (Report(title="x", settings=settings) for settings in ({"b": 1, "a": True}, {"a": True, "b": 1}))
    assert list(one.settings.items()) == list(two.settings.items()) == [("a", True), ("b", 1)]
