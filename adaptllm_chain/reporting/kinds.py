"""The three kinds of charts, painted on axes that are given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from adaptllm_chain.reporting.document import Chart, Mark, Point, Series
from adaptllm_chain.reporting.labelling import in_lines
from adaptllm_chain.reporting.palette import DAY, HALO, SERIES
from adaptllm_chain.reporting.scales import make_logarithmic, short, write_ticks
from adaptllm_chain.reporting.wording import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.text import Annotation

    from adaptllm_chain.reporting.labelling import Labels

# Shapes and strokes tell series apart where colours do not.
_MARKERS: Final = "osD^vP"
_STROKES: Final = ("-", "--", "-.", ":")
_GROUP_WIDTH: Final = 0.78
# More points than this and their markers would hide the line.
_MOST_MARKERS: Final = 24
# Letters that fit side by side below an axis, and in front of one.
_LETTERS_BELOW: Final = 56
_LETTERS_ACROSS: Final = 58
_LETTERS_BEFORE: Final = 22
_VALUE_SIZE: Final = 9
_MOST_VALUES_ABOVE: Final = 8


def colour(index: int) -> str:
    """Choose the colour of a series.

    Args:
        index: Its place among the series.

    Returns:
        The colour, as in daylight.
    """
    return DAY[SERIES[index % len(SERIES)]]


def lies_down(chart: Chart) -> bool:
    """Tell whether the bars of a chart run from left to right, because their names do not fit below them.

    Args:
        chart: A chart.

    Returns:
        Whether they do; never for other kinds than bars.
    """
    if chart.kind != "bars":
        return False
    names = [name for _, name in categories(chart)]
    room = _letters_below(chart)
    longest_words = [max(map(len, name.split()), default=0) for name in names]
    return any(len(name) > 2 * room for name in names) or any(length > room for length in longest_words)


def categories(chart: Chart) -> list[tuple[float, str]]:
    """List the categories of a chart of bars.

    Args:
        chart: The chart.

    Returns:
        Each x, in order, with the first label a point gives it, or the number itself.
    """
    names: dict[float, str] = {}
    for series in chart.series:
        for point in series.points:
            if point.label and not names.get(point.x):
                names[point.x] = point.label
            names.setdefault(point.x, "")
    return [(x, names[x] or short(x)) for x in sorted(names)]


def _part_of_marks(chart: Chart) -> float:
    """The part of the width that the names of the marks take, beside bars that stand."""
    return min(0.4, max((len(mark.name) for mark in chart.marks), default=0) / _LETTERS_ACROSS)


def _letters_below(chart: Chart) -> int:
    return max(1, int(_LETTERS_BELOW * (1 - _part_of_marks(chart)) / max(1, len(categories(chart)))))


def paint_bars(axes: Axes, chart: Chart, labels: Labels) -> None:
    """Paint bars in categories, with their intervals.

    Args:
        axes: Where.
        chart: A chart of bars.
        labels: Collects what must not be covered, and the names of the marks.
    """
    lying = lies_down(chart)
    names = categories(chart)
    position = {x: index for index, (x, _) in enumerate(names)}
    thickness = _GROUP_WIDTH / max(1, len(chart.series))
    with_values = lying or sum(len(series.points) for series in chart.series) <= _MOST_VALUES_ABOVE
    for index, series in enumerate(chart.series):
        shift = (index - (len(chart.series) - 1) / 2) * thickness
        at = [position[point.x] + shift for point in series.points]
        heights = [point.y for point in series.points]
        shape: dict[str, Any] = {"color": colour(index), "linewidth": 0}
        bars = (
            axes.barh(at, heights, height=0.92 * thickness, **shape)
            if lying
            else axes.bar(at, heights, width=0.92 * thickness, **shape)
        )
        labels.bars.extend(bars)
        labels.legend.append((bars, series.name))
        for place, point in zip(at, series.points, strict=True):
            _paint_interval(axes, place, point, DAY["ink"], labels, lying=lying)
            if with_values:
                labels.written.append(_write_value(axes, place, point, chart, lying=lying))
    across: Axis = axes.yaxis if lying else axes.xaxis
    room = _LETTERS_BEFORE if lying else _letters_below(chart)
    across.set_ticks(list(position.values()), [in_lines(name, room) for _, name in names])
    across.set_tick_params(length=0)
    along = axes.xaxis if lying else axes.yaxis
    write_ticks(along, chart.y_unit)
    along.grid(visible=True)
    # The names of the marks stand where no bar is: above the first one, or right of the last one.
    if lying:
        axes.margins(x=0.13 if with_values else 0.05)
        axes.set_ylim(len(names) - 0.5, -1.1 if chart.marks else -0.5)
    else:
        axes.margins(y=0.1)
        axes.set_xlim(-0.5, -0.5 + max(1, len(names)) / (1 - _part_of_marks(chart)))
    _paint_marks(axes, chart.marks, labels, lying=lying)


def paint_lines(axes: Axes, chart: Chart, labels: Labels) -> None:
    """Paint lines with bands, or points with bars where a band would not be seen.

    Args:
        axes: Where.
        chart: A chart of lines.
        labels: Collects what must not be covered, and the names of points and marks.
    """
    axes.margins(x=0.04, y=0.08)
    if chart.x_log:
        points = [point.x for series in chart.series for point in series.points]
        make_logarithmic(axes, points + [mark.x for mark in chart.marks if mark.x is not None])
    else:
        write_ticks(axes.xaxis, chart.x_unit)
    write_ticks(axes.yaxis, chart.y_unit)
    axes.grid(visible=True, axis="y")
    for index, series in enumerate(chart.series):
        _paint_line(axes, series, index, labels, banded=True)
    _paint_marks(axes, chart.marks, labels)
    _keep_clear(chart, labels)


def paint_reliability(axes: Axes, chart: Chart, labels: Labels) -> None:
    """Paint a reliability diagram: what was predicted against what came true.

    Args:
        axes: Where.
        chart: A reliability chart.
        labels: Collects what must not be covered, and the names of points and marks.
    """
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.02, 1.02)
    axes.set_aspect("equal")
    axes.grid(visible=True)
    write_ticks(axes.xaxis, chart.x_unit)
    write_ticks(axes.yaxis, chart.y_unit)
    (diagonal,) = axes.plot([0, 1], [0, 1], color=DAY["muted"], linewidth=1, linestyle=(0, (4, 3)))
    labels.paths.append([(x / 10, x / 10) for x in range(11)])
    for index, series in enumerate(chart.series):
        _paint_line(axes, series, index, labels, banded=False)
    labels.legend.append((diagonal, "as predicted"))
    _paint_marks(axes, chart.marks, labels)
    _keep_clear(chart, labels)


def _paint_line(axes: Axes, series: Series, index: int, labels: Labels, *, banded: bool) -> None:
    points = series.points
    x, y = [point.x for point in points], [point.y for point in points]
    (line,) = axes.plot(
        x,
        y,
        color=colour(index),
        marker=_MARKERS[index % len(_MARKERS)] if len(points) <= _MOST_MARKERS else "",
        linestyle=_STROKES[index % len(_STROKES)],
        zorder=3,
    )
    labels.legend.append((line, series.name))
    low = [point.low for point in points if point.low is not None]
    high = [point.high for point in points if point.high is not None]
    if banded and len(low) == len(points) > 1:
        axes.fill_between(x, low, high, color=colour(index), alpha=0.16, linewidth=0, zorder=2)
        return
    for point in points:
        _paint_interval(axes, point.x, point, colour(index), labels)


def _paint_interval(axes: Axes, place: float, point: Point, ink: str, labels: Labels, *, lying: bool = False) -> None:
    if point.low is None or point.high is None:
        return
    ends = [(place, point.low), (place, point.high)]
    if lying:
        ends = [(y, x) for x, y in ends]
    x, y = zip(*ends, strict=True)
    axes.plot(x, y, color=ink, linewidth=1.1, solid_capstyle="butt", zorder=4)
    labels.paths.append(ends)


def _write_value(axes: Axes, place: float, point: Point, chart: Chart, *, lying: bool) -> Annotation:
    end = max(point.y, point.high if point.high is not None else point.y)
    return axes.annotate(
        number(point.y, chart.y_unit),
        xy=(end, place) if lying else (place, end),
        xytext=(4, 0) if lying else (0, 3),
        textcoords="offset points",
        ha="left" if lying else "center",
        va="center" if lying else "bottom",
        fontsize=_VALUE_SIZE,
        color=DAY["ink"],
        bbox=HALO,
        zorder=6,
    )


def _paint_marks(axes: Axes, marks: Sequence[Mark], labels: Labels, *, lying: bool = False) -> None:
    for mark in marks:
        # Bars that lie down have turned the axes, and with them the marks.
        x, y = (mark.y, mark.x) if lying else (mark.x, mark.y)
        if x is not None and y is not None:
            axes.plot(x, y, marker="X", markersize=8, color=DAY["ink"], markeredgecolor=DAY["paper"], zorder=5)
            labels.beside_point(mark.name, x, y)
            continue
        stroke: dict[str, Any] = {"color": DAY["ink"], "linewidth": 1, "linestyle": (0, (2, 2)), "zorder": 5}
        if x is not None:
            axes.axvline(x, **stroke)
        if y is not None:
            axes.axhline(y, **stroke)
        labels.beside_line(mark.name, x=x, y=y)


def _keep_clear(chart: Chart, labels: Labels) -> None:
    for series in chart.series:
        labels.paths.append([(point.x, point.y) for point in series.points])
        for point in series.points:
            if point.label:
                labels.beside_point(point.label, point.x, point.y)
