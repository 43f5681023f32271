"""Pictures: valid, the same every time, and nothing left out."""

from __future__ import annotations

import io
import subprocess
import sys
import xml.etree.ElementTree as ET

import matplotlib as mpl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from PIL import Image

from adaptllm_chain.reporting import Chart, Mark, Point, Series, draw
from adaptllm_chain.reporting.kinds import lies_down
from adaptllm_chain.reporting.placement import Box, along, around, choose
from adaptllm_chain.reporting.scales import make_logarithmic
from tests.reporting import sample

CHARTS = {
    "bars": sample.bars,
    "upright": lambda: sample.bars(modes=sample.SHORT_MODES),
    "lines": sample.tradeoff,
    "log": sample.popularity,
    "reliability": sample.reliability,
}


def check(pictures: dict[str, bytes]) -> None:
    assert set(pictures) == {"png", "svg"}
    assert pictures["png"].startswith(b"\x89PNG\r\n\x1a\n")
    Image.open(io.BytesIO(pictures["png"])).verify()
    assert b"tEXt" not in pictures["png"], "neither a date nor a version"
    assert ET.fromstring(pictures["svg"]).tag == "{http://www.w3.org/2000/svg}svg"
    assert b"<metadata" not in pictures["svg"], "neither a date nor a version"
    assert mpl.__version__.encode() not in pictures["svg"]


@pytest.mark.parametrize("kind", CHARTS)
def test_pictures_are_valid_and_the_same_every_time(kind: str) -> None:
    chart = CHARTS[kind]()
    pictures = draw(chart)
    check(pictures)
    # Not even the settings of the machine count.
    with mpl.rc_context({"font.size": 30, "axes.facecolor": "red", "svg.fonttype": "none"}):
        assert draw(chart) == pictures
    assert mpl.rcParams["svg.hashsalt"] is None
    assert draw(chart.model_copy(update={"marks": (Mark(name="m", y=0.5),)})) != pictures


@pytest.mark.parametrize(
    ("kind", "x_log"), [("bars", False), ("lines", False), ("lines", True), ("reliability", False)]
)
@pytest.mark.parametrize(
    "points",
    [
        None,
        (),
        (Point(x=0, y=0),),
        (Point(x=1, y=0.5, low=0.4, high=0.6, label="one"),),
        (Point(x=0, y=0.1, low=0, high=0.2), Point(x=0, y=0.3)),
    ],
)
def test_the_smallest_charts_are_drawn(kind: str, x_log: bool, points: tuple[Point, ...] | None) -> None:
    series = () if points is None else (Series(name="_hidden?", points=points), Series(name="none"))
    marks = (Mark(name="m", y=0.5),) if points is None else ()
    check(
        draw(sample.reliability().model_copy(update={"kind": kind, "x_log": x_log, "series": series, "marks": marks}))
    )


@pytest.mark.parametrize("text", ["$x", "$\\frac$", "\uffff-->", "\u6f22", "x" * 300, 60 * "word "])
@pytest.mark.parametrize("kind", ["bars", "lines"])
def test_any_text_is_drawn_as_text(kind: str, text: str) -> None:
    fields = {"id": "c", "title": "x", "alt": "x", "kind": kind, "x_label": text, "y_label": text}
    series = tuple(Series(name=text, points=(Point(x=0.5, y=0.5, label=text),)) for _ in range(2))
    marks = (Mark(name=text, y=0.2),)
    check(draw(Chart.model_validate(fields | {"series": series, "marks": marks, "data": sample.numbers("d")})))


@settings(deadline=None)
@given(st.lists(st.sampled_from([0.0, 0.003, 1.0, 7.0, 1000.0, 2e6]) | st.floats(0, 1e12), min_size=1))
def test_a_logarithmic_axis_has_room_for_all_and_for_zero(values: list[float]) -> None:
    values = [value if value > 1e-9 else 0.0 for value in values]
    axes = Figure().subplots()
    axes.plot(values, values)
    make_logarithmic(axes, values)
    box = axes.get_window_extent()
    places = {value: float(axes.transData.transform((value, 0))[0]) for value in values}
    assert all(box.x0 <= place <= box.x1 for place in places.values())
    in_order = sorted(places)
    assert [places[value] for value in in_order] == sorted(places.values())
    if 0.0 in places and len(places) > 1:
        assert places[in_order[1]] - places[0.0] > 5, "zero stands apart"
        assert 0.0 in axes.get_xticks()
    assert len(axes.get_xticks()) <= 10


def test_zero_is_shown_on_a_logarithmic_axis() -> None:
    def chart(first: float) -> Chart:
        points = (Point(x=first, y=0.2), Point(x=10, y=0.4), Point(x=1000, y=0.5))
        return sample.popularity().model_copy(update={"series": (Series(name="s", points=points),), "marks": ()})

    def markers(chart: Chart) -> list[float]:
        root = ET.fromstring(draw(chart)["svg"])
        drawn = [use for use in root.iter("{http://www.w3.org/2000/svg}use") if "#0068a6" in use.get("style", "")]
        return [float(use.attrib["x"]) for use in drawn]

    at = markers(chart(0))
    assert len(at) == 3
    assert at == sorted(at)
    assert len(markers(chart(1))) == 3


def test_bars_lie_down_where_their_names_are_long() -> None:
    assert not lies_down(sample.bars(modes=sample.SHORT_MODES))
    assert lies_down(sample.bars())
    assert lies_down(sample.bars(modes=("a name that is far too long to stand below a bar", *sample.MODES)))
    assert not lies_down(sample.tradeoff())


def test_a_label_finds_the_free_place() -> None:
    inside = Box(0, 0, 100, 100)
    # Right, left and above are taken; below is free.
    taken = [Box(50, 45, 100, 55), Box(0, 45, 49, 55), Box(40, 51, 60, 70)]
    box = choose(around((50, 50), 10, 6, 2), taken, [], inside)
    assert all(box.shared_area(other) == 0 for other in taken)
    assert box.top < 50


PLACES = st.tuples(st.floats(0, 100), st.floats(0, 100))


@settings(deadline=None)
@given(st.lists(PLACES, min_size=1, max_size=6))
def test_labels_of_points_do_not_cover_one_another(points: list[tuple[float, float]]) -> None:
    inside = Box(-100, -100, 200, 200)
    taken: list[Box] = []
    for point in points:
        box = choose(around(point, 20, 6, 3), taken, points, inside)
        assert sum(box.shared_area(other) for other in taken) == pytest.approx(0, abs=1e-6)
        assert inside.shared_area(box) == pytest.approx(box.area)
        taken.append(box)


@settings(deadline=None)
@given(st.floats(10, 90), st.booleans())
def test_the_label_of_a_line_stands_beside_it(at: float, level: bool) -> None:
    ends = ((0.0, at), (100.0, at)) if level else ((at, 0.0), (at, 100.0))
    dots = [(float(n), at) if level else (at, float(n)) for n in range(100)]
    box = choose(along(*ends, 8, 4, 1), [], dots, Box(0, 0, 100, 100))
    assert not any(box.holds(dot) for dot in dots)
    assert (box.right if level else box.top) > 90, "at the end"


@pytest.mark.parametrize(("package", "module"), [("matplotlib", "drawing"), ("jinja2", "pages")])
def test_without_a_library_the_way_out_is_named(package: str, module: str) -> None:
    code = f"""
import sys
from adaptllm_chain.errors import MissingExtraError
import adaptllm_chain.reporting
assert not {{"matplotlib", "jinja2"}} & set(sys.modules)
sys.modules["{package}"] = None
try:
    import adaptllm_chain.reporting.{module}
except MissingExtraError as error:
    print(error)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'adaptllm-chain[report]'" in ran.stdout
    assert repr(package) in ran.stdout
