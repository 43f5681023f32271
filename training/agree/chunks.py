"""Work that is done a chunk at a time, each chunk written whole or not at all, and the seconds that it took."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from adaptllm_chain.journal import Journal, write_whole

Row = dict[str, Any]


class StageClock:
    """The seconds of each stage over all legs of a run, kept in a file of their own: they are never the same twice.

    What a leg did after the last chunk that it finished is lost with it, so it does not count.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.seconds: dict[str, float] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        self._since = time.monotonic()

    def start(self) -> None:
        """Forget the time since the last chunk: it belongs to no stage."""
        self._since = time.monotonic()

    def lap(self, stage: str) -> None:
        """Add the time since the start, or the last lap, to a stage.

        Args:
            stage: Its name.
        """
        now = time.monotonic()
        self.seconds[stage] = round(self.seconds.get(stage, 0.0) + now - self._since, 2)
        self._since = now
        write_whole(self._path, json.dumps(self.seconds, indent=2) + "\n")


def in_chunks(
    journal: Journal,
    identifiers: Sequence[str],
    chunk: int,
    work: Callable[[range], Sequence[Row]],
    clock: StageClock,
    stage: str,
) -> list[Row]:
    """Do what a journal does not hold yet.

    Args:
        journal: Where finished chunks are kept.
        identifiers: What is worked on, in order.
        chunk: How many of them at a time.
        work: Makes a row for each of the places that it is given; a row is JSON-serialisable and has no ``id`` yet.
        clock: Counts the seconds.
        stage: The name of the work.

    Returns:
        A row for each identifier, in order, under ``id`` the identifier.

    Raises:
        JournalError: If the journal holds others, or these in another order.
    """
    journal.check_order([row["id"] for done in journal for row in done["rows"]], identifiers)
    start = len(journal) * chunk
    clock.start()
    with tqdm(total=len(identifiers), initial=min(start, len(identifiers)), unit="query", desc=stage) as bar:
        for first in range(start, len(identifiers), chunk):
            places = range(first, min(first + chunk, len(identifiers)))
            rows = [{"id": identifiers[place], **row} for place, row in zip(places, work(places), strict=True)]
            journal.extend([{"rows": rows}])
            clock.lap(stage)
            bar.update(len(rows))
    return [row for done in journal for row in done["rows"]]
