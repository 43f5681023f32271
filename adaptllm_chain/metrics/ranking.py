"""How well a score tells two classes apart."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import isnan

from adaptllm_chain.errors import InvalidInputError


def auc(scores: Sequence[float], labels: Sequence[bool]) -> float:
    """Compute the area under the ROC curve from ranks.

    It is the probability that a positive has a higher score than a negative, ties counting half
    (the Mann-Whitney statistic; Hanley and McNeil 1982). 0.5 is chance.

    Args:
        scores: One score for each item, such as P(<RET>); higher should mean positive.
        labels: Whether each item is positive, in the same order.

    Returns:
        The area, in [0, 1].

    Raises:
        InvalidInputError: The lengths differ, a score is not a number, or one class is empty.
    """
    if len(scores) != len(labels):
        raise InvalidInputError(f"{len(scores)} scores and {len(labels)} labels", expected="as many of each")
    if any(isnan(score) for score in scores):
        raise InvalidInputError("a score is NaN", expected="numbers")
    positives = sum(map(bool, labels))
    negatives = len(labels) - positives
    if not positives or not negatives:
        raise InvalidInputError(
            f"{positives} positives and {negatives} negatives", expected="at least one of each: the area is undefined"
        )
    # Twice the count of won pairs, in whole numbers, so that the result is rounded only once.
    won_twice = 0
    negatives_below = 0
    ordered = sorted(zip(scores, labels, strict=True), key=lambda pair: pair[0])
    for _, group in groupby(ordered, key=lambda pair: pair[0]):
        tied = [bool(label) for _, label in group]
        tied_positives = sum(tied)
        tied_negatives = len(tied) - tied_positives
        won_twice += tied_positives * (2 * negatives_below + tied_negatives)
        negatives_below += tied_negatives
    return won_twice / (2 * positives * negatives)
