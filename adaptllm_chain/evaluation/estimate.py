"""A figure with its interval."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from adaptllm_chain.metrics import wilson_interval


class Estimate(BaseModel):
    """A figure of some questions, with its 95 % interval.

    Attributes:
        value: The figure.
        low: Lower end of the interval.
        high: Upper end of the interval.
        total: How many questions it is over.
        count: How many of them, where it is a share.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    value: float
    low: float
    high: float
    total: int
    count: int | None = None

    def __str__(self) -> str:
        return f"{100 * self.value:.1f} % [{100 * self.low:.1f}, {100 * self.high:.1f}]"


def wilson_share(flags: Sequence[bool]) -> Estimate | None:
    """Estimate a share with Wilson's interval, which needs no draws.

    Args:
        flags: One a question.

    Returns:
        The share in [0, 1], with its count; ``None`` without questions.
    """
    if not flags:
        return None
    count, total = sum(flags), len(flags)
    low, high = wilson_interval(count, total)
    return Estimate(value=count / total, low=low, high=high, total=total, count=count)
