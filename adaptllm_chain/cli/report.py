"""``adaptllm report``: from predictions to the paper's tables and figure, without a model."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

JUDGEMENTS_FOLDER = "judgements"  # not imported from where it is used: `--help` must answer at once


def add_parser(subparsers: Any) -> None:
    """Add the command.

    Args:
        subparsers: What ``ArgumentParser.add_subparsers`` returned.
    """
    parser = subparsers.add_parser(
        "report",
        help="make the paper's tables and figure of predictions",
        description="Reads what `adaptllm evaluate` wrote into one or more folders and makes a page (report.html), "
        "the same "
        "in Markdown and JSON, and the figures, without a model. Runs on other data, with other prompts or by other "
        f"versions are not put together. {JUDGEMENTS_FOLDER}/ below it holds all that the report is made of without "
        f"any text "
        "of the data: it can be published, and `adaptllm report` makes the same report of it.",
    )
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR", help="what adaptllm evaluate --out named")
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="for the report")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Make the report.

    Args:
        arguments: The parsed options.

    Returns:
        0.
    """
    from adaptllm_chain.evaluation import Run, read_runs
    from adaptllm_chain.evaluation.grounding import holds_grounded_runs, read_grounded_runs
    from adaptllm_chain.evaluation.tables import paper_report
    from adaptllm_chain.evaluation.tables.grounding_report import grounding_report
    from adaptllm_chain.reporting import write_report

    runs: Sequence[Run]
    if holds_grounded_runs(arguments.folders):
        runs = grounded = read_grounded_runs(arguments.folders)
        report = grounding_report(grounded)
    else:
        runs = read_runs(arguments.folders)
        report = paper_report(runs)
    arguments.out.mkdir(parents=True, exist_ok=True)
    kept = arguments.out / JUDGEMENTS_FOLDER
    earlier = _of_earlier_report(arguments.out)
    written = {one.write(kept) for one in runs}
    files = write_report(report, arguments.out)
    # Only now, so that nothing is lost when a kill comes between.
    for stale in earlier - written - set(files):
        stale.unlink(missing_ok=True)
    print("\n".join(map(str, files)))
    print(f"{len(runs)} runs without text: {kept}")
    return 0


def _of_earlier_report(folder: Path) -> set[Path]:
    """List the figures and judgements of the report that a folder holds; files of others are none of them."""
    import json

    from adaptllm_chain.errors import JournalError
    from adaptllm_chain.journal import read_journal

    try:
        sections = json.loads((folder / "report.json").read_text(encoding="utf-8"))["sections"]
        charts = [chart["id"] for section in sections for chart in section["charts"]]
    except (OSError, ValueError, KeyError, TypeError):
        return set()
    found = {folder / "figures" / f"{chart}.{kind}" for chart in charts for kind in ("png", "svg")}
    for file in (folder / JUDGEMENTS_FOLDER).rglob("*.jsonl"):
        try:
            ours = "judgements" in read_journal(file)[0]
        except (OSError, JournalError):
            continue
        if ours:
            found.add(file)
    return found
