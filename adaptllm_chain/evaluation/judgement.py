"""Judged predictions: what the report is made of. They hold no text of a data set, so they can be published."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict, Field

from adaptllm_chain.evaluation.prediction import Prediction
from adaptllm_chain.metrics import contains_answer, exact_match, first_line_contains_answer, token_f1
from adaptllm_chain.records import Route


class Judgement(BaseModel):
    """One prediction, judged.

    Attributes:
        id: The question's identifier.
        route: Whether it was answered from memory or with retrieval.
        ret_probability: P(``<RET>``), in [0, 1], where the model was asked for it.
        popularity: Of the question's subject, where the data set says.
        relation: The kind of fact that was asked for, where the data set says.
        containment: An accepted answer stands in the output, case aside: what the paper calls exact match.
        first_line_containment: The same in the first line of the output alone.
        exact_match: The output is an accepted answer after SQuAD's normalisation.
        f1: Token F1, in [0, 1].
        hits: Whether each passage that the model was shown holds an accepted answer, best passage first;
            empty if it was shown none.
        failed: Whether there was an error in place of an answer; it counts as wrong.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    route: Route
    ret_probability: float | None = Field(default=None, ge=0.0, le=1.0)
    popularity: float | None = None
    relation: str | None = None
    containment: bool
    first_line_containment: bool
    exact_match: bool
    f1: float = Field(ge=0.0, le=1.0)
    hits: tuple[bool, ...] = ()
    failed: bool = False

    @classmethod
    def of(cls, prediction: Prediction) -> Self:
        """Judge a prediction.

        Args:
            prediction: The prediction, with the accepted answers.

        Returns:
            What it is worth by every metric.
        """
        answer, answers = prediction.answer, prediction.answers
        return cls(
            id=prediction.id,
            route=prediction.route,
            ret_probability=prediction.ret_probability,
            popularity=prediction.popularity,
            relation=prediction.relation,
            containment=contains_answer(answer, answers),
            first_line_containment=first_line_contains_answer(answer, answers),
            exact_match=exact_match(answer, answers),
            f1=token_f1(answer, answers),
            hits=prediction.hits,
            failed=prediction.error is not None,
        )
