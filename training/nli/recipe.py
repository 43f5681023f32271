"""What the entailment scorer is trained with."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from adaptllm_chain.entailment.embedded import MAX_TOKENS


class NliRecipe(BaseModel):
    """Settings of one training run; the defaults made the shipped weights.

    Attributes:
        data: Files of questions with gold passages.
        out: The output folder.
        held_out_share: What part of the passages, with their questions, is kept for measuring.
        max_tokens: Longest pair, special tokens included; longer ones are left out of training and counted.
        width: Numbers a token inside the head.
        blocks: How often the hypothesis looks at the premise.
        heads: Attention heads a block.
        dropout: Inside the head.
        learning_rate: At its peak, from which it falls linearly.
        warmup_steps: Steps that it rises for.
        batch_size: Rows a step.
        epochs: Passes over the rows.
        seed: Of all random choices.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    data: tuple[Path, ...] = Field(min_length=1)
    out: Path = Path("runs/nli")
    held_out_share: float = Field(default=0.1, gt=0, lt=1)
    max_tokens: int = Field(default=MAX_TOKENS, ge=16, le=512)
    width: int = Field(default=128, ge=4)
    blocks: int = Field(default=2, ge=1)
    heads: int = Field(default=4, ge=1)
    dropout: float = Field(default=0.1, ge=0, lt=1)
    learning_rate: float = Field(default=1e-3, gt=0)
    warmup_steps: int = Field(default=30, ge=0)
    batch_size: int = Field(default=32, ge=1)
    epochs: int = Field(default=3, ge=1)
    seed: int = 0
