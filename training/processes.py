"""Which of several training processes this one is, as ``accelerate launch`` or ``torchrun`` tells it."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Processes:
    """The processes of one training run.

    Attributes:
        rank: This one's number among all of them, from 0.
        count: How many there are.
        sharded: Whether they share one model between them (FSDP) rather than hold a copy each.
    """

    rank: int = 0
    count: int = 1
    sharded: bool = False

    @classmethod
    def from_environment(cls) -> Processes:
        """Read what the launcher has set.

        Returns:
            One process where there was no launcher.
        """
        return cls(
            rank=int(os.environ.get("RANK", "0")),
            count=int(os.environ.get("WORLD_SIZE", "1")),
            sharded=os.environ.get("ACCELERATE_USE_FSDP", "false").lower() == "true",
        )

    @property
    def is_main(self) -> bool:
        """Whether this is the one that writes the output folder."""
        return self.rank == 0
