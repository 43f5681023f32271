"""Stages: each in a folder of its own, run once, and refused when it belongs to other settings."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from adaptllm_chain.errors import JournalError
from adaptllm_chain.journal import fingerprint, write_whole


class Stages:
    """The stages of a run.

    Args:
        out: The run's folder.
        settings: What all stages depend on; JSON-serialisable.

    Attributes:
        out: The run's folder.
        seconds: How long each stage took when it ran.

    Raises:
        JournalError: If the folder belongs to a run with other settings.
    """

    def __init__(self, out: Path, settings: Mapping[str, Any]) -> None:
        self.out = out
        self.seconds: dict[str, float] = {}
        self._mark = fingerprint(settings)
        out.mkdir(parents=True, exist_ok=True)
        path = out / "settings.json"
        if path.exists():
            found = json.loads(path.read_text(encoding="utf-8"))
            if changed := sorted(key for key in {*found, *settings} if found.get(key) != settings.get(key)):
                differences = "; ".join(f"{key}: {found.get(key)!r} -> {settings.get(key)!r}" for key in changed)
                raise JournalError(
                    f"{out} belongs to a run with other settings ({differences})",
                    expected="the same settings as the run that is resumed",
                    hint="--out another-folder, or delete this one to start over",
                )
        else:
            write_whole(path, json.dumps(settings, indent=2) + "\n")

    def run(self, name: str, work: Callable[[Path], Any]) -> Any:
        """Run a stage, unless it has been finished before.

        Args:
            name: Its name, and that of its folder.
            work: Does it, given the folder; returns what later stages and the figures need, as JSON.

        Returns:
            What the work returned, now or then.

        Raises:
            JournalError: If the folder was finished by a run with other settings.
        """
        folder = self.out / name
        done = folder / "stage.json"
        if not done.exists():
            print(f"== {name}", file=sys.stderr, flush=True)
            folder.mkdir(exist_ok=True)
            start = time.monotonic()
            outcome = work(folder)
            record = {"settings": self._mark, "seconds": round(time.monotonic() - start, 1), "outcome": outcome}
            write_whole(done, json.dumps(record, ensure_ascii=False, indent=2) + "\n")
        record = json.loads(done.read_text(encoding="utf-8"))
        if record["settings"] != self._mark:
            raise JournalError(f"{folder} was made with other settings", hint="delete it to run the stage again")
        self.seconds[name] = record["seconds"]
        return record["outcome"]
