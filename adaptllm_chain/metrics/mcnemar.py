"""Whether two ways of answering the same questions differ by more than chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adaptllm_chain.errors import InvalidInputError


@dataclass(frozen=True, slots=True, kw_only=True)
class McNemar:
    """What McNemar's test says of two paired runs.

    Attributes:
        only_first: Pairs in which the first alone was right.
        only_second: Pairs in which the second alone was right.
        p_value: How probable a difference at least as large is if both are equally good, in [0, 1].
    """

    only_first: int
    only_second: int
    p_value: float


def mcnemar(first: Sequence[bool], second: Sequence[bool]) -> McNemar:
    """Test whether one of two paired runs is right more often than the other.

    McNemar 1947, "Note on the sampling error of the difference between correlated proportions or
    percentages", in its exact form: pairs in which both are right or both are wrong say nothing, and of
    the others either run should win half; the p-value is that of a two-sided binomial test.

    Args:
        first: Whether the first run answered each question rightly.
        second: Whether the second run did, in the same order.

    Returns:
        The pairs that only one of them has right, and the p-value; 1 where there are no such pairs.

    Raises:
        InvalidInputError: The lengths differ.
    """
    if len(first) != len(second):
        raise InvalidInputError(
            f"{len(first)} and {len(second)} judged answers", expected="one of each run for every question"
        )
    pairs = list(zip(first, second, strict=True))
    only_first = sum(1 for a, b in pairs if a and not b)
    only_second = sum(1 for a, b in pairs if b and not a)
    return McNemar(
        only_first=only_first,
        only_second=only_second,
        p_value=_two_sided(min(only_first, only_second), only_first + only_second),
    )


def _two_sided(fewer: int, tosses: int) -> float:
    # Whole numbers throughout: half to the power of some thousands is no float, and this rounds only once.
    ways = 1
    tail = 1
    for heads in range(fewer):
        ways = ways * (tosses - heads) // (heads + 1)
        tail += ways
    every = 1 << tosses
    # As many of either kind: both tails hold the middle, and would come to more than 1.
    return min(2 * tail, every) / every
