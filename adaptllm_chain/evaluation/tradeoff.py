"""Accuracy against retrieval share, for every threshold on P(``<RET>``), from one run of each mode."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.evaluation.prediction import Prediction
from adaptllm_chain.evaluation.summary import Proportion
from adaptllm_chain.metrics import contains_answer


class TradeoffPoint(BaseModel):
    """What one threshold would have given.

    Attributes:
        threshold: Questions with P(``<RET>``) at or above it retrieve; ``None`` for none of them.
        retrieved: Share of the questions that retrieve.
        containment: Share of the answers that are right.
    """

    model_config = ConfigDict(frozen=True)

    threshold: float | None
    retrieved: Proportion
    containment: Proportion


class Tradeoff(BaseModel):
    """What the decision alone can change, the answers of both paths being what they are.

    Attributes:
        points: One a threshold, from never retrieving to always.
        oracle: Right by either path: what a perfect decision would reach.
        oracle_retrieved: Share of the questions that such a decision must send to retrieval: wrong from memory.
    """

    model_config = ConfigDict(frozen=True)

    points: tuple[TradeoffPoint, ...]
    oracle: Proportion
    oracle_retrieved: Proportion


def trade_off(
    adaptive: Sequence[Prediction], never: Sequence[Prediction], always: Sequence[Prediction], *, points: int = 21
) -> Tradeoff:
    """Work out what every threshold would have given.

    As in the chain, a question below the threshold is answered by what the model said to the parametric prompt, and
    where that was ``<RET>``, by its closed-book answer.

    Args:
        adaptive: Predictions of the adaptive mode, by the token rule; they hold P(``<RET>``).
        never: Predictions of the never-retrieve mode on the same questions.
        always: Predictions of the always-retrieve mode on the same questions.
        points: How many points, spread evenly over the retrieval share.

    Returns:
        The points and the oracle.

    Raises:
        InvalidInputError: If the modes answered different questions, or P(``<RET>``) is missing.
    """
    ids = [row.id for row in adaptive]
    if not ids or any([row.id for row in rows] != ids for rows in (never, always)):
        raise InvalidInputError("the modes answered different questions", expected="the same ones in the same order")
    asked = [row.ret_probability for row in adaptive]
    probabilities = [probability for probability in asked if probability is not None]
    if len(probabilities) < len(asked):
        raise InvalidInputError("some predictions have no P(<RET>)", expected="those of the adaptive mode")
    from_memory = [
        contains_answer((own if own.route == "direct" else closed).answer, own.answers)
        for own, closed in zip(adaptive, never, strict=True)
    ]
    with_passages = [contains_answer(row.answer, row.answers) for row in always]
    ordered = sorted(probabilities)
    cuts: list[float | None] = [
        ordered[min(len(ordered) - 1, at * len(ordered) // (points - 1))] for at in range(points)
    ]
    cuts[-1] = None
    drawn = [
        _point(cut, probabilities, from_memory, with_passages)
        for cut in sorted(set(cuts), key=lambda cut: (cut is None, cut), reverse=True)
    ]
    return Tradeoff(
        points=tuple(drawn),
        oracle=_share([a or b for a, b in zip(from_memory, with_passages, strict=True)]),
        oracle_retrieved=_share([not flag for flag in from_memory]),
    )


def _point(
    cut: float | None, probabilities: Sequence[float], from_memory: Sequence[bool], with_passages: Sequence[bool]
) -> TradeoffPoint:
    retrieved = [cut is not None and probability >= cut for probability in probabilities]
    right = [b if flag else a for flag, a, b in zip(retrieved, from_memory, with_passages, strict=True)]
    return TradeoffPoint(threshold=cut, retrieved=_share(retrieved), containment=_share(right))


def _share(flags: Sequence[bool]) -> Proportion:
    share = Proportion.of(flags)
    if share is None:
        raise InvalidInputError("there are no predictions", expected="at least one")
    return share
