"""Reports into pages, in HTML and in Markdown: the one owner of jinja2.

Charts stand in the page as SVG, not as PNG: as drawn lines they stay sharp at any size, weigh a tenth, and take their
colours from the page, so that by night they are not white cards. To a screen reader each is one image whose name is the
sentence below it; its numbers follow as a table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final
from urllib.parse import quote

from adaptllm_chain.errors import missing_extra
from adaptllm_chain.reporting import wording
from adaptllm_chain.reporting.document import Cell, Report, Table
from adaptllm_chain.reporting.drawing import draw
from adaptllm_chain.reporting.inline_svg import inline
from adaptllm_chain.reporting.markdown import Verbatim, as_text, cell_text, fenced
from adaptllm_chain.reporting.palette import DAY, NIGHT

try:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup
except ImportError as error:
    raise missing_extra("jinja2", "report") from error

Pictures = Mapping[str, Mapping[str, bytes]]

_PAPER: Final = re.compile(r"\barXiv:(\d{4}\.\d{4,5}(?:v\d+)?)\b")


def render_html(report: Report, pictures: Pictures | None = None) -> str:
    """Write a report as one page that needs nothing else: no script, no font, no file.

    Args:
        report: The report.
        pictures: Its drawn charts by id, where they are drawn already.

    Returns:
        The page.
    """
    drawn = {chart.id: draw(chart) for chart in report.charts} if pictures is None else pictures
    return (
        _html()
        .get_template("page.html.j2")
        .render(
            report=report,
            # Drawn by us: letters are paths in it, so that no text of the report is in there.
            pictures={name: Markup(inline(files["svg"], name)) for name, files in drawn.items()},  # noqa: S704
            day=DAY,
            night=NIGHT,
        )
    )


def render_markdown(report: Report, figures_folder: str) -> str:
    """Write a report in Markdown (that of GitHub, for the tables).

    Args:
        report: The report.
        figures_folder: Where the pictures are, seen from the page, e.g. ``"figures"``.

    Returns:
        The page.
    """
    return (
        _markdown()
        .get_template("page.md.j2")
        .render(report=report, figures_folder=Verbatim(quote(figures_folder.rstrip("/"))))
    )


@cache
def _html() -> Environment:
    return _environment(autoescape=True)


@cache
def _markdown() -> Environment:
    # Whatever a template prints is escaped, unless it is verbatim: the same safety as that of the HTML page.
    return _environment(autoescape=False, finalize=as_text)


def _environment(**options: Any) -> Environment:
    environment = Environment(  # noqa: S701 - HTML is escaped by autoescape, Markdown by finalize
        loader=PackageLoader("adaptllm_chain.reporting"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        **options,
    )
    environment.filters |= {
        "word": wording.word,
        "cell_text": cell_text,
        "setting": wording.setting,
        "papers": papers,
        "holds_figures": holds_figures,
        "fenced": fenced,
        "verbatim": Verbatim,
    }
    environment.globals["PAPER"] = wording.PAPER
    return environment


def papers(text: str) -> list[tuple[str, str]]:
    """Find the papers that a text names.

    Args:
        text: For example ``"as arXiv:2404.19705 does"``.

    Returns:
        Pairs of words and the number of the paper named after them; the last number is empty.
    """
    parts = [*_PAPER.split(text), ""]
    return list(zip(parts[::2], parts[1::2], strict=True))


def holds_figures(table: Table, column: int) -> bool:
    """Tell whether a column is to be set to the right, as figures are.

    Args:
        table: The table.
        column: The column; 0 is that of the labels.

    Returns:
        Whether it has a figure; the labels never count as figures.
    """

    def is_figure(cell: Cell) -> bool:
        return cell.value is not None and cell.text is None

    return column > 0 and any(is_figure(row.cells[column - 1]) for row in table.rows)
