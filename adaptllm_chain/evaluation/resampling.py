"""Figures with their intervals: Wilson's for a share alone, by resampling questions for those of a report.

The one owner of numpy in this room. Only resampling needs it, so its absence is told there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from adaptllm_chain.errors import InvalidInputError, missing_extra
from adaptllm_chain.evaluation.estimate import Estimate, wilson_share
from adaptllm_chain.metrics import auc

_numpy_error: ImportError | None = None
try:
    import numpy as np
except ImportError as error:
    _numpy_error = error

if TYPE_CHECKING:
    import numpy.typing as npt

    CountMatrix = npt.NDArray[np.uint8]
    FloatArray = npt.NDArray[np.float64]
    BoolArray = npt.NDArray[np.bool_]

_TAILS = (0.025, 0.975)
# Below this a tail of 2.5 % holds less than one draw.
_FEWEST_DRAWS = 40
# Counts are widened in blocks of about so many, which stay in a processor's cache.
_BLOCK = 2**18


class Resamples:
    """The same questions, drawn again and again with replacement: a paired bootstrap.

    Efron 1979, "Bootstrap methods: another look at the jackknife". Intervals are the percentiles 2.5 and 97.5 of the
    figure over the draws, for 95 %. All figures come from the same draws, so those of one report are paired: the
    interval of a difference between two modes knows that both answered the same questions. The same size, number
    of draws and seed give the same figures.

    The draws are kept as counts of one byte each, for 15,000 questions and 2,000 draws 30 MB, where numpy's own
    integers would need 240 MB. A byte is enough for any size: that any of n questions is drawn more than 255 times
    in n has a probability below n / 256!.

    Args:
        size: How many questions there are, at least one.
        draws: How often they are drawn anew, at least 40.
        seed: Draws others.

    Attributes:
        counts: How often each draw holds each question, shape ``[draws, size]``; a row's sum is ``size``.

    Raises:
        MissingExtraError: If numpy is not installed.
        InvalidInputError: If there are no questions, or too few draws for a percentile.
    """

    def __init__(self, size: int, *, draws: int = 2000, seed: int = 0) -> None:
        if _numpy_error is not None:
            raise missing_extra("numpy", "cpu") from _numpy_error
        if size < 1:
            raise InvalidInputError(f"{size} questions", expected="at least one")
        if draws < _FEWEST_DRAWS:
            raise InvalidInputError(
                f"{draws} draws", expected=f"at least {_FEWEST_DRAWS}: a tail has 2.5 % of them", hint="draws=2000"
            )
        generator = np.random.default_rng(seed)
        self.counts: CountMatrix = np.empty((draws, size), dtype=np.uint8)
        # Draw by draw: one call of `multinomial` would hold the wide integers of all draws at once.
        for row in self.counts:
            row[:] = np.bincount(generator.integers(size, size=size), minlength=size)

    def share(self, flags: Sequence[bool], among: Sequence[bool] | None = None) -> Estimate | None:
        """Estimate the share of questions with a flag.

        Where every flag is equal, every draw gives the same share, and the bootstrap's interval would be a
        point; Wilson's interval, which knows how few the questions are, stands in there.

        Args:
            flags: One a question.
            among: Which questions count; all of them by default.

        Returns:
            The share in [0, 1], with its count; ``None`` if no question counts.

        Raises:
            InvalidInputError: If there is not one flag for each question.
        """
        chosen = self._chosen(among)
        column = self._column(flags)
        alone = wilson_share(column[chosen > 0].astype(bool).tolist())
        if alone is None or alone.count in {0, alone.total}:
            return alone
        low, high = self._ratio_interval(column * chosen, chosen)
        return alone.model_copy(update={"low": low, "high": high})

    def mean(self, values: Sequence[float], among: Sequence[bool] | None = None) -> Estimate | None:
        """Estimate the mean of a figure that each question has, such as F1.

        Where every value is equal the interval is that point.

        Args:
            values: One a question, finite.
            among: Which questions count; all of them by default.

        Returns:
            The mean; ``None`` if no question counts.

        Raises:
            InvalidInputError: If there is not one finite value for each question.
        """
        column = self._column(values)
        if not np.isfinite(column).all():
            raise InvalidInputError("a value is not finite", expected="numbers")
        chosen = self._chosen(among)
        total = int(chosen.sum())
        if not total:
            return None
        weighted = column * chosen
        low, high = self._ratio_interval(weighted, chosen)
        return Estimate(value=float(weighted.sum()) / total, low=low, high=high, total=total)

    def difference(self, first_flags: Sequence[bool], second_flags: Sequence[bool]) -> Estimate:
        """Estimate by how much one share of all questions exceeds another.

        Where the flags are equal for every question the interval is the point 0.

        Args:
            first_flags: One a question, such as whether one mode has it right.
            second_flags: Likewise, in the same order.

        Returns:
            The first share less the second, in [-1, 1].

        Raises:
            InvalidInputError: If there is not one flag of either kind for each question.
        """
        differences = self._column(first_flags) - self._column(second_flags)
        low, high = self._ratio_interval(differences, self._chosen(None))
        total = len(differences)
        return Estimate(value=float(differences.sum()) / total, low=low, high=high, total=total)

    def auc(
        self, scores: Sequence[float], labels: Sequence[bool], among: Sequence[bool] | None = None
    ) -> Estimate | None:
        """Estimate the area under the ROC curve, ties counting half.

        Draws in which one class is empty have no area and are left out. Where the scores tell the classes
        apart without a mistake the interval is that point.

        Args:
            scores: One a question, such as P(``<RET>``); higher should mean positive.
            labels: Whether each question is positive, such as wrong without retrieval.
            among: Which questions count, such as those with a score; all of them by default.

        Returns:
            The area of ``metrics.auc``, in [0, 1]; ``None`` where a class is empty.

        Raises:
            InvalidInputError: If there is not one score and one label for each question, or a score that
                counts is not a number.
        """
        chosen = self._chosen(among).astype(bool)
        scored, positive = self._column(scores), self._column(labels).astype(bool)
        kept = positive[chosen]
        if kept.all() or not kept.any():
            return None
        value = auc(scored[chosen].tolist(), kept.tolist())
        low, high = _interval(_areas(scored, positive, chosen, self._blocks()))
        return Estimate(value=value, low=low, high=high, total=len(kept))

    def _column(self, values: Sequence[float]) -> FloatArray:
        size = self.counts.shape[1]
        if len(values) != size:
            raise InvalidInputError(f"{len(values)} values for {size} questions", expected="one for each question")
        return np.asarray(values, dtype=np.float64)

    def _chosen(self, among: Sequence[bool] | None) -> FloatArray:
        return np.ones(self.counts.shape[1]) if among is None else self._column(among)

    def _blocks(self) -> Iterator[CountMatrix]:
        draws, size = self.counts.shape
        step = max(1, _BLOCK // size)
        for start in range(0, draws, step):
            yield self.counts[start : start + step]

    def _ratio_interval(self, numerators: FloatArray, denominators: FloatArray) -> tuple[float, float]:
        columns = np.stack([numerators, denominators], axis=1)
        sums = np.concatenate([block.astype(np.float64) @ columns for block in self._blocks()])
        # A draw without any question that counts has no ratio.
        drawn = sums[sums[:, 1] > 0]
        return _interval(drawn[:, 0] / drawn[:, 1])


def _interval(figures: FloatArray) -> tuple[float, float]:
    low, high = np.quantile(figures, _TAILS)
    return float(low), float(high)


def _areas(scores: FloatArray, positive: BoolArray, chosen: BoolArray, blocks: Iterable[CountMatrix]) -> FloatArray:
    """Compute `metrics.auc` for each draw, as if each question stood there as often as it was drawn."""
    order = np.flatnonzero(chosen)
    order = order[np.argsort(scores[order], kind="stable")]
    positives, negatives = order[positive[order]], order[~positive[order]]
    lower = np.searchsorted(scores[negatives], scores[positives], side="left")
    not_higher = np.searchsorted(scores[negatives], scores[positives], side="right")
    areas = []
    for block in blocks:
        weights = np.take(block, positives, axis=1)
        first_negatives = np.zeros((len(block), len(negatives) + 1), dtype=np.int64)
        np.cumsum(np.take(block, negatives, axis=1), axis=1, out=first_negatives[:, 1:])
        # Twice the pairs that a positive wins, in whole numbers, as in `metrics.auc`: a tie is in one of the terms.
        won_twice = np.take(first_negatives, lower, axis=1) + np.take(first_negatives, not_higher, axis=1)
        pairs = weights.sum(axis=1, dtype=np.int64) * first_negatives[:, -1]
        both = pairs > 0
        areas.append((weights * won_twice).sum(axis=1)[both] / (2 * pairs[both]))
    return np.concatenate(areas)
