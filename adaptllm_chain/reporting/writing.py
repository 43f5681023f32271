"""Reports into files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from adaptllm_chain.journal import write_whole
from adaptllm_chain.reporting.document import Report
from adaptllm_chain.reporting.drawing import draw
from adaptllm_chain.reporting.pages import render_html, render_markdown

_FIGURES: Final = "figures"


def render_json(report: Report) -> str:
    """Write a report as JSON, from which :class:`Report` can be read again.

    Args:
        report: The report.

    Returns:
        One object, keys in order, what is not set left out.
    """
    content = report.model_dump(mode="json", exclude_none=True)
    return json.dumps(content, sort_keys=True, ensure_ascii=False, indent=1) + "\n"


def write_report(report: Report, folder: str | Path) -> list[Path]:
    """Write a report as a page, in Markdown and in JSON, and its charts as pictures.

    The same report gives the same bytes. A kill leaves of each file the old one or the new one.

    Args:
        report: The report.
        folder: Where; made if needed. Files that are there already are replaced.

    Returns:
        The files: ``report.html``, ``report.md``, ``report.json``, and ``figures/ID.png`` and ``.svg`` of each chart.
    """
    folder = Path(folder)
    pictures = {chart.id: draw(chart) for chart in report.charts}
    pages = {
        folder / "report.html": render_html(report, pictures),
        folder / "report.md": render_markdown(report, _FIGURES),
        folder / "report.json": render_json(report),
    }
    figures = {
        folder / _FIGURES / f"{name}.{kind}": content
        for name, files in pictures.items()
        for kind, content in files.items()
    }
    for path in [*pages, *figures]:
        path.parent.mkdir(parents=True, exist_ok=True)
    for path, text in pages.items():
        write_whole(path, text)
    for path, content in figures.items():
        _write_bytes_whole(path, content)
    return [*pages, *figures]


def _write_bytes_whole(path: Path, content: bytes) -> None:
    temporary = path.with_name(path.name + ".part")
    temporary.write_bytes(content)
    temporary.replace(path)
