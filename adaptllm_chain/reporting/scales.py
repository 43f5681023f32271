"""Axes that can be read: ticks of a logarithmic axis that has a zero, numbers with their unit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from adaptllm_chain.reporting.document import Unit
from adaptllm_chain.reporting.wording import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

_MOST_TICKS = 8
_BIG = {1e9: "G", 1e6: "M", 1e3: "k"}


def short(value: float) -> str:
    """Write the number of a tick.

    Args:
        value: The number.

    Returns:
        For example ``"0"``, ``"0.25"``, ``"100"``, ``"10k"``, ``"1e+12"``.
    """
    for size, letter in _BIG.items():
        if size <= abs(value) < 1000 * size:
            return f"{value / size:g}{letter}".replace("-", "\N{MINUS SIGN}")
    return f"{value:g}".replace("-", "\N{MINUS SIGN}")


def write_ticks(axis: Axis, unit: Unit) -> None:
    """Let an axis write its ticks in a unit.

    Args:
        axis: The axis.
        unit: The unit; ticks in per cent have no decimals unless they need them.
    """

    def per_cent(value: float, _position: float | None = None) -> str:
        return number(round(value, 12), "percent").replace(".0", "")

    def plain(value: float, _position: float | None = None) -> str:
        return short(round(value, 12))

    axis.set_major_formatter(per_cent if unit == "percent" else plain)


def make_logarithmic(axes: Axes, values: Sequence[float]) -> None:
    """Make the x axis logarithmic, with a place for 0 left of the smallest decade.

    Args:
        axes: The axes.
        values: All x that are drawn, none of them negative.
    """
    positive = [value for value in values if value > 0]
    if not positive:
        return
    first, last = math.floor(math.log10(min(positive))), math.ceil(math.log10(max(positive)))
    stride = max(1, math.ceil((last - first + 1) / _MOST_TICKS))
    ticks = [10.0**power for power in range(first, last + 1, stride)]
    if len(positive) < len(values):
        # Straight between 0 and the smallest decade, which is as wide as half a decade.
        axes.set_xscale("symlog", linthresh=10.0**first, linscale=0.5)
        axes.set_xlim(left=-0.3 * 10.0**first, right=10.0**last * 1.3)
        ticks = [0.0, *ticks]
    else:
        axes.set_xscale("log")
        axes.set_xlim(left=10.0**first / 1.3, right=10.0**last * 1.3)
    axes.set_xticks(ticks, [short(tick) for tick in ticks])
    axes.minorticks_off()
