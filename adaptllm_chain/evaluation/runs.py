"""Finished runs as files: reading them back, checking that they belong together, and leaving out all text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from hashlib import blake2s
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from adaptllm_chain.errors import InvalidInputError, JournalError
from adaptllm_chain.evaluation.cost import Cost
from adaptllm_chain.evaluation.judgement import Judgement
from adaptllm_chain.evaluation.prediction import Prediction
from adaptllm_chain.journal import fingerprint, read_journal, write_whole

SECONDS_FILE = "seconds.jsonl"
"""Beside the predictions: how long each chunk took. The one file that differs when a run is repeated."""

JUDGEMENTS_FOLDER = "judgements"
"""In the folder of a report: what it was made of, without text."""

_NEEDED = (
    *("data", "trained_on", "mode", "policy", "questions", "retriever", "passages", "k", "on_empty"),
    *("model", "weights", "templates", "max_new_tokens", "batch_size", "dtype", "load_in", "versions"),
)
_PLAIN = re.compile(r"[A-Za-z0-9 ,_-]*[A-Za-z0-9][A-Za-z0-9 ,_-]*")
_HASH = re.compile(r"#[0-9a-f]{16}")
_LIBRARIES = ("adaptllm-chain", "langchain-core", "transformers", "peft", "torch")


def slug(text: str) -> str:
    """Turn a name into one for files and places on a page.

    Args:
        text: The name.

    Returns:
        Small letters and digits, with hyphens for all else; with a hash behind them where much was lost.
    """
    kept = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in text.lower())[:60]
    if len(text) <= len(kept) and _PLAIN.fullmatch(text):
        return kept
    return f"{kept.strip('-')}-{blake2s(text.encode(), digest_size=4).hexdigest()}".lstrip("-")


def _unreadable(identifier: str) -> str:
    """Hash an identifier, once."""
    if _HASH.fullmatch(identifier):
        return identifier
    return "#" + blake2s(identifier.encode(), digest_size=8).hexdigest()


def library_versions() -> dict[str, str]:
    """Look up the versions that predictions depend on.

    Returns:
        By package; those that are not installed are left out.
    """
    found = {}
    for library in _LIBRARIES:
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            continue
    return found


class Seconds(BaseModel):
    """A measured time.

    Attributes:
        questions: How many questions it is of: fewer than all if a kill lost a measurement.
        seconds: How long they took.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    questions: int
    seconds: float


class Run(BaseModel):
    """One mode over one data set with one model and one retriever.

    Attributes:
        settings: Everything the predictions depend on, as ``adaptllm evaluate`` wrote it.
        judgements: One a question, in the order of the file.
        cost: Of all answers.
        seconds: How long they took, if that was measured.
    """

    model_config = ConfigDict(frozen=True)

    settings: dict[str, Any]
    judgements: tuple[Judgement, ...]
    cost: Cost
    seconds: Seconds | None = None

    @property
    def data(self) -> str:
        """What the data set is called."""
        return str(self.settings["data"])

    @property
    def trained_on(self) -> str:
        """What the adapter was trained on, as tables call it."""
        return str(self.settings["trained_on"])

    @property
    def mode(self) -> str:
        """Which policy decided."""
        return str(self.settings["mode"])

    @property
    def retriever(self) -> Literal["given", "gold", "index"]:
        """Where the passages come from."""
        kind: Literal["given", "gold", "index"] = self.settings["retriever"]
        return kind

    @property
    def k(self) -> int:
        """Passages a question."""
        return int(self.settings["k"])

    @property
    def name(self) -> str:
        """How a file of this run is called, with its folders."""
        return f"{slug(self.trained_on)}/{slug(self.data)}-{self.retriever}-k{self.k}/{self.mode}"

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file of predictions or of judgements.

        Args:
            path: The file.

        Returns:
            The run.

        Raises:
            JournalError: If it is none.
        """
        settings, rows = read_journal(path)
        try:
            if "judgements" in settings:
                judged = [Judgement.model_validate(row) for chunk in rows for row in chunk["judgements"]]
            else:
                judged = [
                    Judgement.of(Prediction.model_validate(row)) for chunk in rows for row in chunk["predictions"]
                ]
            cost = sum((Cost.model_validate(chunk["cost"]) for chunk in rows), Cost())
            seconds = settings.get("judgements", {}).get("seconds") or measured_seconds(path)
            run = cls(
                settings={name: value for name, value in settings.items() if name != "judgements"},
                judgements=tuple(judged),
                cost=cost,
                seconds=None if seconds is None else Seconds.model_validate(seconds),
            )
            expected = int(settings["statistics"]["questions"])
            for name in _NEEDED:
                settings[name]
        except (AttributeError, KeyError, TypeError, ValidationError) as error:
            raise JournalError(
                f"{path} holds no predictions of this version: {error!r:.200}",
                expected="a file that adaptllm evaluate wrote",
                hint="run adaptllm evaluate again, into another folder",
            ) from error
        if len(run.judgements) != expected:
            raise JournalError(
                f"{path} holds {len(run.judgements)} of {expected} predictions: the run was not finished",
                expected="a finished run",
                hint="give the same adaptllm evaluate command again: it goes on where it was",
            )
        return run

    def write(self, folder: Path) -> Path:
        """Write the run without any text of its data set.

        Identifiers become hashes, since some data sets have the question itself for one.

        Args:
            folder: Where; the file lies in it under the run's name.

        Returns:
            The file.
        """
        path = folder / f"{self.name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        measured = None if self.seconds is None else self.seconds.model_dump()
        header = {**self.settings, "judgements": {"seconds": measured}}
        rows = [
            judgement.model_dump(mode="json", exclude_defaults=True) | {"id": _unreadable(judgement.id)}
            for judgement in self.judgements
        ]
        lines = [
            {"settings": header, "fingerprint": fingerprint(header)},
            {"judgements": rows, "cost": self.cost.model_dump()},
        ]
        write_whole(path, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
        return path


def measured_seconds(path: Path) -> dict[str, Any] | None:
    """Sum up what was measured beside a file of predictions.

    Args:
        path: The predictions.

    Returns:
        The settings' seconds; ``None`` if none were measured, or another mode's answers were used.
    """
    file = path.with_name(SECONDS_FILE)
    if not file.is_file():
        return None
    chunks: dict[int, dict[str, Any]] = {}
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            row = json.loads(line)
            if row["mode"] == path.stem:
                chunks[int(row["start"])] = row  # of a chunk that a kill made twice, the last counts
        except (ValueError, TypeError, KeyError):
            continue  # cut by a kill; seconds are no reason to lose a report
    # Chunks that shared no answer are not those of the mode at large: in them, no question may have retrieved.
    if not chunks or any(row.get("shared", 1) or not row.get("questions") for row in chunks.values()):
        return None
    return {
        "questions": sum(row["questions"] for row in chunks.values()),
        "seconds": round(sum(row["seconds"] for row in chunks.values()), 3),
    }


def read_runs(folders: Iterable[Path]) -> list[Run]:
    """Read all runs below some folders, and check that they can stand in one report.

    Args:
        folders: Where ``adaptllm evaluate`` wrote, or where judgements were kept; files are taken too. Of a report's
            folder its judgements are read; those of reports below the folders are not, nor are indexes.

    Returns:
        The runs, in the order of their files.

    Raises:
        InvalidInputError: If there is none, or some do not belong together.
        JournalError: If a file cannot be read or was not finished.
    """
    named = list(folders)
    files = [file for folder in named for file in run_files(folder)]
    runs = [Run.read(file) for file in files]
    if not runs:
        raise InvalidInputError(
            f"no predictions in {', '.join(map(str, named))}",
            expected="a folder that adaptllm evaluate wrote into",
            hint="adaptllm evaluate --data FILE --out DIR",
        )
    _check_together(runs, files)
    return runs


def run_files(folder: Path) -> list[Path]:
    """Find the files of predictions, or of judgements, below a folder.

    Args:
        folder: The folder, or one file.

    Returns:
        The files, sorted; those of an index, and of a report that stands in the folder, are left out.

    Raises:
        InvalidInputError: If the folder does not exist.
    """
    if not folder.exists():
        raise InvalidInputError(f"{folder} does not exist", expected="a folder with predictions")
    if folder.is_file():
        return [folder]
    if (folder / "report.json").is_file() and (folder / JUDGEMENTS_FOLDER).is_dir():
        folder = folder / JUDGEMENTS_FOLDER
    return sorted(file for file in folder.rglob("*.jsonl") if file.name != SECONDS_FILE and not _foreign(file, folder))


def _foreign(file: Path, folder: Path) -> bool:
    """Say whether a file below a folder belongs to an index, or to a report that was made of it."""
    between = file.parents[: len(file.relative_to(folder).parts)]
    return any(
        (place / "manifest.json").is_file()
        or (place != folder and place.name == JUDGEMENTS_FOLDER and (place.parent / "report.json").is_file())
        for place in between
    )


# Of two runs that agree in the first, the second must agree.
_MUST_AGREE: Sequence[tuple[str, tuple[str, ...], str]] = (
    ("data", ("data",), "questions"),
    ("passages", ("data", "retriever"), "passages"),
    ("prompts", (), "templates"),
    ("lengths of answers", ("trained_on", "data", "retriever", "k"), "max_new_tokens"),
    ("fallbacks", ("trained_on", "data", "retriever", "k"), "on_empty"),
    ("numbers", ("trained_on", "data", "retriever", "k"), "dtype"),
    ("quantisation", ("trained_on", "data", "retriever", "k"), "load_in"),
    ("versions", (), "versions"),
)


def _check_together(runs: Sequence[Run], files: Sequence[Path]) -> None:
    seen: dict[tuple[Any, ...], tuple[Any, Path]] = {}
    for run, file in zip(runs, files, strict=True):
        if run.name in {name for name, *_ in seen}:
            raise InvalidInputError(
                f"{file} and {seen[(run.name,)][1]} are both {run.name}",
                expected="one run a training set, data set, retriever, k and mode",
                hint="leave one folder out, or name the adapters apart with adaptllm evaluate --trained-on",
            )
        seen[(run.name,)] = (None, file)
        for what, same, compared in _MUST_AGREE:
            key = (f"{what} of", *(run.settings[name] for name in same))
            value, first = seen.setdefault(key, (run.settings[compared], file))
            if value != run.settings[compared]:
                raise InvalidInputError(
                    f"{file} was run with other {what} than {first}{_difference(value, run.settings[compared])}",
                    expected="runs of one report with the same data, passages, prompts and versions",
                    hint="run adaptllm evaluate again for one of them, or make two reports",
                )


def _difference(first: Any, second: Any) -> str:
    if not isinstance(first, dict) or not isinstance(second, dict):
        return ""
    names = sorted(name for name in {*first, *second} if first.get(name) != second.get(name))
    return " (" + "; ".join(f"{name}: {first.get(name)!r} -> {second.get(name)!r}" for name in names) + ")"


def same_questions(runs: Sequence[Run]) -> bool:
    """Say whether runs answered the same questions in the same order.

    Args:
        runs: The runs.

    Returns:
        Whether they did.
    """
    orders = [[row.id for row in run.judgements] for run in runs]
    return all(order == orders[0] for order in orders[1:])
