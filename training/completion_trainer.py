"""A trainer that spends nothing on positions without a loss, nor twice on what rows share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import Sampler
from transformers.cache_utils import DynamicCache
from trl import SFTTrainer

from training.padding import cut_padding

# A shorter common beginning costs more in a second call of the model than it saves.
_WORTH_SHARING = 8


class BucketedSampler(Sampler[int]):
    """Random batches whose rows are sorted by group and length inside the batch.

    An optimizer step sees the same random rows as with plain shuffling, so its gradient is the same; only
    the micro-batches that it is accumulated from hold rows that begin alike and have similar length.

    Args:
        lengths: Tokens of each row.
        batch_size: Rows an optimizer step.
        seed: Of the order; the epoch is added to it.
        groups: What rows that begin alike have in common, such as their kind of prompt; by default one group.
    """

    def __init__(self, lengths: Sequence[int], batch_size: int, seed: int, groups: Sequence[str] | None = None) -> None:
        self.keys = list(zip(groups or [""] * len(lengths), lengths, strict=True))
        self.batch_size = batch_size
        self.seed = seed
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of an epoch; a resumed run asks for the one it was in.

        Args:
            epoch: Counted from 0.
        """
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[int]:
        generator = torch.Generator().manual_seed(self.seed + self.epoch)
        order = torch.randperm(len(self.keys), generator=generator).tolist()
        for start in range(0, len(order), self.batch_size):
            yield from sorted(order[start : start + self.batch_size], key=lambda row: self.keys[row])


def shared_beginning(input_ids: Any, labels: Any) -> int:
    """Count the columns at the beginning of a batch that are the same in every row and predict nothing.

    Args:
        input_ids: Token ids of shape (rows, tokens), padded right.
        labels: Of the same shape; -100 where there is no loss.

    Returns:
        How many tokens all rows begin with, up to the last one before the first that carries a loss.
    """
    differs = (input_ids != input_ids[:1]).any(0) | (labels != -100).any(0).roll(-1)
    return int(differs.long().argmax()) if bool(differs.any()) else 0


class CompletionTrainer(SFTTrainer):
    """TRL's trainer, with bucketed batches and, on a CPU, three savings that change no figure.

    Logits are computed for the completion alone: on a GPU TRL's fused head does that, on a CPU it scores
    all positions, which for a vocabulary of 49,152 is a fifth of the work of a small model. A micro-batch
    in which one kind of prompt ends and a much shorter one begins is read in two pieces rather than padded. And
    the beginning that all rows of a piece share (the format's head, the instruction) is read once; gradients flow
    through it as through any other part.
    """

    def _get_train_sampler(self, train_dataset: Any = None) -> Sampler[int]:
        rows = self.train_dataset if train_dataset is None else train_dataset
        # One order for all processes; accelerate deals its micro-batches out to them in turn.
        step = (
            self.args.per_device_train_batch_size
            * self.args.gradient_accumulation_steps
            * self.accelerator.num_processes
        )
        groups = rows["kind"] if "kind" in rows.column_names else None
        return BucketedSampler([len(ids) for ids in rows["input_ids"]], step, self.args.seed, groups)

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """Compute the mean loss of the completion's tokens.

        Args:
            model: The model with its adapter.
            inputs: ``input_ids``, ``attention_mask`` and ``labels`` of shape (rows, tokens).
            return_outputs: Whether the caller wants the model's outputs too.
            num_items_in_batch: Tokens with a loss in the whole optimizer step.

        Returns:
            The loss, a scalar.
        """
        # With several processes the pass has to go through the wrapper that averages their gradients.
        alone_on_cpu = self.accelerator.num_processes == 1 and inputs["input_ids"].device.type == "cpu"
        if return_outputs or not alone_on_cpu or _reworks_logits(model.config):
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        total, counted = zip(*(self._summed_loss(model, piece) for piece in _pieces(inputs)), strict=True)
        return sum(total) / (sum(counted) if num_items_in_batch is None else num_items_in_batch)

    def _summed_loss(self, model: Any, inputs: dict[str, Any]) -> tuple[Any, Any]:
        """The sum of the losses of a piece's tokens, and how many there are."""
        base = model.get_base_model()
        shared = 0 if self.args.activation_checkpointing else shared_beginning(inputs["input_ids"], inputs["labels"])
        if shared < _WORTH_SHARING:
            shared = 0
        hidden = _hidden_states(base.get_decoder(), inputs, shared)
        labels = inputs["labels"][:, shared + 1 :]
        counted = labels != -100
        logits = base.get_output_embeddings()(hidden[:, :-1][counted]).float()
        return torch.nn.functional.cross_entropy(logits, labels[counted], reduction="sum"), counted.sum()

    def _save(self, output_dir: str | None = None, state_dict: dict[str, Any] | None = None) -> None:
        """Write the adapter of a checkpoint; of a base with an added token its rows alone, not whole embeddings."""
        if not self.args.should_save:
            return
        folder = Path(output_dir or self.args.output_dir)
        folder.mkdir(parents=True, exist_ok=True)
        self.model.save_pretrained(str(folder), state_dict=state_dict, save_embedding_layers=False)
        self.processing_class.save_pretrained(str(folder))


def _reworks_logits(config: Any) -> bool:
    """Whether a model scales or caps its logits (Granite, Gemma 2, Cohere), which only its own pass does."""
    names = ("logits_scaling", "final_logit_softcapping", "logit_scale")
    return any(getattr(config, name, None) not in (None, 1.0) for name in names)


def _pieces(inputs: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Cut a batch that is padded right into pieces with little padding."""
    lengths = inputs["attention_mask"].sum(1).tolist()
    start = 0
    for rows in cut_padding(lengths):
        end = start + rows
        longest = max(lengths[start:end])
        yield {name: inputs[name][start:end, :longest] for name in ("input_ids", "attention_mask", "labels")}
        start = end


def _hidden_states(decoder: Any, inputs: dict[str, Any], shared: int) -> Any:
    """Run the decoder; the result begins after the ``shared`` tokens, which are read once for all rows."""
    ids, mask = inputs["input_ids"], inputs["attention_mask"]
    if shared == 0 or len(ids) == 1:
        return decoder(input_ids=ids, attention_mask=mask, use_cache=False).last_hidden_state[:, shared:]
    cache = DynamicCache()
    decoder(input_ids=ids[:1, :shared], cache=cache, use_cache=True)
    cache.batch_repeat_interleave(len(ids))
    return decoder(input_ids=ids[:, shared:], attention_mask=mask, cache=cache, use_cache=True).last_hidden_state
