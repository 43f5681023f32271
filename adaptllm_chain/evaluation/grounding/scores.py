"""Scores of entailment that are kept: no pair is judged twice, and figures can be made again without the judge.

A pair is kept as a hash, so that the file holds no text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2s
from pathlib import Path
from typing import Any, Self

from adaptllm_chain.entailment import EntailmentScorer, Pair
from adaptllm_chain.errors import InvalidInputError, JournalError
from adaptllm_chain.journal import Journal, read_journal

ENTAILMENT_FILE = "entailment.jsonl"
"""Beside the predictions: what the judge said of their sentences."""

# Pairs between two writes: what a kill can cost.
_BLOCK = 256


class KnownScores:
    """What is known of a judge's scores.

    Args:
        judge: How the judge is called.
        scores: By hash of the pair; ``None`` for a pair that the judge refused, since a sentence was too long for it.
        missing: Finds scores that are not known; by default there are none to be found.

    Attributes:
        judge: How the judge is called.
    """

    def __init__(
        self,
        judge: str,
        scores: Mapping[str, float | None],
        missing: Callable[[Sequence[Pair]], Mapping[str, float | None]] | None = None,
    ) -> None:
        self.judge = judge
        self._scores = dict(scores)
        self._missing = missing

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read kept scores.

        Args:
            path: The file.

        Returns:
            The scores.

        Raises:
            JournalError: If there is no such file, or it holds something else.
        """
        if not path.is_file():
            raise JournalError(
                f"{path} does not exist: the predictions beside it were not judged",
                expected="a finished run",
                hint="give the same adaptllm evaluate command again: it goes on where it was",
            )
        settings, rows = read_journal(path)
        try:
            return cls(settings["entailment"], _merged(rows))
        except (KeyError, TypeError) as error:
            raise JournalError(
                f"{path} holds no scores of entailment", expected="what adaptllm evaluate wrote"
            ) from error

    @classmethod
    def kept_in(
        cls, journal: Journal, judge: str, scorer: EntailmentScorer, scored: Callable[[int], None] | None = None
    ) -> Self:
        """Ask a judge, and keep what it says.

        Args:
            journal: Keeps the scores.
            judge: How the judge is called.
            scorer: The judge.
            scored: Is told how many pairs were judged, after they were written.

        Returns:
            The scores.
        """
        known = _merged(journal)

        def ask(pairs: Sequence[Pair]) -> dict[str, float | None]:
            found: dict[str, float | None] = {}
            for start in range(0, len(pairs), _BLOCK):
                block = pairs[start : start + _BLOCK]
                scores = dict(zip(map(_hashed, block), _scored(scorer, block), strict=True))
                if not known and not found and all(score is None for score in scores.values()):
                    scorer.score(block[:1])  # A judge that refuses everything is no judge: let it say why.
                journal.extend([{"scores": scores}])
                found |= scores
                if scored is not None:
                    scored(len(block))
            return found

        return cls(judge, known, ask)

    def score(self, pairs: Sequence[Pair]) -> list[float]:
        """Look scores up, and have found what is not known.

        Args:
            pairs: Premise and hypothesis of each pair.

        Returns:
            P(the premise entails the hypothesis), one a pair, in order; 0 for a pair that the judge refused.

        Raises:
            JournalError: If a score is neither known nor to be found.
        """
        missing = [pair for pair in dict.fromkeys(pairs) if _hashed(pair) not in self._scores]
        if missing and self._missing is None:
            raise JournalError(
                f"{len(missing)} of {len(pairs)} pairs of passage and sentence were not judged",
                expected="the scores of a finished run",
                hint="give the same adaptllm evaluate command again: it goes on where it was",
            )
        if missing and self._missing is not None:
            self._scores |= self._missing(missing)
        return [self._scores[_hashed(pair)] or 0.0 for pair in pairs]

    def refused(self, pair: Pair) -> bool:
        """Say whether the judge refused a pair.

        Args:
            pair: A pair that was looked up before.

        Returns:
            Whether it did; its score counts as 0.
        """
        return self._scores[_hashed(pair)] is None


def _hashed(pair: Pair) -> str:
    premise, hypothesis = pair
    # The length keeps the two texts apart.
    return blake2s(f"{len(premise)} {premise}{hypothesis}".encode(), digest_size=12).hexdigest()


def _merged(rows: Any) -> dict[str, float | None]:
    return {pair: score for row in rows for pair, score in row["scores"].items()}


def _scored(scorer: EntailmentScorer, pairs: Sequence[Pair]) -> Sequence[float | None]:
    try:
        return scorer.score(pairs)
    except InvalidInputError:
        if len(pairs) == 1:
            return [None]
    # One pair that is too long must not cost the others their scores.
    half = len(pairs) // 2
    return [*_scored(scorer, pairs[:half]), *_scored(scorer, pairs[half:])]
