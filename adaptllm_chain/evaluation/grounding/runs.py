"""Finished runs of AGREE's evaluation as files: predictions with what the judge said of them, or judgements alone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationError

from adaptllm_chain.errors import InvalidInputError, JournalError
from adaptllm_chain.evaluation.cost import Cost
from adaptllm_chain.evaluation.grounding.controlled import EXTRACTIVE, ControlledPrediction
from adaptllm_chain.evaluation.grounding.judgement import GroundedJudgement, judge
from adaptllm_chain.evaluation.grounding.known_marks import KnownMarks
from adaptllm_chain.evaluation.grounding.prediction import GroundedPrediction
from adaptllm_chain.evaluation.grounding.scores import ENTAILMENT_FILE, KnownScores
from adaptllm_chain.evaluation.runs import Run, Seconds, measured_seconds, run_files
from adaptllm_chain.journal import read_journal

SUITE = "agree"
"""What the settings of such a run have under ``suite``."""

# Runs of one report agree in the first, if they agree in the others.
_MUST_AGREE: Sequence[tuple[str, tuple[str, ...]]] = (
    ("judge", ()),
    ("versions", ()),
    ("questions", ("data",)),
    ("passages", ("data",)),
    ("max_new_tokens", ("trained_on", "data", "k")),
    ("dtype", ("trained_on", "data", "k")),
    ("load_in", ("trained_on", "data", "k")),
)
_NEEDED = ("mode", "data", "trained_on", "retriever", "k", "model", "prompt", *(name for name, _ in _MUST_AGREE))


class GroundedRun(Run):
    """One system over one data set.

    Attributes:
        settings: Everything the predictions depend on, and the judge that measured them.
        judgements: One a question, in the order of the file.
        cost: Of all answers.
        seconds: How long they took, if that was measured.
    """

    judgements: tuple[GroundedJudgement, ...]

    @classmethod
    def read(cls, path: Path, scores: KnownScores | None = None) -> Self:
        """Read a file of predictions or of judgements.

        Args:
            path: The file.
            scores: The scores of the predictions; by default those in the file beside it.

        Returns:
            The run.

        Raises:
            JournalError: If it is none, was not finished, or was not judged.
        """
        settings, rows = read_journal(path)
        try:
            expected = int(settings["statistics"]["questions"])
            cost = sum((Cost.model_validate(chunk["cost"]) for chunk in rows), Cost())
            if "judgements" in settings:
                judged = [GroundedJudgement.model_validate(row) for chunk in rows for row in chunk["judgements"]]
                seconds = settings.pop("judgements")["seconds"]
            else:
                _check_finished(path, sum(len(chunk["predictions"]) for chunk in rows), expected)
                scores = scores or KnownScores.read(path.with_name(ENTAILMENT_FILE))
                judged = judged_rows(settings["mode"], (row for chunk in rows for row in chunk["predictions"]), scores)
                settings["judge"] = scores.judge
                seconds = measured_seconds(path)
            run = cls(
                settings=settings,
                judgements=tuple(judged),
                cost=cost,
                seconds=None if seconds is None else Seconds.model_validate(seconds),
            )
            for name in _NEEDED:
                settings[name]
        except (AttributeError, KeyError, TypeError, ValidationError) as error:
            raise JournalError(
                f"{path} holds no grounded answers of this version: {error!r:.200}",
                expected="a file that adaptllm evaluate --suite agree wrote",
                hint="run adaptllm evaluate again, into another folder",
            ) from error
        _check_finished(path, len(run.judgements), expected)
        return run


def judged_rows(mode: str, rows: Iterable[Mapping[str, Any]], scores: KnownScores) -> list[GroundedJudgement]:
    """Judge predictions as they are kept.

    Args:
        mode: The system that made them, or the extractive writer.
        rows: The predictions as JSON.
        scores: What the judge of entailment says of their sentences.

    Returns:
        One judgement a prediction, in order.
    """
    if mode != EXTRACTIVE:
        return judge(list(map(GroundedPrediction.model_validate, rows)), scores)
    controlled = list(map(ControlledPrediction.model_validate, rows))
    return judge([row.written for row in controlled], scores, list(map(KnownMarks.of, controlled)))


def holds_grounded_runs(folders: Iterable[Path]) -> bool:
    """Say whether folders hold runs of AGREE's evaluation.

    Args:
        folders: The folders, or files.

    Returns:
        Whether any does.
    """
    return any(_suite_of(file) == SUITE for folder in folders for file in run_files(folder))


def read_grounded_runs(folders: Iterable[Path]) -> list[GroundedRun]:
    """Read all runs below some folders, and check that they can stand in one report.

    Args:
        folders: Where ``adaptllm evaluate --suite agree`` wrote, or where judgements were kept; files are taken too.

    Returns:
        The runs, in the order of their files.

    Raises:
        InvalidInputError: If there is none, or some do not belong together.
        JournalError: If a file cannot be read, was not finished or was not judged.
    """
    named = list(folders)
    files = [file for folder in named for file in run_files(folder) if file.name != ENTAILMENT_FILE]
    foreign = [file for file in files if _suite_of(file) != SUITE]
    if foreign or not files:
        raise InvalidInputError(
            f"{foreign[0] if foreign else ', '.join(map(str, named))} holds no grounded answers",
            expected="folders that adaptllm evaluate --suite agree wrote into, and no others",
            hint="make a report of each suite",
        )
    runs = list(map(GroundedRun.read, files))
    _check_together(runs, files)
    return runs


def _suite_of(file: Path) -> str | None:
    """Read to which suite a file belongs, without reading all of it; ``None`` for any other file."""
    with file.open("rb") as content:
        line = content.readline()
    try:
        suite = json.loads(line)["settings"]["suite"]
    except (ValueError, KeyError, TypeError):
        return None
    return str(suite)


def _check_finished(path: Path, found: int, expected: int) -> None:
    if found != expected:
        raise JournalError(
            f"{path} holds {found} of {expected} predictions: the run was not finished",
            expected="a finished run",
            hint="give the same adaptllm evaluate command again: it goes on where it was",
        )


def _check_together(runs: Sequence[GroundedRun], files: Sequence[Path]) -> None:
    names: dict[str, Path] = {}
    firsts: dict[tuple[str, ...], tuple[Any, Path]] = {}
    for run, file in zip(runs, files, strict=True):
        if run.name in names:
            raise InvalidInputError(
                f"{file} and {names[run.name]} are both {run.name}",
                expected="one run a system and data set",
                hint="leave one folder out, or name the adapters apart with adaptllm evaluate --trained-on",
            )
        names[run.name] = file
        for name, same in _MUST_AGREE:
            key = (name, *(str(run.settings[other]) for other in same))
            value, first = firsts.setdefault(key, (run.settings[name], file))
            if value != run.settings[name]:
                raise InvalidInputError(
                    f"{file} has other {name} than {first}: {run.settings[name]!r:.200}, there {value!r:.200}",
                    expected="runs of one report with the same questions, passages, judge and versions",
                    hint="run adaptllm evaluate again for one of them, or make two reports",
                )
