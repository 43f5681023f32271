"""TRUE's models: a T5 that reads "premise: … hypothesis: …" and answers 1 or 0.

The method is that of Honovich et al. 2022, "TRUE: re-evaluating factual consistency evaluation" (arXiv:2204.04991).
``google/t5_xxl_true_nli_mixture`` is the scorer that AGREE's data were labelled with (arXiv:2311.09533, section 4) and
that ALCE measures citations with (arXiv:2305.14627). It has 11 billion parameters: 22 GB in bfloat16.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any, Self

from adaptllm_chain.entailment.loading import load_pretrained, torch
from adaptllm_chain.entailment.windowed import Window, WindowedScorer
from adaptllm_chain.errors import InvalidInputError

TRUE_NLI = "google/t5_xxl_true_nli_mixture"
_PREMISE, _HYPOTHESIS = "premise: ", "hypothesis: "
_YES, _NO = "1", "0"
# What T5 was trained on. It has no positions that would end, but it has seen nothing longer.
_MAX_TOKENS = 512


class TrueNliScorer(WindowedScorer):
    """An encoder and decoder that writes 1 for entailed and 0 for not.

    The probability is the softmax over the logits of the two answers where they first differ, which for a
    SentencePiece vocabulary may be behind a piece that they share.

    Args:
        model: A transformers model for sequences to sequences; used as it is, on the device where it is.
        tokenizer: Its tokenizer.
        batch_size: Windows a forward pass.
        max_tokens: Longest input, end token included.

    Raises:
        InvalidInputError: If the tokenizer writes 1 and 0 in the same way, or as for ``WindowedScorer``.
    """

    def __init__(self, model: Any, tokenizer: Any, *, batch_size: int = 8, max_tokens: int = _MAX_TOKENS) -> None:
        super().__init__(model, tokenizer, batch_size=batch_size, max_tokens=max_tokens)
        self._premise = self._ids(_PREMISE)
        self._hypothesis = self._ids(_HYPOTHESIS)
        self._end = [] if tokenizer.eos_token_id is None else [int(tokenizer.eos_token_id)]
        yes, no = self._ids(_YES) + self._end, self._ids(_NO) + self._end
        shared = [one for one, _ in takewhile(lambda both: both[0] == both[1], zip(yes, no, strict=False))]
        if len(shared) == min(len(yes), len(no)):
            raise InvalidInputError(
                f"{type(tokenizer).__name__} encodes {_YES!r} as {yes} and {_NO!r} as {no}: they cannot be told apart",
                expected="the tokenizer that belongs to the model",
            )
        self._answers = [yes[len(shared)], no[len(shared)]]
        start = model.config.decoder_start_token_id
        self._prompt = [int(tokenizer.pad_token_id if start is None else start), *shared]

    @classmethod
    def from_pretrained(
        cls,
        model: str | Path = TRUE_NLI,
        *,
        device: str = "auto",
        dtype: str = "bfloat16",
        batch_size: int = 8,
        max_tokens: int = _MAX_TOKENS,
    ) -> Self:
        """Load from the Hugging Face Hub or from a folder.

        Args:
            model: A name or a folder.
            device: ``"auto"`` (spread over all GPUs, else the CPU), or a device of torch.
            dtype: ``"bfloat16"``, in which T5 was trained (float16 overflows in it), or ``"float32"``.
            batch_size: As for the class.
            max_tokens: As for the class.

        Returns:
            The scorer.

        Raises:
            InvalidInputError: If nothing can be loaded, or as for the class.
        """
        loaded, tokenizer = load_pretrained("AutoModelForSeq2SeqLM", model, device=device, dtype=dtype)
        return cls(loaded, tokenizer, batch_size=batch_size, max_tokens=max_tokens)

    def _ids(self, text: str) -> list[int]:
        return list(self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])

    @property
    def _framing_tokens(self) -> int:
        return len(self._premise) + len(self._hypothesis) + len(self._end)

    def _windows(self, premise: str, hypothesis: str, *, room: int, overlap: int) -> Iterator[Window]:
        encoded = self.tokenizer(
            premise,
            add_special_tokens=False,
            truncation=True,
            max_length=room,
            stride=overlap,
            return_overflowing_tokens=True,
            verbose=False,
        )
        tail = [*self._hypothesis, *self._ids(hypothesis), *self._end]
        for window in encoded["input_ids"]:
            yield {"input_ids": [*self._premise, *window, *tail]}

    def _probabilities(self, batch: Any) -> torch.Tensor:
        prompt = torch.tensor([self._prompt], device=batch["input_ids"].device).expand(len(batch["input_ids"]), -1)
        logits: torch.Tensor = self.model(**batch, decoder_input_ids=prompt).logits[:, -1, self._answers]
        return logits.float().softmax(dim=-1)[:, 0]
