"""``adaptllm evaluate``: a data file, a model and a retriever into accuracy and retrieval share, mode by mode."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adaptllm_chain.cli.grounding import SUITE, add_grounding_options
from adaptllm_chain.cli.measuring import add_measuring_options
from adaptllm_chain.cli.options import MODES, SUITES
from adaptllm_chain.errors import InvalidInputError

if TYPE_CHECKING:
    from adaptllm_chain.evaluation import Judgement

_DEFAULT_MODES = "never_retrieve,always_retrieve,adaptive"


def add_parser(subparsers: Any) -> None:
    """Add the command.

    Args:
        subparsers: What ``ArgumentParser.add_subparsers`` returned.
    """
    parser = subparsers.add_parser(
        "evaluate",
        help="measure accuracy and retrieval share on a data file",
        description="Asks every question of a file in every mode and prints accuracy and retrieval share with 95 % "
        "intervals. Predictions are kept while it runs: the same command again resumes a killed run. "
        "`adaptllm report DIR` makes tables, figures and a page of them.",
    )
    add_measuring_options(parser)
    parser.add_argument(
        "--modes", type=_modes, default=_modes(_DEFAULT_MODES), metavar="A,B", help=f"default: {_DEFAULT_MODES}"
    )
    parser.add_argument("--never-adapter", metavar="A", help="the adapter of never_retrieve, if it has its own")
    parser.add_argument("--always-adapter", metavar="A", help="the adapter of always_retrieve, if it has its own")
    parser.add_argument("--name", metavar="D", help="how tables call the data (default: the names of the files)")
    parser.add_argument(
        "--trained-on",
        metavar="T",
        help="how tables call the training set (default: the name of the adapter's folder)",
    )
    parser.add_argument(
        "--time-each-mode",
        action="store_true",
        help="let no mode use answers that another has made, so that the seconds of all modes can be compared",
    )
    parser.add_argument(
        "--suite",
        choices=SUITES,
        help="run all experiments of a paper and make its report. paper: --data popqa=FILE --data nq_dev=FILE --data "
        "squad_dev=FILE, as many of these as you have; --modes, --retriever, --k and --name are then the suite's. "
        "agree: four systems that cite; --data nq=FILE --adapter DIR, five passages a question unless --k says "
        "otherwise",
    )
    parser.add_argument(
        "--index",
        type=Path,
        metavar="DIR",
        help="with --suite: the index to search (default: one of all passages in the files is made in OUT)",
    )
    add_grounding_options(parser)
    # The suites have numbers of passages of their own.
    parser.set_defaults(run=run, k=None)


def run(arguments: argparse.Namespace) -> int:
    """Evaluate.

    Args:
        arguments: The parsed options.

    Returns:
        0, or 1 if some questions failed.
    """
    import json

    from adaptllm_chain.cli.console import note
    from adaptllm_chain.cli.measuring import measure

    if arguments.suite == SUITE:
        from adaptllm_chain.cli.grounding import run_grounding

        return run_grounding(arguments)
    if arguments.suite is not None:
        from adaptllm_chain.cli.suite import run_suite

        return run_suite(arguments)
    if arguments.index is not None:
        raise InvalidInputError("--index goes with --suite", expected=f"--retriever {arguments.index}")
    arguments.k = arguments.k or 1
    from adaptllm_chain.evaluation import Judgement, render_table, summarise
    from adaptllm_chain.journal import write_whole

    own = {"never_retrieve": arguments.never_adapter, "always_retrieve": arguments.always_adapter}
    predictions = measure(arguments, arguments.modes, own)
    judged = {mode: list(map(Judgement.of, rows)) for mode, rows in predictions.items()}
    summaries = {mode: summarise(rows, judged.get("never_retrieve")) for mode, rows in judged.items()}
    written = {mode: summary.model_dump() for mode, summary in summaries.items()}
    write_whole(arguments.out / "summary.json", json.dumps(written, indent=2) + "\n")
    print(render_table(summaries))
    ranking = summaries["adaptive"].auc if "adaptive" in summaries else None
    if ranking is not None:
        print(f'\narea under the curve of P(<RET>) against "never_retrieve is wrong": {ranking:.3f}')
    _write_trade_off(judged, arguments.out)
    failed = [row for rows in predictions.values() for row in rows if row.error is not None]
    if failed:
        note(f"{len(failed)} questions failed and count as wrong; the first: {failed[0].question!r}: {failed[0].error}")
    note(f"tables, figures and a page: adaptllm report {arguments.out} --out {arguments.out / 'report'}")
    return 1 if failed else 0


def _write_trade_off(judged: dict[str, list[Judgement]], out: Path) -> None:
    """Write what every threshold would have given, where the three modes that it takes were run."""
    from adaptllm_chain.evaluation import Run, trade_off
    from adaptllm_chain.journal import write_whole

    never, always, adaptive = (judged.get(m) for m in ("never_retrieve", "always_retrieve", "adaptive"))
    file = out / "trade_off.json"
    file.unlink(missing_ok=True)  # of an earlier run with other modes
    if never is None or always is None or adaptive is None:
        return
    if Run.read(out / "adaptive.jsonl").settings["policy"]["threshold"] is not None:
        return  # a threshold hides what the model said to the questions above it
    failed = {row.id for rows in (never, always, adaptive) for row in rows if row.failed}
    never, always, adaptive = ([row for row in rows if row.id not in failed] for rows in (never, always, adaptive))
    if not adaptive or any(row.ret_probability is None for row in adaptive):
        return  # the model tells none, so there is no threshold to choose
    bounds = trade_off(adaptive, never, always)
    write_whole(file, bounds.model_dump_json(indent=2) + "\n")
    print(f"right by either path: {bounds.oracle}; every threshold: {file}")


def _modes(text: str) -> tuple[str, ...]:
    modes = tuple(part.strip() for part in text.split(",") if part.strip())
    wrong = [mode for mode in modes if mode not in MODES]
    if wrong or not modes:
        raise argparse.ArgumentTypeError(f"{text!r}: choose among {', '.join(MODES)}")
    return modes
