"""Table 1: accuracy by configuration; and whether the modes differ by more than chance."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from adaptllm_chain.evaluation.published import PUBLISHED_ACCURACY, PUBLISHED_STATISTICS
from adaptllm_chain.evaluation.tables import cells
from adaptllm_chain.evaluation.tables.evidence import Experiment
from adaptllm_chain.metrics import mcnemar
from adaptllm_chain.reporting import Cell, Row, Table


def table_1(found: Sequence[Experiment]) -> Table:
    """Make the paper's Table 1.

    Args:
        found: The experiments.

    Returns:
        The table: a row a mode of each experiment, by all four metrics.
    """
    rows = [_row(experiment, mode) for experiment in found for mode in experiment.runs]
    questions = PUBLISHED_STATISTICS["PopQA"].questions
    for trained_on, figures in PUBLISHED_ACCURACY.items():
        for mode in ("never", "always", "adaptive"):
            printed = [cells.paper(getattr(figures, mode)), *[cells.NOTHING] * 4]
            row = [cells.text("PopQA"), cells.text("passages by Contriever"), cells.count(questions), *printed]
            rows.append(cells.paper_row(f"{trained_on}: {mode}", row))
    return Table(
        id="table-1",
        title="Table 1: accuracy by configuration",
        caption="Containment is what the paper calls exact match: an accepted answer stands in the output, case aside. "
        "The first line alone guards against rambling; strict exact match and F1 are those of SQuAD.",
        columns=(
            "trained on: mode",
            "data",
            "passages",
            "questions",
            "containment",
            "in the first line",
            "strict exact match",
            "token F1",
            "failed",
        ),
        rows=tuple(rows),
    )


def _row(experiment: Experiment, mode: str) -> Row:
    rows = experiment.rows(mode)
    draws = experiment.resamples
    return Row(
        label=Cell(text=f"{experiment.first.trained_on}: {experiment.called(mode)}"),
        cells=(
            cells.text(experiment.first.data),
            cells.text(experiment.passages),
            cells.count(len(rows)),
            cells.share(draws.share([row.containment for row in rows])),
            cells.share(draws.share([row.first_line_containment for row in rows])),
            cells.share(draws.share([row.exact_match for row in rows])),
            cells.share(draws.mean([row.f1 for row in rows])),
            cells.count(sum(row.failed for row in rows)),
        ),
    )


def pairs(found: Sequence[Experiment]) -> Table:
    """Compare every two modes of each experiment.

    Args:
        found: The experiments.

    Returns:
        The table: differences of accuracy, and McNemar's test on the pairs that one mode alone has right.
    """
    rows = []
    for experiment in found:
        for first, second in combinations(experiment.runs, 2):
            ahead, behind = experiment.right(second), experiment.right(first)
            test = mcnemar(ahead, behind)
            rows.append(
                Row(
                    label=Cell(text=f"{experiment.called(second)} against {experiment.called(first)}"),
                    cells=(
                        cells.text(experiment.label),
                        cells.share(experiment.resamples.difference(ahead, behind)),
                        cells.count(test.only_first),
                        cells.count(test.only_second),
                        Cell(text=f"{test.p_value:.3g}"),
                    ),
                )
            )
    return Table(
        id="pairs",
        title="Which modes differ",
        caption="Difference of containment on the same questions, with its paired bootstrap interval; McNemar's "
        "exact test "
        "on the questions that one of the two alone has right. The p-values are not corrected for their number.",
        columns=("modes", "experiment", "difference", "only the first right", "only the second right", "p"),
        rows=tuple(rows),
    )
