"""What the frozen encoder makes of every text, computed once: the head is then trained in minutes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from adaptllm_chain.entailment.cross_head import Encoded

# Texts a pass of the encoder.
_BATCH_SIZE = 32


class FrozenStates:
    """Encoded texts, in float16, without special tokens.

    Args:
        encode: Passes token ids of several texts through the encoder.
        tokenizer: The encoder's.
        texts: The texts; each is encoded once.
        progress: Called with the number of texts done and of all, now and then.
    """

    def __init__(
        self,
        encode: Callable[[list[torch.Tensor]], Encoded],
        tokenizer: Any,
        texts: Sequence[str],
        *,
        progress: Callable[[int, int], None],
    ) -> None:
        different = list(dict.fromkeys(texts))
        ids = tokenizer(different, verbose=False)["input_ids"]
        order = sorted(range(len(different)), key=lambda place: -len(ids[place]))
        self._states: dict[str, torch.Tensor] = {}
        for start in range(0, len(order), _BATCH_SIZE):
            places = order[start : start + _BATCH_SIZE]
            with torch.inference_mode():
                encoded = encode([torch.tensor(ids[place]) for place in places])
            for row, place in enumerate(places):
                self._states[different[place]] = encoded.states[row][encoded.mask[row]].half().clone()
            if start // _BATCH_SIZE % _REPORT_EVERY == 0:
                progress(start + len(places), len(different))

    def length(self, text: str) -> int:
        """Count the tokens of a text, special ones left out.

        Args:
            text: One of the texts.

        Returns:
            Their number.
        """
        return len(self._states[text])

    def batch(self, texts: Sequence[str]) -> Encoded:
        """Lay out several texts for the head.

        Args:
            texts: Some of the texts.

        Returns:
            Their states in float32, padded on the right with zeros.
        """
        states = [self._states[text] for text in texts]
        lengths = torch.tensor([len(state) for state in states]).unsqueeze(1)
        padded = torch.nn.utils.rnn.pad_sequence(states, batch_first=True).float()
        return Encoded(padded, torch.arange(padded.shape[1]) < lengths)


_REPORT_EVERY = 20
