"""The embedded scorer: all-MiniLM-L6-v2 out of a PyPI package, and a head of 2 MB that is shipped with this one."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from adaptllm_chain.entailment.classifier import ClassifierScorer
from adaptllm_chain.entailment.cross_head import CrossHead, Encoded
from adaptllm_chain.entailment.head_files import load_head
from adaptllm_chain.entailment.loading import load_pretrained, torch
from adaptllm_chain.minilm import MINILM_NAME, minilm_folder

# What a head says that it belongs to.
BASE_NAME = f"sentence-transformers/{MINILM_NAME}"
# Longest pair that a head is trained on; the base has twice as many positions.
MAX_TOKENS = 256
LABELS = {0: "not_entailment", 1: "entailment"}


def embedded_scorer(
    weights: str | Path | None = None, *, device: str = "cpu", batch_size: int = 32
) -> ClassifierScorer:
    """Load the embedded scorer: no network is used.

    It was trained on questions with answers, not on pairs that people labelled. What it is good at, what it gets
    wrong and how its scores compare to frequencies stands in ``weights/README.md``. Pairs beyond 256 tokens are
    judged in windows.

    Args:
        weights: The folder of another head for the same encoder, as ``training/nli`` writes it; by default the
            shipped one.
        device: ``"cpu"``, the default (the model is small), ``"auto"``, or a device of torch.
        batch_size: Windows a forward pass.

    Returns:
        The scorer.

    Raises:
        MissingExtraError: If the package with the encoder, torch or transformers is not installed.
        InvalidInputError: If the head cannot be loaded.
    """
    encoder, tokenizer = load_encoder(device=device)
    head = load_head(embedded_weights() if weights is None else Path(weights), base=BASE_NAME)
    return ClassifierScorer(CrossEncoder(encoder, head), tokenizer, batch_size=batch_size, max_tokens=MAX_TOKENS)


def embedded_weights() -> Path:
    """Find the head that is shipped inside this package.

    Returns:
        Its folder.
    """
    return Path(__file__).with_name("weights")


def load_encoder(*, device: str = "cpu") -> tuple[Any, Any]:
    """Load the encoder.

    Args:
        device: As for ``embedded_scorer``.

    Returns:
        The model, in float32 and in evaluation mode, and its tokenizer.

    Raises:
        MissingExtraError: If the package that holds it is not installed.
    """
    return load_pretrained("AutoModel", minilm_folder(), device=device, dtype="float32")


class CrossEncoder(torch.nn.Module):
    """An encoder with a head, called as transformers' models for sequence classification are.

    Args:
        encoder: A BERT.
        head: The head; moved to where the encoder is.
    """

    def __init__(self, encoder: Any, head: CrossHead) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head.to(encoder.device)
        self.config = SimpleNamespace(id2label=LABELS, max_position_embeddings=encoder.config.max_position_embeddings)

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        device: torch.device = self.encoder.device
        return device

    def forward(
        self, input_ids: torch.Tensor, token_type_ids: torch.Tensor, attention_mask: torch.Tensor
    ) -> SimpleNamespace:
        """Score pairs that were encoded together; they are taken apart here.

        Args:
            input_ids: ``[CLS] premise [SEP] hypothesis [SEP]``, shape ``[batch, tokens]``.
            token_type_ids: 0 up to the first ``[SEP]``, 1 behind it.
            attention_mask: 1 for a token, 0 for padding.

        Returns:
            ``logits`` of shape ``[batch, 2]``: not entailed, entailed.
        """
        second, real = token_type_ids.bool(), attention_mask.bool()
        premises = [row[mask] for row, mask in zip(input_ids, real & ~second, strict=True)]
        hypotheses = [torch.cat([row[:1], row[mask]]) for row, mask in zip(input_ids, real & second, strict=True)]
        return SimpleNamespace(logits=self.head(self.encode(premises), self.encode(hypotheses)))

    def encode(self, texts: list[torch.Tensor]) -> Encoded:
        """Pass texts through the encoder.

        Args:
            texts: Token ids of each, ``[CLS]`` first and ``[SEP]`` last.

        Returns:
            What the head takes.
        """
        ids = torch.nn.utils.rnn.pad_sequence(texts, batch_first=True)
        lengths = torch.tensor([len(text) for text in texts], device=ids.device).unsqueeze(1)
        places = torch.arange(ids.shape[1], device=ids.device)
        hidden = self.encoder(
            input_ids=ids, attention_mask=(places < lengths).long(), output_hidden_states=True
        ).hidden_states
        words = self.encoder.get_input_embeddings()(ids)
        states = [words if layer == 0 else hidden[layer] for layer in self.head.shape.layers]
        mask = (places > 0) & (places < lengths - 1)
        # Special tokens and padding match nothing.
        return Encoded(torch.stack(states, dim=2) * mask[:, :, None, None], mask)
