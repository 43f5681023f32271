"""Options for reading question files. Nothing heavy is imported here: ``--help`` must answer at once."""

from __future__ import annotations

import argparse
from typing import Any

# The parts of a question, as `DEFAULT_COLUMNS` names them.
PARTS = ("id", "question", "answers", "gold_passage", "title", "popularity", "relation")
ON_PROBLEM = ("raise", "skip")
ON_CUT = ("raise", "keep")
SOURCES = (
    "a question file, plain or gzip, or a data set from huggingface.co: hub:squad:train, hub:squad:validation, "
    "hub:nq_open:train, hub:nq_open:validation, hub:popqa:test"
)
"""What a command can say of the names it takes."""


def add_data_options(parser: argparse.ArgumentParser) -> None:
    """Add what says how question files are read.

    Args:
        parser: The parser of a command.
    """
    group = parser.add_argument_group("reading the questions")
    group.add_argument("--format", default="auto", metavar="F", help="of the files; by default found out from them")
    group.add_argument(
        "--column",
        action="append",
        default=[],
        type=_column,
        metavar="PART=NAME",
        help="which column or JSON key of a file of your own holds a part of a question; repeatable: "
        f"--column question=q --column answers=gold. The parts are {', '.join(PARTS)}",
    )
    group.add_argument(
        "--on-bad-row",
        choices=ON_PROBLEM,
        default="raise",
        help="a row that cannot be used: stop there, or skip and count it (default: raise)",
    )
    group.add_argument(
        "--on-unanswerable",
        choices=ON_PROBLEM,
        default="raise",
        help="the same for the questions of SQuAD v2 that have no answer (default: raise)",
    )
    group.add_argument(
        "--on-cut",
        choices=ON_CUT,
        default="raise",
        help="a file that ends in the middle: refuse it, or keep the questions that are whole (default: raise)",
    )


def read_arguments(arguments: argparse.Namespace) -> dict[str, Any]:
    """Turn the options into arguments of ``read_questions`` and ``read_many``.

    Args:
        arguments: The parsed options.

    Returns:
        The keyword arguments.
    """
    return {
        "format": arguments.format,
        "columns": dict(arguments.column) or None,
        "on_bad_row": arguments.on_bad_row,
        "on_unanswerable": arguments.on_unanswerable,
        "on_cut": arguments.on_cut,
    }


def _column(text: str) -> tuple[str, str]:
    part, separator, name = text.partition("=")
    if part not in PARTS or not separator or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not PART=NAME with a part out of {', '.join(PARTS)}")
    return part, name
