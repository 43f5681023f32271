"""Figures of a run, each with what it is called and its interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

from pydantic import BaseModel, ConfigDict

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.evaluation.prediction import Prediction
from adaptllm_chain.metrics import (
    auc,
    contains_answer,
    exact_match,
    first_line_contains_answer,
    token_f1,
    wilson_interval,
)


class Proportion(BaseModel):
    """A share of some questions, with its 95 % interval (Wilson).

    Attributes:
        count: How many of them.
        total: Of how many.
        value: The share, in [0, 1].
        low: Lower end of the interval.
        high: Upper end of the interval.
    """

    model_config = ConfigDict(frozen=True)

    count: int
    total: int
    value: float
    low: float
    high: float

    @classmethod
    def of(cls, flags: Sequence[bool]) -> Self | None:
        """Count flags.

        Args:
            flags: One a question.

        Returns:
            The share of those that are set; ``None`` without questions.
        """
        if not flags:
            return None
        low, high = wilson_interval(sum(flags), len(flags))
        return cls(count=sum(flags), total=len(flags), value=sum(flags) / len(flags), low=low, high=high)

    def __str__(self) -> str:
        return f"{100 * self.value:.1f} % [{100 * self.low:.1f}, {100 * self.high:.1f}]"


class Summary(BaseModel):
    """The figures of one mode.

    Attributes:
        questions: How many were asked.
        failed: How many of them could not be answered; they count as wrong.
        containment: An accepted answer stands in the output, case aside: what the paper calls exact match.
        first_line_containment: The same in the first line of the output alone.
        exact_match: The output is an accepted answer after SQuAD's normalisation.
        f1: Mean token F1, in [0, 1].
        retrieved: Questions that went to retrieval.
        direct_containment: Containment among those answered from memory.
        retrieved_containment: Containment among those answered with retrieval.
        auc: Area under the curve of P(``<RET>``) against "the never-retrieve mode is wrong", if both ran.
    """

    model_config = ConfigDict(frozen=True)

    questions: int
    failed: int
    containment: Proportion
    first_line_containment: Proportion
    exact_match: Proportion
    f1: float
    retrieved: Proportion
    direct_containment: Proportion | None
    retrieved_containment: Proportion | None
    auc: float | None = None


def summarise(predictions: Sequence[Prediction], never: Sequence[Prediction] | None = None) -> Summary:
    """Work out the figures of one mode.

    Args:
        predictions: The mode's predictions.
        never: Those of the never-retrieve mode on the same questions, for the area under the curve.

    Returns:
        The figures.

    Raises:
        InvalidInputError: If there are no predictions.
    """
    right = [contains_answer(row.answer, row.answers) for row in predictions]
    containment = Proportion.of(right)
    retrieved = Proportion.of([row.route == "retrieve" for row in predictions])
    first_line = Proportion.of([first_line_contains_answer(row.answer, row.answers) for row in predictions])
    strict = Proportion.of([exact_match(row.answer, row.answers) for row in predictions])
    if containment is None or retrieved is None or first_line is None or strict is None:
        raise InvalidInputError("there are no predictions", expected="at least one")
    by_route = {
        route: Proportion.of([flag for flag, row in zip(right, predictions, strict=True) if row.route == route])
        for route in ("direct", "retrieve")
    }
    return Summary(
        questions=len(predictions),
        failed=sum(row.error is not None for row in predictions),
        containment=containment,
        first_line_containment=first_line,
        exact_match=strict,
        f1=sum(token_f1(row.answer, row.answers) for row in predictions) / len(predictions),
        retrieved=retrieved,
        direct_containment=by_route["direct"],
        retrieved_containment=by_route["retrieve"],
        auc=_ranking(predictions, never) if never is not None else None,
    )


def _ranking(predictions: Sequence[Prediction], never: Sequence[Prediction]) -> float | None:
    wrong = {row.id: not contains_answer(row.answer, row.answers) for row in never}
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
            row.retrieved,
            row.direct_containment or "–",  # noqa: RUF001 - a dash for "no such question"
            row.retrieved_containment or "–",  # noqa: RUF001
        ]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)
