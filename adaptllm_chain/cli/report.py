"""``adaptllm report``: from predictions to the paper's tables and figure, without a model."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

JUDGEMENTS_FOLDER = "judgements"


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
    from adaptllm_chain.evaluation import read_runs
    from adaptllm_chain.evaluation.tables import paper_report
    from adaptllm_chain.reporting import write_report

    kept = arguments.out / JUDGEMENTS_FOLDER
    runs = read_runs(arguments.folders, leave_out=kept)
    report = paper_report(runs)
    files = write_report(report, arguments.out)
    for one in runs:
        one.write(kept)
    print("\n".join(map(str, files)))
    print(f"{len(runs)} runs without text: {kept}")
    return 0
