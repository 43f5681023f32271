"""Colours of pages and pictures, by daylight and by night.

The series colours are those of Okabe and Ito, "Color Universal Design" (2008), told apart by the colour-blind; darkened
or brightened until each stands out from its paper by at least 3 to 1, as WCAG 2.2 asks of graphics (criterion 1.4.11).
"""

from __future__ import annotations

from typing import Any, Final

DAY: Final = {
    "paper": "#fefdfb",
    "panel": "#f6f4ef",
    "ink": "#21201d",
    "muted": "#625f58",
    "rule": "#d9d5cc",
    "accent": "#1f5c8b",
    "published": "#8a4b08",
    "series-1": "#0068a6",
    "series-2": "#c85200",
    "series-3": "#00805c",
    "series-4": "#a8467f",
    "series-5": "#8a6d00",
    "series-6": "#4a4a55",
}

NIGHT: Final = {
    "paper": "#17181b",
    "panel": "#1f2125",
    "ink": "#e6e3dc",
    "muted": "#a5a198",
    "rule": "#3a3c42",
    "accent": "#8cc2ee",
    "published": "#e5a96b",
    "series-1": "#56b4e9",
    "series-2": "#f08c4a",
    "series-3": "#3fc79b",
    "series-4": "#df8fbd",
    "series-5": "#e3c04a",
    "series-6": "#b4b4c2",
}

SERIES: Final = tuple(name for name in DAY if name.startswith("series-"))

# The ground of words that stand on lines.
HALO: Final[dict[str, Any]] = {"facecolor": DAY["paper"], "edgecolor": "none", "alpha": 0.75, "pad": 0.8}
