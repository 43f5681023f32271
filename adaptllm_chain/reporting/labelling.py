"""Names written beside points and lines of a picture, so that none covers another."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from adaptllm_chain.reporting.palette import DAY, HALO
from adaptllm_chain.reporting.placement import Box, Place, along, around, choose

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch
    from matplotlib.text import Text

_GAP_POINTS: Final = 5.0
_FONT_SIZE: Final = 10
# From this distance on, in gaps, a thread leads from the label to its point.
_FAR: Final = 4
_DOTS_A_SEGMENT: Final = 12
_LETTERS_A_LINE: Final = 28
_MOST_LINES: Final = 3


def in_lines(text: str, letters: int) -> str:
    """Break a text into lines for a picture.

    Args:
        text: The text.
        letters: How many fit in a line.

    Returns:
        Three lines at the most, so that the picture keeps its room; the table below has the whole text.
    """
    return "\n".join(textwrap.wrap(text, max(letters, 2), max_lines=_MOST_LINES, placeholder="\N{HORIZONTAL ELLIPSIS}"))


@dataclass
class Labels:
    """The labels of one picture, and what they must not cover.

    Attributes:
        axes: Where they are written.
        bars: Drawn surfaces.
        written: Words that are written already.
        paths: Drawn lines, by their corners in the units of the axes.
        legend: What the legend shows, with its name. Kept here, because matplotlib hides names that begin with "_".
    """

    axes: Axes
    bars: list[Patch] = field(default_factory=list)
    written: list[Text] = field(default_factory=list)
    paths: list[list[Place]] = field(default_factory=list)
    legend: list[tuple[Any, str]] = field(default_factory=list)
    _points: list[tuple[str, Place]] = field(default_factory=list)
    _lines: list[tuple[str, float | None, float | None]] = field(default_factory=list)

    def beside_point(self, text: str, x: float, y: float) -> None:
        """Ask for a label at a point.

        Args:
            text: The label.
            x: Where the point is, in the units of the axes.
            y: Where the point is.
        """
        self._points.append((in_lines(text, _LETTERS_A_LINE), (x, y)))

    def beside_line(self, text: str, *, x: float | None = None, y: float | None = None) -> None:
        """Ask for a label at a line across the picture.

        Args:
            text: The label.
            x: Where an upright line is, in the units of the axes.
            y: Where a level line is.
        """
        self._lines.append((in_lines(text, _LETTERS_A_LINE), x, y))

    def write(self, figure: Figure) -> None:
        """Write all labels; the axes must have their final limits.

        Args:
            figure: The figure of the axes. Its layout is settled and then kept.
        """
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        gap = _GAP_POINTS * figure.dpi / 72
        inside = _box(self.axes.get_window_extent())
        dots = [dot for path in self.paths for dot in self._dots(path)]
        taken = [_box(bar.get_window_extent()) for bar in (*self.bars, *self.written)]
        for _, place in self._points:
            x, y = self._on_screen(*place)
            taken.append(Box(x - gap / 2, y - gap / 2, x + gap / 2, y + gap / 2))
        for text, x_line, y_line in self._lines:
            width, height = self._measure(text)
            if x_line is None and y_line is not None:
                level = self._on_screen(0, y_line)[1]
                ends = (inside.left, level), (inside.right, level)
            else:
                upright = self._on_screen(x_line or 0, 0)[0]
                ends = (upright, inside.bottom), (upright, inside.top)
            box = choose(along(*ends, width, height, gap / 2), taken, dots, inside)
            taken.append(box)
            self._put(text, box)
        for text, place in self._points:
            width, height = self._measure(text)
            point = self._on_screen(*place)
            box = choose(around(point, width, height, gap), taken, dots, inside)
            taken.append(box)
            self._put(text, box, point=point if _distance(point, box) > _FAR * gap else None)

    def _dots(self, path: list[Place]) -> list[Place]:
        """Follow a path on the screen, where it is straight between its corners on logarithmic axes too."""
        if not path:
            return []
        corners = [(float(x), float(y)) for x, y in self.axes.transData.transform(path)]
        parts = [step / _DOTS_A_SEGMENT for step in range(_DOTS_A_SEGMENT)]
        return corners + [
            (x0 + part * (x1 - x0), y0 + part * (y1 - y0)) for (x0, y0), (x1, y1) in pairwise(corners) for part in parts
        ]

    def _on_screen(self, x: float, y: float) -> Place:
        across, up = self.axes.transData.transform((x, y))
        return float(across), float(up)

    def _measure(self, text: str) -> tuple[float, float]:
        written = self.axes.text(0, 0, text, fontsize=_FONT_SIZE)
        box = _box(written.get_window_extent())
        written.remove()
        return box.right - box.left, box.top - box.bottom

    def _put(self, text: str, box: Box, point: Place | None = None) -> None:
        to_axes = self.axes.transAxes.inverted()
        x, y = to_axes.transform(box.centre)
        self.axes.annotate(
            text,
            xy=(x, y) if point is None else tuple(to_axes.transform(point)),
            xycoords="axes fraction",
            xytext=(x, y),
            textcoords="axes fraction",
            ha="center",
            va="center",
            fontsize=_FONT_SIZE,
            color=DAY["ink"],
            bbox=HALO,
            arrowprops=None if point is None else {"arrowstyle": "-", "color": DAY["muted"], "linewidth": 0.7},
            annotation_clip=False,
            zorder=9,
        )


def _box(extent: object) -> Box:
    left, bottom, right, top = extent.extents  # type: ignore[attr-defined]
    return Box(float(left), float(bottom), float(right), float(top))


def _distance(point: Place, box: Box) -> float:
    x = min(max(point[0], box.left), box.right) - point[0]
    y = min(max(point[1], box.bottom), box.top) - point[1]
    return float((x * x + y * y) ** 0.5)
