"""The controlled experiment: what became of statements whose right marks are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from adaptllm_chain.evaluation.estimate import Estimate
from adaptllm_chain.evaluation.grounding import EXTRACTIVE, KnownMarks
from adaptllm_chain.evaluation.tables import cells
from adaptllm_chain.evaluation.tables.grounding import GroundedExperiment
from adaptllm_chain.metrics import wilson_interval
from adaptllm_chain.reporting import Cell, Row, Table


class _Check(NamedTuple):
    """A share of statements.

    Attributes:
        what: How the table calls it.
        part: What is right about it: which part of the machinery is tried.
        counted: The name of its count in ``KnownMarks``.
        total: The names of the counts that it is a share of.
        wanted: How large it should be.
    """

    what: str
    part: str
    counted: str
    total: tuple[str, ...]
    wanted: str


_ALL = ("copied", "swapped", "withheld")
_CHECKS = (
    _Check("marks and named statements read as written", "prompt, marks, parser", "written", _ALL, "all"),
    _Check("copied statement linked to its passage", "judge", "linked", ("copied",), "all"),
    _Check("copied statement linked to another passage", "judge", "mislinked", ("copied",), "none"),
    _Check("copied statement named as unsupported", "judge", "doubted", ("copied",), "none"),
    _Check("statement without support linked all the same", "judge", "fooled", ("swapped", "withheld"), "none"),
    _Check("statement without support named", "judge", "named", ("swapped", "withheld"), "all"),
    _Check("supported statement attributed rightly", "search and judge", "attributed", ("copied", "withheld"), "all"),
    _Check(
        "supported statement attributed to another passage",
        "search and judge",
        "misattributed",
        ("copied", "withheld"),
        "none",
    ),
    _Check("swapped statement attributed all the same", "search and judge", "swapped_attributed", ("swapped",), "none"),
    _Check("withheld passage found and cited", "test-time adaptation", "retrieved", ("withheld",), "all"),
    _Check("copied statement still cited rightly", "test-time adaptation", "kept", ("copied",), "all"),
    _Check("swapped statement still named", "test-time adaptation", "left", ("swapped",), "all"),
)


def controlled(found: Sequence[GroundedExperiment]) -> Table:
    """Show what became of statements whose right marks are known.

    Args:
        found: The experiments; those in which the extractive writer ran are in it.

    Returns:
        The table: a row a check; without rows if the writer did not run.
    """
    rows = []
    for one in found:
        if EXTRACTIVE in one.runs:
            known = (row.known for row in one.runs[EXTRACTIVE].judgements)
            counts = sum((row for row in known if row is not None), KnownMarks())
            rows += [_row(check, counts, one.label) for check in _CHECKS]
    return Table(
        id="controlled",
        title="Statements whose right marks are known",
        caption="A writer stands in the place of the model: for each question it says a sentence of a passage that is "
        "shown, one with a swapped number or name, and one of a passage that is withheld until it is searched for. It "
        "marks them as a perfect model would. Shares of statements, with Wilson's intervals. (By accident, a swapped "
        "fact can be true.)",
        columns=("what", "data", "what is tried", "share", "wanted"),
        rows=tuple(rows),
    )


def _row(check: _Check, counts: KnownMarks, label: str) -> Row:
    count, total = getattr(counts, check.counted), sum(getattr(counts, name) for name in check.total)
    return Row(
        label=Cell(text=check.what),
        cells=(
            cells.text(label),
            cells.text(check.part),
            cells.share(_share(count, total)),
            cells.text(check.wanted),
        ),
    )


def _share(count: int, total: int) -> Estimate | None:
    if not total:
        return None
    low, high = wilson_interval(count, total)
    return Estimate(value=count / total, low=low, high=high, total=total, count=count)
