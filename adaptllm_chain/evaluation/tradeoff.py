"""Accuracy against retrieval share, for every threshold on P(``<RET>``), from one run of each mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pydantic import BaseModel, ConfigDict

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.evaluation.estimate import Estimate, wilson_share
from adaptllm_chain.evaluation.judgement import Judgement


class TradeoffPoint(BaseModel):
    """What one threshold would have given.

    Attributes:
        threshold: Questions with P(``<RET>``) at or above it retrieve; ``None`` for none of them.
        retrieved: Share of the questions that retrieve.
        containment: Share of the answers that are right.
    """

    model_config = ConfigDict(frozen=True)

    threshold: float | None
    retrieved: Estimate
    containment: Estimate


class Tradeoff(BaseModel):
    """What the decision alone can change, the answers of both paths being what they are.

    Attributes:
        points: One a threshold, from never retrieving to always.
        oracle: Right by either path: what a perfect decision would reach.
        oracle_retrieved: Share of the questions that such a decision must send to retrieval: wrong from memory.
    """

    model_config = ConfigDict(frozen=True)

    points: tuple[TradeoffPoint, ...]
    oracle: Estimate
    oracle_retrieved: Estimate


Share = Callable[[Sequence[bool]], Estimate | None]


def from_memory(adaptive: Sequence[Judgement], never: Sequence[Judgement]) -> list[bool]:
    """Say which questions are right from memory, as the chain answers below a threshold.

    Args:
        adaptive: The adaptive mode, by the token rule: what the model said to the parametric prompt.
        never: The never-retrieve mode: the closed-book answer, which counts where the model said ``<RET>``.

    Returns:
        One flag a question.
    """
    return [(own if own.route == "direct" else closed).containment for own, closed in zip(adaptive, never, strict=True)]


def at_cut(
    cut: float | None, probabilities: Sequence[float], memory: Sequence[bool], with_passages: Sequence[bool]
) -> tuple[list[bool], list[bool]]:
    """Say what a cut gives, question by question.

    Args:
        cut: Questions with P(``<RET>``) at or above it retrieve; ``None`` for none of them.
        probabilities: P(``<RET>``) of each question.
        memory: Whether its answer from memory is right.
        with_passages: Whether its answer with passages is right.

    Returns:
        Whether each question retrieves, and whether it is then right.
    """
    retrieved = [cut is not None and probability >= cut for probability in probabilities]
    right = [read if flag else known for flag, known, read in zip(retrieved, memory, with_passages, strict=True)]
    return retrieved, right


def trade_off(
    adaptive: Sequence[Judgement],
    never: Sequence[Judgement],
    always: Sequence[Judgement],
    *,
    points: int = 21,
    share: Share = wilson_share,
) -> Tradeoff:
    """Work out what every threshold would have given.

    Args:
        adaptive: Judgements of the adaptive mode, by the token rule; they hold P(``<RET>``).
        never: Judgements of the never-retrieve mode on the same questions.
        always: Judgements of the always-retrieve mode on the same questions.
        points: How many points, spread evenly over the retrieval share.
        share: Makes a share with its interval of one flag a question.

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
    memory = from_memory(adaptive, never)
    with_passages = [row.containment for row in always]
    ordered = sorted(probabilities)
    cuts: list[float | None] = [
        ordered[min(len(ordered) - 1, at * len(ordered) // (points - 1))] for at in range(points)
    ]
    cuts[-1] = None
    drawn = [
        _point(cut, at_cut(cut, probabilities, memory, with_passages), share)
        for cut in sorted(set(cuts), key=lambda cut: (cut is None, cut), reverse=True)
    ]
    return Tradeoff(
        points=tuple(drawn),
        oracle=_shared([a or b for a, b in zip(memory, with_passages, strict=True)], share),
        oracle_retrieved=_shared([not flag for flag in memory], share),
    )


def _point(cut: float | None, outcome: tuple[list[bool], list[bool]], share: Share) -> TradeoffPoint:
    retrieved, right = outcome
    return TradeoffPoint(threshold=cut, retrieved=_shared(retrieved, share), containment=_shared(right, share))


def _shared(flags: Sequence[bool], share: Share) -> Estimate:
    estimate = share(flags)
    if estimate is None:
        raise InvalidInputError("there are no predictions", expected="at least one")
    return estimate
