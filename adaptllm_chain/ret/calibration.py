"""Choosing the cut on P(``<RET>``) from questions whose answers are known."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from typing import NamedTuple

from adaptllm_chain.errors import InvalidInputError

FEW = 100
"""With fewer questions than this, the 95 % interval of an accuracy reaches more than ten points to each side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """What makes one cut better than another; by default the share of right answers alone.

    Attributes:
        budget: The largest share of the questions that may retrieve, in [0, 1].
        price: What one retrieval costs, in right answers: at 0.1, ten retrievals must win more than one of them.
    """

    budget: float = 1.0
    price: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.budget <= 1:
            raise InvalidInputError(
                f"the budget is {self.budget}",
                expected="the largest share of the questions that may retrieve, from 0 to 1",
                hint="0.3 for three questions in ten",
            )
        if not 0 <= self.price < math.inf:
            raise InvalidInputError(
                f"the price is {self.price}",
                expected="what one retrieval costs in right answers: 0 or more, and finite",
                hint="0.1 if ten retrievals must win more than one right answer",
            )

    def allows(self, retrieved: int, questions: int) -> bool:
        """Say whether the budget is kept to.

        Args:
            retrieved: How many questions retrieve.
            questions: Of how many.

        Returns:
            Whether their share is at most the budget.
        """
        # A quotient is rounded as a typed number is: 29 of 100 are 0.29. The product 0.29 * 100 is less than 29.
        return retrieved / questions <= self.budget

    def worth(self, right: int, retrieved: int) -> Fraction:
        """Weigh right answers against retrievals.

        Args:
            right: How many answers are right.
            retrieved: How many questions retrieve.

        Returns:
            The right answers less the price of the retrievals; exact in the decimal digits of the price, so that what
            costs as much as it wins is a tie.
        """
        return right - Fraction(str(self.price)) * retrieved

    def __str__(self) -> str:
        parts = ["the best accuracy"]
        if self.price > 0:
            parts.append(f"less {self.price:g} for each retrieval")
        if self.budget < 1:
            parts.append(f"with at most {100 * self.budget:g} % of the questions retrieving")
        return " ".join(parts)


BEST_ACCURACY = Objective()


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """A chosen cut, and what it gives on the questions it was chosen on; on others it will do a little worse.

    Attributes:
        threshold: For ``Adaptive(threshold=…)``, in [0, 1].
        objective: What it was chosen for; ``str`` says it in words.
        questions: How many questions it was chosen on.
        accuracy: Share of right answers with this cut, in [0, 1].
        retrieved: Share of the questions that retrieve with this cut, in [0, 1].
        never: Share of right answers if no question retrieved.
        always: Share of right answers if every question retrieved.
        notes: What a reader of these figures must know besides.
    """

    threshold: float
    objective: Objective
    questions: int
    accuracy: float
    retrieved: float
    never: float
    always: float
    notes: tuple[str, ...]


class _Cut(NamedTuple):
    threshold: float
    right: int
    retrieved: int


def choose_threshold(
    probabilities: Sequence[float],
    from_memory_right: Sequence[bool],
    with_passages_right: Sequence[bool],
    objective: Objective = BEST_ACCURACY,
) -> Calibration:
    """Choose the cut on P(``<RET>``) that serves an objective best; of equally good ones, that which retrieves least.

    The paper (arXiv:2404.19705) has no cut: there the output decides. Every division of the questions that a cut can
    make is weighed. The cut is put midway between the neighbouring probabilities: on one of them, rounding or
    another batch size could tip that question over, and questions to come fall on both sides of it.

    Args:
        probabilities: P(``<RET>``) of each question, in [0, 1].
        from_memory_right: Whether its answer without retrieval is right, in the same order.
        with_passages_right: Whether its answer with retrieval is right, in the same order.
        objective: What makes one cut better than another.

    Returns:
        The cut and its figures.

    Raises:
        InvalidInputError: If there is nothing to choose from, the lengths differ, a probability is none, or no
            threshold keeps to the budget.
    """
    _check(probabilities, from_memory_right, with_passages_right)
    questions = len(probabilities)
    cuts = list(_cuts(probabilities, from_memory_right, with_passages_right))
    allowed = [cut for cut in cuts if objective.allows(cut.retrieved, questions)]
    certain = sum(probability == 1 for probability in probabilities)
    if not allowed:
        raise InvalidInputError(
            f"no threshold keeps to a budget of {objective.budget:g}: {certain} of {questions} questions have "
            "P(<RET>) = 1, and a threshold is at most 1",
            expected=f"a budget of {certain / questions:g} or more",
            hint="the policy never_retrieve, which needs no threshold",
        )
    # `max` keeps the first of equals, and the cuts come with the least retrieval first.
    best = max(allowed, key=lambda cut: objective.worth(cut.right, cut.retrieved))
    never = sum(map(bool, from_memory_right))
    notes = []
    if questions < FEW:
        notes.append(f"few questions: with {questions}, fewer than {FEW}, another sample may well give another cut")
    if certain and objective.worth(never, 0) >= objective.worth(best.right, best.retrieved):
        notes.append(
            f"retrieving for no question would do as well or better, but no threshold says so: {certain} of "
            f"{questions} questions have P(<RET>) = 1; the policy never_retrieve does"
        )
    return Calibration(
        threshold=best.threshold,
        objective=objective,
        questions=questions,
        accuracy=best.right / questions,
        retrieved=best.retrieved / questions,
        never=never / questions,
        always=sum(map(bool, with_passages_right)) / questions,
        notes=tuple(notes),
    )


def _check(probabilities: Sequence[float], from_memory: Sequence[bool], with_passages: Sequence[bool]) -> None:
    if not len(probabilities) == len(from_memory) == len(with_passages):
        raise InvalidInputError(
            f"{len(probabilities)} probabilities, {len(from_memory)} answers from memory and {len(with_passages)} with "
            "passages",
            expected="one of each for every question",
        )
    if len(probabilities) == 0:
        raise InvalidInputError("there are no questions", expected="at least one to choose a threshold on")
    wrong = [probability for probability in probabilities if not 0 <= probability <= 1]
    if wrong:
        raise InvalidInputError(f"P(<RET>) is {wrong[0]}", expected="a probability, from 0 to 1")


def _cuts(probabilities: Sequence[float], from_memory: Sequence[bool], with_passages: Sequence[bool]) -> Iterator[_Cut]:
    """Make one cut for each division of the questions, from the one that retrieves least."""
    ordered = sorted(zip(probabilities, from_memory, with_passages, strict=True), key=lambda row: row[0], reverse=True)
    right, retrieved, above = sum(map(bool, from_memory)), 0, 1.0
    for probability, group in groupby(ordered, key=lambda row: row[0]):
        # Without this, a question with P = 1 would stay below a threshold of 1, which `Adaptive` cannot say.
        if probability < above:
            yield _Cut(_between(probability, above), right, retrieved)
        for _, memory, passages in group:
            right += bool(passages) - bool(memory)
            retrieved += 1
        above = probability
    yield _Cut(_between(0.0, above), right, retrieved)


def _between(below: float, above: float) -> float:
    """Find the middle, which neighbouring floating-point numbers do not have: the upper one divides them too."""
    middle = (below + above) / 2
    return middle if middle > below else above
