"""``adaptllm stats``: the paper's Table 2 for any question file, and what is wrong in it."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from adaptllm_chain.cli.data_options import SOURCES, add_data_options, read_arguments

if TYPE_CHECKING:
    from adaptllm_chain.qa_data import ReadReport, Statistics

_TOTAL = "total"
_HEADINGS = (
    "questions",
    "words a question",
    "words an answer",
    "of the first",
    "answers",
    "gold",
    "given",
    "popularity",
    "duplicates",
    "skipped",
)


def add_parser(subparsers: Any) -> None:
    """Add the command.

    Args:
        subparsers: What ``ArgumentParser.add_subparsers`` returned.
    """
    parser = subparsers.add_parser(
        "stats",
        help="count the questions of a data file, their words and what is broken",
        description="Counts, per file and in total: questions, words a question, words an answer (the paper's Table "
        "2), answers a question, the shares with a gold passage, with passages that were found before and with a "
        "popularity, duplicates, and skipped rows. Words are what white space separates. 'Words an answer' is the "
        "mean over all accepted answers of all questions, 'of the first' over each question's first answer, the one "
        "that is trained on. A duplicate asks the same as an earlier question, but for case, spaces and the mark at "
        "its end.",
    )
    parser.add_argument("sources", nargs="+", metavar="FILE", help=SOURCES)
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    add_data_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Count.

    Args:
        arguments: The parsed options.

    Returns:
        0.
    """
    from adaptllm_chain.cli.console import progress_bar
    from adaptllm_chain.qa_data import ReadReport, Tally, read_questions

    files, total = [], Tally()
    with progress_bar("questions") as bar:
        for source in arguments.sources:
            report, tally = ReadReport(), Tally()
            for question in read_questions(source, **read_arguments(arguments), report=report):
                tally.add(question)
                total.add(question)
                bar.update()
            files.append({"source": source, **_figures(tally.statistics(), report), **_problems(report)})
    whole = {name: sum(file[name] for file in files) for name in ("skipped", "unanswerable")}
    found = {"files": files, _TOTAL: {**_statistics(total.statistics()), **whole}}
    print(json.dumps(found, indent=2, ensure_ascii=False) if arguments.json else _as_text(found))
    return 0


def _statistics(statistics: Statistics) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(statistics)


def _figures(statistics: Statistics, report: ReadReport) -> dict[str, Any]:
    return {**_statistics(statistics), "skipped": report.skipped, "unanswerable": report.unanswerable}


def _problems(report: ReadReport) -> dict[str, Any]:
    return {"problems": report.problems, "cuts": report.cuts}


def _as_text(found: dict[str, Any]) -> str:
    rows = [("", *_HEADINGS), *((file["source"], *_cells(file)) for file in found["files"])]
    if len(found["files"]) > 1:
        rows.append((_TOTAL, *_cells(found[_TOTAL])))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows]
    for file in found["files"]:
        lines += ["", *file["cuts"]] if file["cuts"] else []
        if file["unanswerable"]:
            lines += ["", f"{file['source']}: {file['unanswerable']:,} unanswerable questions were left out"]
        if file["skipped"]:
            lines += ["", f"{file['source']}: skipped {file['skipped']:,} broken rows", *_shown(file)]
    return "\n".join(lines)


def _shown(file: dict[str, Any]) -> list[str]:
    more = file["skipped"] - len(file["problems"])
    return [*(f"  {problem}" for problem in file["problems"]), *([f"  and {more:,} more"] if more else [])]


def _cells(figures: dict[str, Any]) -> tuple[str, ...]:
    return (
        f"{figures['questions']:,}",
        f"{figures['words_per_question']:.2f}",
        f"{figures['words_per_answer']:.2f}",
        f"{figures['words_per_first_answer']:.2f}",
        f"{figures['answers_per_question']:.2f}",
        f"{figures['gold_passages']:.1%}",
        f"{figures['given_passages']:.1%}",
        f"{figures['popularities']:.1%}",
        f"{figures['duplicates']:,}",
        f"{figures['skipped']:,}",
    )
