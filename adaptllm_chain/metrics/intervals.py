"""How sure a measured proportion is."""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist

from adaptllm_chain.errors import InvalidInputError


def wilson_interval(successes: int, total: int, *, confidence: float = 0.95) -> tuple[float, float]:
    """Compute Wilson's score interval for a proportion.

    Unlike the textbook interval it stays within [0, 1] and is not empty at 0 and at 1 (Wilson 1927,
    "Probable inference, the law of succession, and statistical inference").

    Args:
        successes: How many of the trials succeeded.
        total: How many trials there were, at least one.
        confidence: How often such intervals hold the true proportion; between 0 and 1, exclusive.

    Returns:
        The lower and the upper end, both in [0, 1].

    Raises:
        InvalidInputError: The counts are not those of a proportion, or the confidence is not a
            probability.
    """
    if total < 1 or not 0 <= successes <= total:
        raise InvalidInputError(
            f"{successes} successes of {total} trials", expected="0 <= successes <= total, 1 <= total"
        )
    if not 0 < confidence < 1:
        raise InvalidInputError(f"confidence is {confidence}", expected="a number between 0 and 1", hint="0.95")
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share = successes / total
    scale = 1 + z * z / total
    centre = (share + z * z / (2 * total)) / scale
    half = z / scale * sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    # The ends are exact there; floating point would put them a hair inside.
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == total else min(1.0, centre + half)
    return low, high
