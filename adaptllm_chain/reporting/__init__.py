"""Reports: tables and charts into pages and pictures.

Names are imported when they are first used: importing this package loads neither matplotlib nor jinja2.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from adaptllm_chain.reporting.document import Cell, Chart, Mark, Point, Report, Row, Section, Series, Table

if TYPE_CHECKING:
    from adaptllm_chain.reporting.drawing import draw
    from adaptllm_chain.reporting.pages import render_html, render_markdown
    from adaptllm_chain.reporting.writing import render_json, write_report

__all__ = [
    "Cell",
    "Chart",
    "Mark",
    "Point",
    "Report",
    "Row",
    "Section",
    "Series",
    "Table",
    "draw",
    "render_html",
    "render_json",
    "render_markdown",
    "write_report",
]

_MODULES = {
    "draw": "drawing",
    "render_html": "pages",
    "render_json": "writing",
    "render_markdown": "pages",
    "write_report": "writing",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
