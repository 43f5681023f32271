"""Figures of a run, each with what it is called and its interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import BaseModel, ConfigDict

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.evaluation.estimate import Estimate, wilson_share
from adaptllm_chain.evaluation.judgement import Judgement
from adaptllm_chain.metrics import auc


class Summary(BaseModel):
    """The figures of one mode.

    Attributes:
        questions: How many were asked.
        failed: How many of them could not be answered; they count as wrong.
        containment: An accepted answer stands in the output, case aside: what the paper calls exact match.
        first_line_containment: The same in the first line of the output alone.
        exact_match: The output is an accepted answer after SQuAD's normalisation.
        f1: Mean token F1, in [0, 1].
        retrieved: Questions that went to retrieval, of those that could be answered.
        direct_containment: Containment among those answered from memory.
        retrieved_containment: Containment among those answered with retrieval.
        auc: Area under the curve of P(``<RET>``) against "the never-retrieve mode is wrong", if both ran.
    """

    model_config = ConfigDict(frozen=True)

    questions: int
    failed: int
    containment: Estimate
    first_line_containment: Estimate
    exact_match: Estimate
    f1: float
    retrieved: Estimate | None
    direct_containment: Estimate | None
    retrieved_containment: Estimate | None
    auc: float | None = None


def summarise(predictions: Sequence[Judgement], never: Sequence[Judgement] | None = None) -> Summary:
    """Work out the figures of one mode.

    Args:
        predictions: The mode's predictions.
        never: Those of the never-retrieve mode on the same questions, for the area under the curve.

    Returns:
        The figures.

    Raises:
        InvalidInputError: If there are no predictions.
    """
    right = [row.containment for row in predictions]
    containment = wilson_share(right)
    answered = [row for row in predictions if not row.failed]  # of the others it is not known what was decided
    retrieved = wilson_share([row.route == "retrieve" for row in answered])
    first_line = wilson_share([row.first_line_containment for row in predictions])
    strict = wilson_share([row.exact_match for row in predictions])
    if containment is None or first_line is None or strict is None:
        raise InvalidInputError("there are no predictions", expected="at least one")
    by_route = {
        route: wilson_share([row.containment for row in answered if row.route == route])
        for route in ("direct", "retrieve")
    }
    return Summary(
        questions=len(predictions),
        failed=sum(row.failed for row in predictions),
        containment=containment,
        first_line_containment=first_line,
        exact_match=strict,
        f1=sum(row.f1 for row in predictions) / len(predictions),
        retrieved=retrieved,
        direct_containment=by_route["direct"],
        retrieved_containment=by_route["retrieve"],
        auc=_ranking(predictions, never) if never is not None else None,
    )


def _ranking(predictions: Sequence[Judgement], never: Sequence[Judgement]) -> float | None:
    wrong = {row.id: not row.containment for row in never}
    scored = [(row.ret_probability, wrong[row.id]) for row in predictions if row.ret_probability is not None]
    if len({flag for _, flag in scored}) < 2:
        return None
    return auc([probability for probability, _ in scored], [flag for _, flag in scored])


def render_table(summaries: Mapping[str, Summary]) -> str:
    """Write summaries as a table in Markdown.

    Args:
        summaries: By mode.

    Returns:
        The table: a row a mode; shares in per cent with 95 % intervals.
    """
    head = ["mode", "questions", "containment", "strict EM", "F1", "retrieved", "right if direct", "right if retrieved"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for mode, row in summaries.items():
        cells = [
            mode,
            row.questions,
            row.containment,
            row.exact_match,
            f"{100 * row.f1:.1f}",
            row.retrieved or "–",  # noqa: RUF001
            row.direct_containment or "–",  # noqa: RUF001 - a dash for "no such question"
            row.retrieved_containment or "–",  # noqa: RUF001
        ]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)
