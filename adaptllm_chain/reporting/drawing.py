"""Charts into pictures: the one owner of matplotlib in this room."""

from __future__ import annotations

import io
import re
import warnings
from typing import Any, Final

from adaptllm_chain.errors import missing_extra
from adaptllm_chain.reporting.document import Chart
from adaptllm_chain.reporting.kinds import categories, lies_down, paint_bars, paint_lines, paint_reliability
from adaptllm_chain.reporting.labelling import Labels, in_lines
from adaptllm_chain.reporting.palette import DAY

try:
    from matplotlib import style
    from matplotlib.figure import Figure
except ImportError as error:
    raise missing_extra("matplotlib", "report") from error

# Inches. A picture is no wider than a column of text, so that its letters are as large as those around it, and can
# still be read where a telephone shrinks it.
_WIDTH: Final = 5.8
_HEIGHT: Final = 3.8
# Room for names of three lines above and below.
_LEAST_HEIGHT: Final = 3.2
_BAR_HEIGHT: Final = 0.26
_SQUARE: Final = 5.0
_DOTS_AN_INCH: Final = 200
_LETTERS_AN_INCH: Final = 12
# What the sample of colour before a name takes, and the gap after it, in letters.
_LEGEND_GAP: Final = 6

_STYLE: Final[dict[str, Any]] = {
    # It comes with matplotlib: the same letters on every machine.
    "font.family": ["DejaVu Sans"],
    "font.size": 10.5,
    "text.parse_math": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": DAY["muted"],
    "axes.facecolor": DAY["paper"],
    "axes.labelcolor": DAY["ink"],
    "axes.titlecolor": DAY["ink"],
    "axes.titlelocation": "left",
    "axes.titlesize": 10.5,
    "axes.titlepad": 9,
    "axes.axisbelow": True,
    "axes.labelsize": 10.5,
    "legend.fontsize": 10.5,
    "xtick.labelsize": 10,
    "ytick.labelsize": 10,
    "figure.facecolor": DAY["paper"],
    "savefig.facecolor": DAY["paper"],
    "figure.dpi": _DOTS_AN_INCH,
    "grid.color": DAY["rule"],
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "legend.labelcolor": DAY["ink"],
    "lines.linewidth": 1.7,
    "lines.markersize": 5,
    "text.color": DAY["ink"],
    "xtick.color": DAY["muted"],
    "xtick.labelcolor": DAY["ink"],
    "ytick.color": DAY["muted"],
    "ytick.labelcolor": DAY["ink"],
    "svg.fonttype": "path",
}

_PAINTERS: Final = {"bars": paint_bars, "lines": paint_lines, "reliability": paint_reliability}
_COMMENT: Final = re.compile(r"<!--.*?-->\s*", re.DOTALL)


def draw(chart: Chart) -> dict[str, bytes]:
    """Draw a chart by daylight.

    The same chart gives the same bytes: the pictures carry neither a date nor a version, and the settings of the
    machine's matplotlib do not count.

    Args:
        chart: The chart.

    Returns:
        The picture as ``"png"`` and as ``"svg"``.
    """
    with style.context({**_STYLE, "svg.hashsalt": chart.id}, after_reset=True), warnings.catch_warnings():
        # A letter that the font lacks is drawn as a box; the page has it in words.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = _compose(chart)
        png, svg = io.BytesIO(), io.BytesIO()
        figure.savefig(png, format="png", dpi=_DOTS_AN_INCH, metadata={"Software": None})
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(svg, format="svg", metadata=nothing)
    # Comments repeat every text, and a text may hold what no XML can.
    return {"png": png.getvalue(), "svg": _COMMENT.sub("", svg.getvalue().decode()).encode()}


def _compose(chart: Chart) -> Figure:
    figure = Figure(figsize=_size(chart), layout="constrained")
    axes = figure.subplots()
    labels = Labels(axes)
    if chart.marks or any(series.points for series in chart.series):
        _PAINTERS[chart.kind](axes, chart, labels)
    else:
        axes.set(xticks=[], yticks=[])
        axes.text(0.5, 0.5, "nothing was measured", ha="center", va="center", color=DAY["muted"])
    below, above = (chart.y_label, chart.x_label) if lies_down(chart) else (chart.x_label, chart.y_label)
    letters = int(_LETTERS_AN_INCH * figure.get_figwidth())
    axes.set_xlabel(in_lines(below, letters))
    # Upright letters are hard to read: the name of the y axis stands level, above it.
    axes.set_title(in_lines(above, letters))
    _write_legend(figure, labels, letters)
    labels.write(figure)
    return figure


def _write_legend(figure: Figure, labels: Labels, letters: int) -> None:
    if len(labels.legend) < 2:
        return
    names = [in_lines(name, letters // 2) for _, name in labels.legend]
    longest = max(len(row) for name in names for row in name.splitlines())
    columns = max(1, min(len(names), letters // (longest + _LEGEND_GAP)))
    figure.legend(
        [artist for artist, _ in labels.legend], names, loc="outside upper left", ncols=columns, borderaxespad=0.2
    )


def _size(chart: Chart) -> tuple[float, float]:
    if chart.kind == "reliability":
        return _SQUARE, _SQUARE
    if lies_down(chart):
        return _WIDTH, max(_LEAST_HEIGHT, 1.2 + _BAR_HEIGHT * (0.6 + len(chart.series)) * len(categories(chart)))
    return _WIDTH, _HEIGHT
