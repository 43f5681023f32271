"""Any sequence-classification model of Hugging Face that was trained on entailment."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from adaptllm_chain.entailment.loading import load_pretrained, torch
from adaptllm_chain.entailment.windowed import Window, WindowedScorer
from adaptllm_chain.errors import InvalidInputError

_NAMES = frozenset({"entail", "entailed", "entails", "entailment"})


class ClassifierScorer(WindowedScorer):
    """A cross-encoder with a label for entailment, or with one output.

    The probability is the softmax over all labels; of a single output, or of labels that do not exclude one
    another (``problem_type="multi_label_classification"``), the sigmoid.

    Args:
        model: A transformers model for sequence classification; used as it is, on the device where it is.
        tokenizer: Its tokenizer.
        entailment_label: Which label stands for entailment, by name or number; by default the one that is called
            so in ``config.id2label``, in upper or lower case.
        batch_size: Windows a forward pass.
        max_tokens: Longest input, special tokens included; by default as much as model and tokenizer have
            positions for.

    Raises:
        InvalidInputError: If no label is called entailment, there is no label of the given name or number, or
            ``max_tokens`` is more than the model reads.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        entailment_label: str | int | None = None,
        batch_size: int = 32,
        max_tokens: int | None = None,
    ) -> None:
        most = _positions(model, tokenizer)
        if max_tokens is not None and max_tokens > most:
            raise InvalidInputError(f"max_tokens is {max_tokens}, but the model reads {most} tokens at most")
        super().__init__(model, tokenizer, batch_size=batch_size, max_tokens=most if max_tokens is None else max_tokens)
        self.entailment_index = _find_label(model.config.id2label, entailment_label)
        kind = getattr(model.config, "problem_type", None)
        self._independent = len(model.config.id2label) == 1 or kind == "multi_label_classification"

    @classmethod
    def from_pretrained(
        cls,
        model: str | Path,
        *,
        entailment_label: str | int | None = None,
        device: str = "auto",
        dtype: str = "auto",
        batch_size: int = 32,
        max_tokens: int | None = None,
    ) -> Self:
        """Load from the Hugging Face Hub or from a folder.

        Args:
            model: A name, e.g. ``"MoritzLaurer/DeBERTa-v3-base-mnli-fever-anli"``, or a folder.
            entailment_label: As for the class.
            device: ``"auto"`` (all GPUs, else the CPU), or a device of torch such as ``"cuda:1"``.
            dtype: ``"auto"`` (as the model was saved), ``"float32"``, ``"bfloat16"`` or ``"float16"``.
            batch_size: As for the class.
            max_tokens: As for the class.

        Returns:
            The scorer.

        Raises:
            InvalidInputError: If nothing can be loaded, or as for the class.
        """
        loaded, tokenizer = load_pretrained("AutoModelForSequenceClassification", model, device=device, dtype=dtype)
        return cls(loaded, tokenizer, entailment_label=entailment_label, batch_size=batch_size, max_tokens=max_tokens)

    @property
    def _framing_tokens(self) -> int:
        return int(self.tokenizer.num_special_tokens_to_add(pair=True))

    def _windows(self, premise: str, hypothesis: str, *, room: int, overlap: int) -> Iterator[Window]:
        encoded = self.tokenizer(
            premise,
            hypothesis,
            truncation="only_first",
            max_length=self.max_tokens,
            stride=overlap,
            return_overflowing_tokens=True,
            verbose=False,
        )
        names = [name for name in self.tokenizer.model_input_names if name in encoded]
        for place in range(len(encoded["input_ids"])):
            yield {name: encoded[name][place] for name in names}

    def _probabilities(self, batch: Any) -> torch.Tensor:
        logits = self.model(**batch).logits.float()
        chances = logits.sigmoid() if self._independent else logits.softmax(dim=-1)
        entailed: torch.Tensor = chances[:, self.entailment_index]
        return entailed


def _find_label(labels: Mapping[int, str], wanted: str | int | None) -> int:
    if wanted is None and len(labels) == 1:
        return 0
    if isinstance(wanted, int):
        found = [number for number in labels if number == wanted]
    else:
        names = _NAMES if wanted is None else {wanted.casefold()}
        found = [number for number, name in labels.items() if _plain(name, wanted) in names]
    if len(found) != 1:
        raise InvalidInputError(
            f"the model's labels are {dict(labels)}, and "
            + ("none of them is called entailment" if wanted is None else f"{len(found)} of them are {wanted!r}"),
            expected="one label that stands for entailment",
            hint="entailment_label=0, the number or the name of the right one as the model's card tells it",
        )
    return int(found[0])


def _plain(name: str, wanted: str | None) -> str:
    # "ENTAILMENT" and "Entailment." are it, "not_entailment" is not.
    return name.casefold() if wanted is not None else re.sub(r"\W+", "", name.casefold())


def _positions(model: Any, tokenizer: Any) -> int:
    """Count the tokens that a model reads. A tokenizer that knows no limit reports a number beyond all bounds."""
    positions = getattr(model.config, "max_position_embeddings", None) or _UNLIMITED
    return min(int(positions), int(tokenizer.model_max_length), _UNLIMITED)


# For models with relative positions, whose cost grows with the square of the length.
_UNLIMITED = 512
