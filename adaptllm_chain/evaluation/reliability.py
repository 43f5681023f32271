"""Whether P(``<RET>``) means what it says: that the model would be wrong by itself."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import fsum
from operator import itemgetter

from pydantic import BaseModel, ConfigDict

from adaptllm_chain.errors import InvalidInputError


class ReliabilityBin(BaseModel):
    """Questions of like P(``<RET>``).

    Attributes:
        probability: Their mean P(``<RET>``), in [0, 1].
        wrong: Share of them that the model has wrong by itself, in [0, 1].
        count: How many there are, at least one.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    probability: float
    wrong: float
    count: int


class Reliability(BaseModel):
    """The points of a reliability diagram, and two figures for how far they are from its diagonal.

    Attributes:
        bins: From the lowest P(``<RET>``) to the highest.
        calibration_error: Mean distance between P(``<RET>``) and the share of wrong answers over the
            bins, weighted by their counts, in [0, 1]: the expected calibration error.
        brier: Mean squared distance between P(``<RET>``) and 1 for wrong, 0 for right, in [0, 1].
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    bins: tuple[ReliabilityBin, ...]
    calibration_error: float
    brier: float


def reliability(probabilities: Sequence[float], labels: Sequence[bool], *, bins: int = 10) -> Reliability:
    """Compare P(``<RET>``) with how often the model is wrong.

    The bins hold equal counts, for P(``<RET>``) crowds at its ends and bins of equal width would be
    empty in the middle. Questions of the same P(``<RET>``) stay together, so that the order of the file
    does not matter: with ties, counts differ, and there may be fewer bins. The calibration error is that
    of Naeini et al. 2015, "Obtaining well calibrated probabilities using Bayesian binning"; its value
    depends on the bins. The other figure is of Brier 1950, "Verification of forecasts expressed in terms
    of probability".

    Args:
        probabilities: P(``<RET>``) of each question, in [0, 1].
        labels: Whether the never-retrieve mode had it wrong, in the same order.
        bins: How many bins there are at the most, at least one.

    Returns:
        The bins and the figures.

    Raises:
        InvalidInputError: The lengths differ, there are no questions, a number is no probability, or
            there would be no bin.
    """
    if len(probabilities) != len(labels) or not labels:
        raise InvalidInputError(
            f"{len(probabilities)} probabilities and {len(labels)} labels", expected="as many of each, at least one"
        )
    outside = [probability for probability in probabilities if not 0 <= probability <= 1]
    if outside:
        raise InvalidInputError(f"a probability is {outside[0]}", expected="numbers in [0, 1]")
    if bins < 1:
        raise InvalidInputError(f"{bins} bins", expected="at least 1", hint="bins=10")
    pairs = sorted((float(probability), bool(label)) for probability, label in zip(probabilities, labels, strict=True))
    made = tuple(_bin(part) for part in _parts(pairs, bins))
    return Reliability(
        bins=made,
        calibration_error=fsum(part.count * abs(part.probability - part.wrong) for part in made) / len(pairs),
        brier=fsum((probability - label) ** 2 for probability, label in pairs) / len(pairs),
    )


def _parts(pairs: Sequence[tuple[float, bool]], bins: int) -> list[list[tuple[float, bool]]]:
    parts: dict[int, list[tuple[float, bool]]] = {}
    seen = 0
    for _, group in groupby(pairs, key=itemgetter(0)):
        tied = list(group)
        # Ties go where their middle falls; without ties this makes counts equal but for one.
        parts.setdefault((2 * seen + len(tied)) * bins // (2 * len(pairs)), []).extend(tied)
        seen += len(tied)
    return list(parts.values())


def _bin(pairs: Sequence[tuple[float, bool]]) -> ReliabilityBin:
    return ReliabilityBin(
        probability=fsum(probability for probability, _ in pairs) / len(pairs),
        wrong=sum(label for _, label in pairs) / len(pairs),
        count=len(pairs),
    )
