"""Table 5: a popularity threshold against the model's own decision, on the same test questions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from adaptllm_chain.evaluation.popularity import PopularityResult, popularity_baseline, split
from adaptllm_chain.evaluation.published import PUBLISHED_BESIDE_BASELINE, PUBLISHED_POPULARITY_BASELINE
from adaptllm_chain.evaluation.tables import cells
from adaptllm_chain.evaluation.tables.evidence import Experiment
from adaptllm_chain.reporting import Cell, Row, Table
from adaptllm_chain.ret import choose_threshold


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
    if not experiment.has("adaptive", "never_retrieve", "always_retrieve") or experiment.questions < 4:
        return False
    return all(row.popularity is not None for row in experiment.rows("never_retrieve"))


def _rows(experiment: Experiment) -> list[Row]:
    never, always = experiment.rows("never_retrieve"), experiment.rows("always_retrieve")
    dev, test = split(never)
    single = popularity_baseline(never, always, dev, test, per_relation=False)
    made = [_row("popularity threshold", experiment, test, single, _written(single.threshold))]
    if any(row.relation for row in never):
        several = popularity_baseline(never, always, dev, test, per_relation=True)
        words = f"one for each of {len(several.by_relation)} relations"
        made.append(_row("popularity threshold, by relation", experiment, test, several, Cell(text=words)))
    right, asked = experiment.right("adaptive"), experiment.asked
    own = PopularityResult(
        threshold=math.nan,
        by_relation={},
        retrieved=tuple(asked[index] for index in test),
        right=tuple(right[index] for index in test),
    )
    made.append(_row("adaptive", experiment, test, own, cells.NOTHING))
    if experiment.by_token and experiment.ret_probabilities is not None:
        made.append(_calibrated(experiment, dev, test))
    return made


def _calibrated(experiment: Experiment, dev: Sequence[int], test: Sequence[int]) -> Row:
    """A cut on P(``<RET>``) that is chosen where the popularity threshold is chosen."""
    probabilities, memory = experiment.ret_probabilities or [], experiment.from_memory
    passages = experiment.right("always_retrieve")
    chosen = choose_threshold(
        [probabilities[index] for index in dev],
        [memory[index] for index in dev],
        [passages[index] for index in dev],
    )
    retrieved = [probabilities[index] >= chosen.threshold for index in test]
    result = PopularityResult(
        threshold=math.nan,
        by_relation={},
        retrieved=tuple(retrieved),
        right=tuple(passages[index] if flag else memory[index] for index, flag in zip(test, retrieved, strict=True)),
    )
    cut = Cell(text=f"P(<RET>) ≥ {chosen.threshold:.4f}")
    return _row("adaptive, cut chosen on the 75 %", experiment, test, result, cut)


def _row(label: str, experiment: Experiment, test: Sequence[int], result: PopularityResult, threshold: Cell) -> Row:
    among = [False] * experiment.questions
    retrieved, right = list(among), list(among)
    for index, searches, correct in zip(test, result.retrieved, result.right, strict=True):
        among[index], retrieved[index], right[index] = True, searches, correct
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


def _written(threshold: float) -> Cell:
    return Cell(text="none: all retrieve") if math.isinf(threshold) else cells.number(threshold)
