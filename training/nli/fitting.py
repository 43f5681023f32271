"""Training the head on top of the frozen all-MiniLM-L6-v2."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from adaptllm_chain.entailment.cross_head import CrossHead, HeadShape
from adaptllm_chain.entailment.embedded import CrossEncoder, load_encoder
from training.nli.frozen_states import FrozenStates
from training.nli.recipe import NliRecipe
from training.nli.rows import Row

# [CLS], and a [SEP] behind either text.
_SPECIAL_TOKENS = 3
_WEIGHT_DECAY = 0.01
_MAX_NORM = 1.0
_LOG_STEPS = 50
# Batches of like length are cut from so many batches' rows, which keeps them random enough.
_POOL = 32


def fit(rows: Sequence[Row], recipe: NliRecipe, *, say: Callable[[str], None]) -> tuple[CrossHead, dict[str, Any]]:
    """Train a head.

    Args:
        rows: The rows to train on.
        recipe: The settings.
        say: Told how far it is.

    Returns:
        The head in evaluation mode, and ``rows``, ``rows_too_long``, ``steps``, ``parameters``, ``seconds`` of
        encoding and training, ``losses`` (step and mean loss since the one before, in nats a row).
    """
    torch.manual_seed(recipe.seed)  # of the head's initial weights and its dropout
    encoder, tokenizer = load_encoder()
    shape = HeadShape(
        width=recipe.width, blocks=recipe.blocks, heads=recipe.heads, encoder_width=encoder.config.hidden_size
    )
    head = CrossHead(shape, dropout=recipe.dropout)
    began = time.monotonic()
    states = FrozenStates(
        CrossEncoder(encoder, head).encode,
        tokenizer,
        [text for row in rows for text in (row.premise, row.hypothesis)],
        progress=lambda done, of: say(f"encoded {done} of {of} texts"),
    )
    encoded = time.monotonic()
    fitting = [row for row in rows if _tokens(row, states) <= recipe.max_tokens]
    losses = _train(head, fitting, states, recipe, say)
    return head.eval(), {
        "rows": len(fitting),
        "rows_too_long": len(rows) - len(fitting),
        "steps": len(losses),
        "parameters": sum(weight.numel() for weight in head.parameters()),
        "seconds": {"encoding": round(encoded - began, 1), "training": round(time.monotonic() - encoded, 1)},
        "losses": [
            [end, round(sum(losses[end - _LOG_STEPS : end]) / _LOG_STEPS, 4)]
            for end in range(_LOG_STEPS, len(losses) + 1, _LOG_STEPS)
        ],
    }


def batches(lengths: Sequence[int], size: int, rng: random.Random) -> Iterator[list[int]]:
    """Deal rows into batches of like length, in random order.

    Args:
        lengths: Of each row.
        size: Rows a batch.
        rng: Of the order.

    Yields:
        The places of a batch's rows; every row is in one of them.
    """
    order = list(range(len(lengths)))
    rng.shuffle(order)
    dealt = []
    for start in range(0, len(order), size * _POOL):
        pool = sorted(order[start : start + size * _POOL], key=lambda place: lengths[place])
        dealt += [pool[first : first + size] for first in range(0, len(pool), size)]
    rng.shuffle(dealt)
    yield from dealt


def rate(step: int, steps: int, recipe: NliRecipe) -> float:
    """Say how fast to learn.

    Args:
        step: From 0.
        steps: How many there are.
        recipe: The settings.

    Returns:
        The learning rate: up over the first steps, then down on a line that ends behind the last.
    """
    return recipe.learning_rate * min((step + 1) / (recipe.warmup_steps + 1), 1.0, (steps - step) / steps)


def _tokens(row: Row, states: FrozenStates) -> int:
    return states.length(row.premise) + states.length(row.hypothesis) + _SPECIAL_TOKENS


def _train(
    head: CrossHead, rows: Sequence[Row], states: FrozenStates, recipe: NliRecipe, say: Callable[[str], None]
) -> list[float]:
    rng = random.Random(recipe.seed)
    optimizer = torch.optim.AdamW(head.parameters(), weight_decay=_WEIGHT_DECAY)
    lengths = [_tokens(row, states) for row in rows]
    steps = recipe.epochs * -(-len(rows) // recipe.batch_size)
    losses: list[float] = []
    head.train()
    for _ in range(recipe.epochs):
        for places in batches(lengths, recipe.batch_size, rng):
            chosen = [rows[place] for place in places]
            for group in optimizer.param_groups:
                group["lr"] = rate(len(losses), steps, recipe)
            logits = head(
                states.batch([row.premise for row in chosen]), states.batch([row.hypothesis for row in chosen])
            )
            loss = torch.nn.functional.cross_entropy(logits, torch.tensor([int(row.entailed) for row in chosen]))
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(head.parameters(), _MAX_NORM)
            optimizer.step()
            losses.append(loss.item())
            if len(losses) % _LOG_STEPS == 0:
                say(f"step {len(losses)} of {steps}, loss {sum(losses[-_LOG_STEPS:]) / _LOG_STEPS:.4f}")
    return losses
