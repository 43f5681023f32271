"""What local models have in common: premises in windows, batches of like length, the best window's score."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

from adaptllm_chain.entailment.loading import torch
from adaptllm_chain.entailment.scorer import EntailmentScorer, Pair, check_pairs
from adaptllm_chain.errors import InvalidInputError

Window = dict[str, list[int]]

# What two windows that follow one another share, as a part of what fits into one: a sentence or two.
_OVERLAP = 1 / 3
# A hypothesis may take up this part of what the model reads; what is left must hold a few sentences.
_HYPOTHESIS_SHARE = 1 / 2


class WindowedScorer(EntailmentScorer):
    """A local model that reads a premise in overlapping windows; the score of a pair is its best window's.

    Every token of a premise stands in some window, nothing is cut off. A hypothesis is never divided: one that
    takes up more than half of what the model reads is refused.

    Args:
        model: The model; used as it is, on the device where it is.
        tokenizer: Its tokenizer, one of the fast ones.
        batch_size: Windows a forward pass.
        max_tokens: Longest input, special tokens included.

    Raises:
        InvalidInputError: If ``batch_size`` is below 1, ``max_tokens`` is below 8, or the tokenizer is a slow one.
    """

    def __init__(self, model: Any, tokenizer: Any, *, batch_size: int, max_tokens: int) -> None:
        if batch_size < 1:
            raise InvalidInputError(f"batch_size is {batch_size!r}", expected="a whole number of 1 or more")
        if max_tokens < _LEAST_TOKENS:
            raise InvalidInputError(
                f"max_tokens is {max_tokens!r}", expected=f"a whole number of {_LEAST_TOKENS} or more"
            )
        if not tokenizer.is_fast:
            raise InvalidInputError(
                f"{type(tokenizer).__name__} is a slow tokenizer, which cannot cut a text into windows",
                expected="a fast one",
                hint="AutoTokenizer.from_pretrained(…, use_fast=True)",
            )
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.batch_size = batch_size
        self.max_tokens = max_tokens

    def score(self, pairs: Sequence[Pair]) -> list[float]:
        """Score pairs, windows of like length together, so that little is computed for padding.

        Args:
            pairs: Premise and hypothesis of each pair.

        Returns:
            P(the premise entails the hypothesis), one a pair, in order; the maximum over the premise's windows.

        Raises:
            InvalidInputError: If a pair is not two texts, one is blank, or a hypothesis is too long.
        """
        windows: list[Window] = []
        owners: list[int] = []
        for place, (premise, hypothesis) in enumerate(check_pairs(pairs)):
            room = self._room(hypothesis)
            for window in self._windows(premise, hypothesis, room=room, overlap=int(room * _OVERLAP)):
                windows.append(window)
                owners.append(place)
        # Longest first: what does not fit into memory fails at once, not after hours.
        order = sorted(range(len(windows)), key=lambda row: -len(windows[row]["input_ids"]))
        scores = [0.0] * len(pairs)
        for start in range(0, len(order), self.batch_size):
            rows = order[start : start + self.batch_size]
            batch = self.tokenizer.pad([windows[row] for row in rows], return_tensors="pt").to(self.model.device)
            with torch.inference_mode():
                probabilities = self._probabilities(batch).float().tolist()
            for row, probability in zip(rows, probabilities, strict=True):
                scores[owners[row]] = max(scores[owners[row]], probability)
        return scores

    def _room(self, hypothesis: str) -> int:
        """Count the tokens of a premise that fit beside a hypothesis."""
        length = len(self.tokenizer(hypothesis, add_special_tokens=False, verbose=False)["input_ids"])
        if length == 0:
            raise InvalidInputError(
                f"the tokenizer finds nothing in the hypothesis {hypothesis!r:.100}", expected="words"
            )
        room = self.max_tokens - self._framing_tokens - length
        if length > self.max_tokens * _HYPOTHESIS_SHARE or room < 1:
            raise InvalidInputError(
                f"a hypothesis has {length} tokens, more than half of the {self.max_tokens} that the model reads: "
                f"{hypothesis!r:.100}",
                expected="one sentence, as a rule",
                hint="split it into sentences and score each",
            )
        return room

    @property
    @abstractmethod
    def _framing_tokens(self) -> int:
        """How many tokens of an input belong to neither text."""

    @abstractmethod
    def _windows(self, premise: str, hypothesis: str, *, room: int, overlap: int) -> Iterator[Window]:
        """Yield the inputs of a pair: windows of at most ``room`` tokens that share ``overlap`` with the next."""

    @abstractmethod
    def _probabilities(self, batch: Any) -> torch.Tensor:
        """Compute P(entailed) for a padded batch, shape ``[batch]``."""


_LEAST_TOKENS = 8
