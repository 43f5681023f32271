"""Teaching facts to a base: full fine-tuning on short texts, until it knows them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from tqdm import tqdm

from adaptllm_chain.llms.encoding import PromptEncoder
from adaptllm_chain.prompts import PromptTemplates
from adaptllm_chain.records import PromptKind
from adaptllm_chain.ret.marker import RET
from training.made_up_world.world import Fact

Text = tuple[str, str]
"""A prompt, and what should follow it."""
Row = tuple[list[int], list[int]]
"""The token ids of a prompt, and of what should follow it."""


def fact_texts(facts: Sequence[Fact], rng: random.Random) -> Iterator[Text]:
    """Write each fact twice: as the answer to a prompted question, and as a statement or the answer to a bare question.

    Args:
        facts: The facts.
        rng: Draws the wordings.

    Yields:
        Prompts that end where the value follows, and the values.
    """
    templates = PromptTemplates()
    for fact in facts:
        words = [wording.format(x=fact.entity.name) for wording in fact.relation.taught]
        # In either of the prompts that give no passage: an instructed model answers both.
        kind: PromptKind = rng.choice(("closed_book", "parametric"))
        yield templates.render(kind, rng.choice(words)), fact.value
        statements = [wording.format(x=fact.entity.name) for wording in fact.relation.statements]
        yield rng.choice([*statements, *words]), fact.value


def teach(
    model: Any,
    tokenizer: Any,
    texts_of_epoch: Callable[[int], Sequence[Text]],
    *,
    epochs: int,
    learning_rate: float,
    batch_size: int,
    enough: float = 0.0,
    freeze_embeddings: bool = True,
    pack: int = 0,
) -> list[float]:
    """Fine-tune all layers of a model; the loss is on the completions alone.

    The weights are trained in float32: smaller types lose small updates. The embeddings of a pretrained model stay
    as they are: its names share their pieces, and a fifth of the optimizer's work is saved.

    Args:
        model: A causal language model; it is changed in place.
        tokenizer: Its tokenizer.
        texts_of_epoch: Makes the texts of an epoch, counted from 0.
        epochs: The most passes.
        learning_rate: Its peak, after ten steps of warm-up; it then falls to a tenth.
        batch_size: Texts a step.
        enough: Stop after an epoch whose mean loss is below it.
        freeze_embeddings: Whether to leave the embeddings as they are.
        pack: The most tokens of a sequence of several rows. 0: each row alone and padded, which suits a tiny model.

    Returns:
        The mean loss a completion token, epoch by epoch.
    """
    encoder = PromptEncoder(tokenizer, "plain", RET)
    model.float().train()
    model.get_input_embeddings().weight.requires_grad_(not freeze_embeddings)
    trained = [weights for weights in model.parameters() if weights.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=learning_rate, weight_decay=0.0, fused=True)
    steps = epochs * -(-len(texts_of_epoch(0)) // batch_size)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, (step + 1) / 10) * max(0.1, 1.0 - step / steps)
    )
    losses: list[float] = []
    with tqdm(total=epochs, unit="epoch", desc="teaching") as bar:
        for epoch in range(epochs):
            rows = [_row(text, encoder, tokenizer) for text in texts_of_epoch(epoch)]
            random.Random(epoch).shuffle(rows)
            total, tokens = 0.0, 0
            for start in range(0, len(rows), batch_size):
                loss, counted = _loss(model, rows[start : start + batch_size], pack)
                (loss / counted).backward()
                torch.nn.utils.clip_grad_norm_(trained, 1.0)
                optimizer.step()
                optimizer.zero_grad()
                schedule.step()
                total, tokens = total + loss.item(), tokens + counted
            losses.append(round(total / tokens, 4))
            bar.set_postfix(loss=losses[-1])
            bar.update()
            if losses[-1] < enough:
                break
    model.get_input_embeddings().weight.requires_grad_(True)  # noqa: FBT003 - torch's own signature
    model.eval()
    return losses


def _row(text: Text, encoder: PromptEncoder, tokenizer: Any) -> Row:
    prompt = encoder.frame(text[0])
    ids = encoder.encode(text[0]).ids
    whole = tokenizer(f"{prompt.text}{prompt.lead}{text[1]}").input_ids
    return ids, [*whole[len(ids) :], tokenizer.eos_token_id]


def _loss(model: Any, rows: Sequence[Row], pack: int) -> tuple[Any, int]:
    """Sum the loss over the completions' tokens; only these positions meet the large output layer.

    In packed sequences the positions begin again with each row, which keeps the rows apart: padded to the longest, two
    fifths of what the model reads would be padding.
    """
    packs = _packs(rows, pack)
    length = max(sum(map(_length, packed)) for packed in packs)
    ids = torch.zeros(len(packs), length, dtype=torch.long)
    positions = torch.arange(length).repeat(len(packs), 1)
    counted = torch.zeros_like(ids, dtype=torch.bool)
    for number, packed in enumerate(packs):
        start = 0
        for prompt, completion in packed:
            end = start + len(prompt) + len(completion)
            ids[number, start:end] = torch.tensor(prompt + completion)
            positions[number, start:end] = torch.arange(end - start)
            counted[number, start + len(prompt) : end] = True
            start = end
    hidden = model.get_decoder()(input_ids=ids, position_ids=positions, use_cache=False).last_hidden_state
    logits = model.get_output_embeddings()(hidden[:, :-1][counted[:, 1:]]).float()
    loss = torch.nn.functional.cross_entropy(logits, ids[counted], reduction="sum")
    return loss, int(counted.sum())


def _packs(rows: Sequence[Row], pack: int) -> list[list[Row]]:
    """Fill sequences with rows, in order; a row that is longer than a sequence has one to itself."""
    packs: list[list[Row]] = [[]]
    filled = 0
    for row in rows:
        if packs[-1] and filled + _length(row) > pack:
            packs.append([])
            filled = 0
        packs[-1].append(row)
        filled += _length(row)
    return packs


def _length(row: Row) -> int:
    return len(row[0]) + len(row[1])
