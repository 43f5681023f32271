"""A check of the experiment: nothing in a name tells which half it belongs to."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from adaptllm_chain.metrics import auc


def surface_auc(
    names: Sequence[str], unknown: Sequence[bool], test_names: Sequence[str], test_unknown: Sequence[bool]
) -> float:
    """Try to tell the halves apart by pieces of the names, with naive Bayes.

    Args:
        names: Names to learn from.
        unknown: Their halves.
        test_names: Names to tell apart.
        test_unknown: Their halves.

    Returns:
        Area under the curve on the test names; .5 is what a name alone should give.
    """
    counts: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    for name, label in zip(names, unknown, strict=True):
        counts[label].update(_pieces(name))
    totals = [sum(count.values()) + len(counts[0] | counts[1]) for count in counts]

    def score(name: str) -> float:
        log_odds = [
            math.log((counts[1][piece] + 1) / totals[1]) - math.log((counts[0][piece] + 1) / totals[0])
            for piece in _pieces(name)
        ]
        return sum(log_odds)

    return auc([score(name) for name in test_names], test_unknown)


def _pieces(name: str) -> list[str]:
    text = f"^{name.lower()}$"
    return [text[start : start + size] for size in (1, 2, 3) for start in range(len(text) - size + 1)]
