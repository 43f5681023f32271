"""What happened while files were read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

KEPT_PROBLEMS: Final = 20
"""How many problems a report keeps in words; all of them are counted."""


@dataclass(slots=True)
class ReadReport:
    """Counts that a reader fills in while it runs; complete when the reader is exhausted.

    Attributes:
        questions: Questions that were read.
        skipped: Broken rows that were left out.
        unanswerable: Questions that were left out because their source says they have no answer.
        duplicates: Questions that ``read_many`` dropped because another one asks the same.
        problems: The first broken rows, in words.
        cuts: Files that were cut and read as far as they are whole, in words.
    """

    questions: int = 0
    skipped: int = 0
    unanswerable: int = 0
    duplicates: int = 0
    problems: list[str] = field(default_factory=list)
    cuts: list[str] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """How many rows there were, usable or not."""
        return self.questions + self.skipped + self.unanswerable

    def add_skipped(self, problem: str) -> None:
        """Count a row that was left out.

        Args:
            problem: The file, the row, and what is wrong with it.
        """
        self.skipped += 1
        if len(self.problems) < KEPT_PROBLEMS:
            self.problems.append(problem)
