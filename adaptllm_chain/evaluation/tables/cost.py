"""What a question costs in every mode."""

from __future__ import annotations

from collections.abc import Sequence

from adaptllm_chain.evaluation.runs import Run
from adaptllm_chain.evaluation.tables import cells
from adaptllm_chain.evaluation.tables.evidence import Experiment
from adaptllm_chain.reporting import Cell, Row, Table


def cost(found: Sequence[Experiment]) -> Table:
    """Say what a question costs.

    Args:
        found: The experiments.

    Returns:
        The table: searches, model calls, tokens and seconds a question, a row a mode.
    """
    rows = [_row(one, run) for one in found for run in one.runs.values()]
    return Table(
        id="cost",
        title="What a question costs",
        caption="Means a question. An answer that another mode had made already counts as a call; the seconds of such "
        "a mode are left out (adaptllm evaluate --time-each-mode measures them). Batches, so the seconds are "
        "throughput, not waiting time.",
        columns=(
            "mode",
            "experiment",
            "searches",
            "model calls",
            "tokens read",
            "tokens written",
            "seconds",
            "timed",
        ),
        rows=tuple(rows),
    )


def _row(experiment: Experiment, run: Run) -> Row:
    total = len(run.judgements)
    spent = run.cost
    told = spent.model_calls > 0
    return Row(
        label=Cell(text=experiment.called(run.mode)),
        cells=(
            cells.text(experiment.label),
            cells.number(sum(row.route == "retrieve" for row in run.judgements) / total),
            cells.number(spent.model_calls / total) if told else cells.NOTHING,
            cells.number(spent.prompt_tokens / total) if spent.prompt_tokens else cells.NOTHING,
            cells.number(spent.completion_tokens / total) if spent.completion_tokens else cells.NOTHING,
            cells.NOTHING
            if run.seconds is None
            else Cell(value=run.seconds.seconds / run.seconds.questions, unit="seconds"),
            cells.NOTHING if run.seconds is None else cells.count(run.seconds.questions),
        ),
    )
