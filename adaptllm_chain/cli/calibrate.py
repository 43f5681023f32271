"""``adaptllm calibrate``: chooses the threshold on P(``<RET>``) on a dev file, and stores it beside the adapter."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from adaptllm_chain.cli.measuring import add_measuring_options
from adaptllm_chain.cli.options import NONE
from adaptllm_chain.errors import InvalidInputError

if TYPE_CHECKING:
    from adaptllm_chain.evaluation import Prediction
    from adaptllm_chain.evaluation.judgement import Judgement
    from adaptllm_chain.ret import Calibration, Objective

MODES = ("never_retrieve", "always_retrieve", "adaptive")
# One question's predictions, in the order of the modes.
Asked: TypeAlias = "tuple[Prediction, Prediction, Prediction]"
_COPY = "my-adapter"
_DRY_RUN = "--dry-run, which prints the threshold and writes nothing"


def add_parser(subparsers: Any) -> None:
    """Add the command.

    Args:
        subparsers: What ``ArgumentParser.add_subparsers`` returned.
    """
    parser = subparsers.add_parser(
        "calibrate",
        help="choose the threshold on P(<RET>) on a dev file",
        description="Asks every question of a file with and without retrieval, chooses the threshold on P(<RET>) with "
        "the best accuracy, and stores it in the adapter's prompt_spec.json, where chains find it. Take a file you do "
        "not test on. Predictions are kept while it runs: the same command again resumes a killed run, and with "
        "another --budget or --price it asks nothing.",
    )
    add_measuring_options(parser, required=False)
    objective = parser.add_mutually_exclusive_group()
    objective.add_argument(
        "--budget", type=float, default=1.0, metavar="S", help="the largest share of the questions that may retrieve"
    )
    objective.add_argument(
        "--price",
        type=float,
        default=0.0,
        metavar="P",
        help="what one retrieval costs, in right answers: at 0.1, ten retrievals must win more than one",
    )
    objective.add_argument(
        "--unset",
        action="store_true",
        help="remove a stored threshold; nothing is asked, --data and --out are not needed",
    )
    parser.add_argument("--dry-run", action="store_true", help="choose and print, but write nothing beside the adapter")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Choose a threshold and store it, or remove it.

    Args:
        arguments: The parsed options.

    Returns:
        0, or 1 if some questions failed.

    Raises:
        InvalidInputError: If the options do not go together, the adapter is none that can be written beside, or no
            threshold can be chosen.
    """
    from adaptllm_chain.cli.measuring import measure
    from adaptllm_chain.evaluation.judgement import Judgement
    from adaptllm_chain.ret import Objective

    if arguments.unset:
        print(_store(_writable_adapter(arguments), None, write=not arguments.dry_run))
        return 0
    if not arguments.data or arguments.out is None:
        raise InvalidInputError(
            "nothing says what to choose the threshold on",
            expected="--data with a file you do not test on, and --out with a folder for its predictions",
            hint="--data FILE --out DIR; or --unset, to remove a stored threshold",
        )
    objective = Objective(budget=arguments.budget, price=arguments.price)
    if arguments.threshold is not None:
        raise InvalidInputError(
            f"--threshold {arguments.threshold}: the threshold is what is chosen here",
            expected="no --threshold",
            hint="adaptllm evaluate --threshold T, to see what one of your own gives",
        )
    folder = None if arguments.dry_run else _writable_adapter(arguments)
    own = argparse.Namespace(**vars(arguments))
    own.threshold = NONE  # one that is stored already would hide what the model said to the questions above it
    predictions = measure(own, MODES)
    rows, failed = _whole(list(zip(*(predictions[mode] for mode in MODES), strict=True)))
    never, always, adaptive = ([Judgement.of(prediction) for prediction in mode] for mode in zip(*rows, strict=True))
    calibration = _calibrate(never, always, adaptive, objective)
    print(_table(calibration, adaptive))
    if folder is None:
        print(f"nothing was written; to use it: --threshold {calibration.threshold!r}")
    else:
        print(_store(folder, calibration.threshold))
    return 1 if failed else 0


def _whole(rows: Sequence[Asked]) -> tuple[list[Asked], int]:
    """Leave out questions that failed in a mode: what they are worth there is not known."""
    from adaptllm_chain.cli.console import note

    whole, failures = [], []
    for row in rows:
        errors = [prediction.error for prediction in row if prediction.error is not None]
        if errors:
            failures.append(f"{row[0].question!r}: {errors[0]}")
        else:
            whole.append(row)
    if not whole:
        raise InvalidInputError(
            f"no question could be answered; the first: {failures[0]}", expected="at least one to choose a threshold on"
        )
    if failures:
        note(f"{len(failures)} questions failed and are left out; the first: {failures[0]}")
    return whole, len(failures)


def _calibrate(
    never: Sequence[Judgement], always: Sequence[Judgement], adaptive: Sequence[Judgement], objective: Objective
) -> Calibration:
    from adaptllm_chain.evaluation.tradeoff import from_memory
    from adaptllm_chain.ret import choose_threshold

    probabilities = [row.ret_probability for row in adaptive]
    known = [probability for probability in probabilities if probability is not None]
    if len(known) < len(adaptive):
        raise InvalidInputError(
            f"the model tells P(<RET>) for {len(known)} of {len(adaptive)} questions",
            expected="a model that tells it for all, as local models do",
        )
    return choose_threshold(known, from_memory(adaptive, never), [row.containment for row in always], objective)


def _table(calibration: Calibration, token_rule: Sequence[Judgement]) -> str:
    count = len(token_rule)
    said = sum(row.containment for row in token_rule) / count
    asked_for = sum(row.route == "retrieve" for row in token_rule) / count
    lines = [
        (f"P(<RET>) >= {calibration.threshold:.6g}, chosen", calibration.accuracy, calibration.retrieved),
        ("always retrieve", calibration.always, 1.0),
        ("never retrieve", calibration.never, 0.0),
        ("the output decides", said, asked_for),
    ]
    return "\n".join(
        [
            "| decision | right | retrieved |",
            "|---|---|---|",
            *(f"| {name} | {100 * right:.1f} % | {100 * retrieved:.1f} % |" for name, right, retrieved in lines),
            "",
            f"chosen on {count} questions for {calibration.objective}",
            "Chosen on these very questions, it looks better here than on others: measure it with `adaptllm evaluate`.",
            *calibration.notes,
        ]
    )


def _writable_adapter(arguments: argparse.Namespace) -> Path:
    """Find the folder to write into, before anything is asked."""
    from adaptllm_chain.cli.model_loading import check_adapter
    from adaptllm_chain.llms.embedded import EMBEDDED, embedded_adapter
    from adaptllm_chain.prompts.spec import FILE_NAME, PromptSpec

    adapter = check_adapter(arguments)
    expected = f"--adapter with a folder of your own that holds {FILE_NAME}"
    if adapter is None:
        raise InvalidInputError(
            "without an adapter there is nothing to store a threshold beside", expected=expected, hint=_DRY_RUN
        )
    folder = embedded_adapter() if adapter == EMBEDDED else Path(adapter)
    if not folder.is_dir():
        fetch = shlex.join(["hf", "download", adapter, "--local-dir", _COPY])
        raise InvalidInputError(
            f"the adapter {adapter!r} is no folder on this machine",
            expected=expected,
            hint=f"for one on the hub: {fetch}, then --adapter {_COPY}; or {_DRY_RUN}",
        )
    copy = f"{shlex.join(['cp', '-r', str(folder), _COPY])}, then --adapter {_COPY}; or {_DRY_RUN}"
    if folder.resolve() == embedded_adapter().resolve():
        raise InvalidInputError(
            f"{folder} is part of the installed package, which is never changed", expected=expected, hint=copy
        )
    if not (folder / FILE_NAME).is_file():
        raise InvalidInputError(
            f"{folder} has no {FILE_NAME}, so its prompt format is unknown",
            expected=expected,
            hint=f"the folder that training/sft.py wrote, with its {FILE_NAME}",
        )
    if "closed_book" not in PromptSpec.load(folder).trained_on and not arguments.unset:
        raise InvalidInputError(
            f"{folder} was not trained on the closed-book prompt, which answers where a threshold overrules <RET>",
            expected="an adapter that was trained on closed-book rows too",
            hint="training/algorithm1.py --baseline-rows, and never_rows.jsonl among the --rows of training/sft.py",
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InvalidInputError(f"{folder} cannot be written", expected=expected, hint=copy)
    return folder


def _store(folder: Path, threshold: float | None, *, write: bool = True) -> str:
    """Put a threshold into the file, all else in it as it was, and say what changed."""
    import json

    from adaptllm_chain.journal import write_whole
    from adaptllm_chain.prompts.spec import FILE_NAME

    path = folder / FILE_NAME
    content = json.loads(path.read_text(encoding="utf-8"))
    former = content.get("ret_threshold")
    if write:
        # Not PromptSpec.save, which would add what the file leaves to the defaults.
        write_whole(path, json.dumps(content | {"ret_threshold": threshold}, indent=2, ensure_ascii=False) + "\n")
    return f"{path}: ret_threshold was {_said(former)}, {'is now' if write else 'would be'} {_said(threshold)}"


def _said(threshold: float | None) -> str:
    return NONE if threshold is None else repr(threshold)
