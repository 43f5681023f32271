"""Table 5: a popularity threshold against the model's own decision, on the same test questions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

from adaptllm_chain.evaluation.popularity import popularity_baseline, split
from adaptllm_chain.evaluation.published import PUBLISHED_BESIDE_BASELINE, PUBLISHED_POPULARITY_BASELINE
from adaptllm_chain.evaluation.tables import cells
from adaptllm_chain.evaluation.tables.calibrated import FEWEST, at_calibrated_cut, calibrated_cut
from adaptllm_chain.evaluation.tables.evidence import Experiment
from adaptllm_chain.reporting import Cell, Row, Table

T = TypeVar("T")


def table_5(found: Sequence[Experiment]) -> Table | None:
    """Make the paper's Table 5.

    Thresholds are chosen on 75 % of the questions and measured on the others. Beside the paper's rows stands a
    threshold on P(``<RET>``) that is chosen on the same 75 %.

    Args:
        found: The experiments; those with adaptive, never_retrieve and always_retrieve on questions whose popularity
            is known are in it.

    Returns:
        The table; ``None`` without such an experiment.
    """
    rows = [row for one in found if _can(one) for row in _rows(one)]
    if not rows:
        return None
    printed = PUBLISHED_POPULARITY_BASELINE
    baseline = [cells.number(printed.threshold), cells.paper(printed.usage), cells.paper(printed.accuracy)]
    rows.append(cells.paper_row("popularity threshold", [cells.NOTHING, *baseline, cells.NOTHING]))
    for trained_on, figures in PUBLISHED_BESIDE_BASELINE.items():
        row = [cells.NOTHING, cells.NOTHING, cells.paper(figures.usage), cells.paper(figures.accuracy), cells.NOTHING]
        rows.append(cells.paper_row(f"adaptive, trained on {trained_on}", row))
    return Table(
        id="table-5",
        title="Table 5: a popularity threshold against the model's own decision",
        caption="Thresholds are chosen on 75 % of the questions, drawn at random; the figures are of the other 25 %. A "
        "question whose subject is at least as popular as the threshold is answered from memory. Containment.",
        columns=("decision", "experiment", "threshold", "searches (IR usage)", "containment", "test questions"),
        rows=tuple(rows),
    )


def _can(experiment: Experiment) -> bool:
    if not experiment.has("adaptive", "never_retrieve", "always_retrieve") or experiment.questions < FEWEST:
        return False
    return all(row.popularity is not None for row in experiment.rows("never_retrieve"))


def _rows(experiment: Experiment) -> list[Row]:
    never, always = experiment.rows("never_retrieve"), experiment.rows("always_retrieve")
    dev, test = split(never)
    single = popularity_baseline(never, always, dev, test, per_relation=False)
    threshold = Cell(text="none: all retrieve") if math.isinf(single.threshold) else cells.number(single.threshold)
    made = [_row("popularity threshold", experiment, test, (threshold, single.retrieved, single.right))]
    if any(row.relation for row in never):
        several = popularity_baseline(never, always, dev, test, per_relation=True)
        words = Cell(text=f"one for each of {len(several.by_relation)} relations")
        made.append(
            _row("popularity threshold, by relation", experiment, test, (words, several.retrieved, several.right))
        )
    own = (cells.NOTHING, _at(test, experiment.asked), _at(test, experiment.right("adaptive")))
    made.append(_row(experiment.called("adaptive"), experiment, test, own))
    if experiment.can_choose:
        made.append(_calibrated(experiment, test))
    return made


def _calibrated(experiment: Experiment, test: Sequence[int]) -> Row:
    """A cut on P(``<RET>``) that is chosen where the popularity threshold is chosen."""
    chosen = calibrated_cut(experiment)
    retrieved, right = at_calibrated_cut(experiment, chosen)
    decided = (Cell(text=f"P(<RET>) ≥ {chosen:.6g}"), _at(test, retrieved), _at(test, right))
    return _row("adaptive, cut chosen on the 75 %", experiment, test, decided)


def _row(
    label: str, experiment: Experiment, test: Sequence[int], decided: tuple[Cell, Sequence[bool], Sequence[bool]]
) -> Row:
    """Write what a decision gave on the test questions: its threshold, what retrieved, and what was right."""
    threshold, searches, correct = decided
    among = [False] * experiment.questions
    retrieved, right = list(among), list(among)
    for index, searched, answered in zip(test, searches, correct, strict=True):
        among[index], retrieved[index], right[index] = True, searched, answered
    return Row(
        label=Cell(text=label),
        cells=(
            cells.text(experiment.label),
            threshold,
            cells.share(experiment.share(retrieved, among)),
            cells.share(experiment.share(right, among)),
            cells.count(len(test)),
        ),
    )


def _at(indices: Sequence[int], values: Sequence[T]) -> list[T]:
    return [values[index] for index in indices]
