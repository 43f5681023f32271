"""Micro-batches: cut where padding is dear, and never so that a figure changes."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from adaptllm_chain.llms.encoding import PromptEncoder
from adaptllm_chain.ret.marker import RET
from tests.tiny_models import byte_level_tokenizer, tiny_llama
from training import completion_trainer
from training.padding import cut_padding
from training.recipe import Recipe
from training.rows import encode_rows
from training.trainer import build_trainer

LENGTHS = st.lists(st.integers(1, 300), min_size=1, max_size=9)


def cost(lengths: list[int], pieces: list[int]) -> int:
    """Tokens read, padding included."""
    starts = [sum(pieces[:at]) for at in range(len(pieces))]
    return sum(rows * max(lengths[start : start + rows]) for start, rows in zip(starts, pieces, strict=True))


@given(LENGTHS, st.integers(1, 200))
def test_every_cut_pays_for_its_pass(lengths: list[int], worth: int) -> None:
    pieces = cut_padding(lengths, worth)
    assert sum(pieces) == len(lengths)
    assert min(pieces) >= 1
    assert cost(lengths, pieces) + worth * (len(pieces) - 1) <= cost(lengths, [len(lengths)])


@given(st.integers(1, 5), st.integers(1, 5), st.integers(1, 300), st.integers(1, 300), st.integers(1, 200))
def test_of_two_kinds_of_row_it_finds_the_best_cut(first: int, second: int, long: int, short: int, worth: int) -> None:
    lengths = [long] * first + [short] * second
    rows = len(lengths)
    every = [
        [end - start for start, end in zip((0, *cuts), (*cuts, rows), strict=True)]
        for count in range(rows)
        for cuts in combinations(range(1, rows), count)
    ]
    best = min(cost(lengths, pieces) + worth * (len(pieces) - 1) for pieces in every)
    pieces = cut_padding(lengths, worth)
    assert cost(lengths, pieces) + worth * (len(pieces) - 1) == best


@pytest.mark.parametrize(
    ("lengths", "pieces"),
    [
        ([250, 250, 250, 45, 45], [3, 2]),  # saves 2 x 205
        ([45, 46, 47, 48], [4]),  # no cut saves more than 4
        ([250, 45], [1, 1]),
        ([250, 190], [2]),  # 60 tokens are less than a pass
        ([200, 250, 40, 45, 200], [2, 2, 1]),
        ([7], [1]),
    ],
)
def test_cuts_worked_out_by_hand(lengths: list[int], pieces: list[int]) -> None:
    assert cut_padding(lengths, worth=64) == pieces


def train(tmp_path: Path, rows: list[dict[str, Any]], tokenizer: Any, **fields: Any) -> Any:
    recipe = Recipe(
        rows="r", out=tmp_path, device="cpu", batch_size=8, micro_batch_size=4, max_steps=4, lora_dropout=0.0,
        learning_rate=0.01, **fields,
    )  # fmt: skip
    torch.manual_seed(0)
    trainer = build_trainer(tiny_llama(tokenizer), tokenizer, rows, recipe)
    trainer.args.logging_steps = 1
    trainer.train()
    return trainer


@pytest.mark.parametrize("fields", [{}, {"gradient_checkpointing": True}])
def test_cutting_changes_neither_losses_nor_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any]
) -> None:
    tokenizer = byte_level_tokenizer(pad=True)
    passage = "The mill was built by Ada Holm. " * 6
    rows = [
        {"prompt": f"Q: who is {n}?, C: {passage[n:]}", "completion": "Paris", "kind": "context"} for n in range(11)
    ]
    rows += [{"prompt": f"Q: number {n}?", "completion": RET, "kind": "parametric"} for n in range(21)]
    encoded = encode_rows(rows, PromptEncoder(tokenizer, "plain", RET))
    read: list[int] = []
    hidden_states = completion_trainer._hidden_states

    def counting(decoder: Any, inputs: dict[str, Any], shared: int) -> Any:
        read.append(inputs["input_ids"].numel())
        return hidden_states(decoder, inputs, shared)

    monkeypatch.setattr(completion_trainer, "_hidden_states", counting)
    cut = train(tmp_path, encoded, tokenizer, **fields)
    passes, tokens = len(read), sum(read)
    monkeypatch.setattr(completion_trainer, "cut_padding", lambda lengths: [len(lengths)])
    whole = train(tmp_path, encoded, tokenizer, **fields)
    assert len(read) - passes == 8  # two micro-batches in each of four steps
    assert 8 < passes <= 12  # the kind changes once a step at most
    assert tokens < 0.9 * (sum(read) - tokens)

    losses = [[entry["loss"] for entry in t.state.log_history if "loss" in entry] for t in (cut, whole)]
    assert len(losses[0]) == 4
    assert losses[0] == pytest.approx(losses[1], abs=1e-5)
    theirs = dict(whole.model.named_parameters())
    for name, weight in cut.model.named_parameters():
        if weight.requires_grad:
            assert torch.allclose(weight, theirs[name], atol=1e-5), name


def test_a_batch_on_its_own_has_the_mean_loss_of_the_plain_model(tmp_path: Path) -> None:
    tokenizer = byte_level_tokenizer(pad=True)
    rows = [
        {"prompt": f"Q: {'very ' * 40}long?", "completion": "Ada Holm", "kind": "context"},
        {"prompt": "Q: who?", "completion": RET, "kind": "parametric"},
    ]
    encoded = encode_rows(rows, PromptEncoder(tokenizer, "plain", RET))
    assert cut_padding([len(row["input_ids"]) for row in encoded]) == [1, 1]
    recipe = Recipe(rows="r", out=tmp_path, device="cpu", batch_size=2, micro_batch_size=2, lora_dropout=0.0)
    trainer = build_trainer(tiny_llama(tokenizer), tokenizer, encoded, recipe)
    batch = trainer.data_collator([trainer.train_dataset[0], trainer.train_dataset[1]])
    ours = trainer.compute_loss(trainer.model, dict(batch))
    assert torch.allclose(ours, trainer.model(**batch).loss, atol=1e-5)
