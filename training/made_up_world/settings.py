"""What a run depends on."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

BaseName = Literal["embedded", "tiny"]


class Settings(BaseModel):
    """Everything that a run depends on; the defaults are those of the full run.

    Attributes:
        base: ``"embedded"`` (SmolLM2-135M-Instruct), or ``"tiny"``: a Llama of a million parameters, made on the spot.
        seed: Of the world, the halves and the training.
        per_kind: Entities of each kind; a quarter is known and trained on, a quarter known and tested, and so on.
        upbringing_epochs: Passes over texts on other worlds by which the tiny base is made.
        rehearsal: How much of the other worlds it goes on hearing in each epoch of teaching.
        teach_epochs: The most passes over the facts that are taught.
        teach_rate: Learning rate of teaching.
        teach_enough: Mean loss of an epoch at which teaching ends.
        sft_epochs: Passes over the rows of Algorithm 1.
        sft_rate: Peak learning rate of SFT.
        sft_rank: LoRA rank.
        batch_size: Rows a step, in teaching and in SFT.
        k: Passages a question.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    base: BaseName = "embedded"
    seed: int = 0
    per_kind: int = 40
    upbringing_epochs: int = 0
    rehearsal: int = 0
    teach_epochs: int = 14
    teach_rate: float = 3e-4
    teach_enough: float = 0.05
    sft_epochs: int = 6
    sft_rate: float = 1e-3
    sft_rank: int = 64
    batch_size: int = 24
    k: int = 1


TINY = Settings(
    base="tiny",
    per_kind=80,
    upbringing_epochs=24,
    rehearsal=60,
    teach_epochs=32,
    teach_rate=3e-3,
    teach_enough=0.0,
    sft_epochs=12,
    sft_rate=3e-3,
    batch_size=32,
)
"""The experiment with the tiny base: more entities, since they cost it little, and so narrower intervals."""

SMALL = TINY.model_copy(update={"per_kind": 32})
"""The reduced form."""
