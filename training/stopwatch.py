"""The seconds of a training run that may have been killed and resumed."""

from __future__ import annotations

import time
from typing import Any

from transformers import TrainerCallback
from transformers.trainer_callback import ExportableState


class Stopwatch(TrainerCallback, ExportableState):
    """Counts the seconds over all legs of a run; the trainer keeps the sum in its checkpoints.

    What a leg did after its last checkpoint is lost with it, so it does not count.
    """

    def __init__(self) -> None:
        self._before = 0.0
        self._began: float | None = None

    @property
    def seconds(self) -> float:
        """Seconds so far, those of earlier legs included."""
        return self._before + (0.0 if self._began is None else time.monotonic() - self._began)

    def state(self) -> dict[str, Any]:
        """Say what a checkpoint keeps.

        Returns:
            The seconds, as the trainer wants its callbacks' state.
        """
        return {"args": {}, "attributes": {"seconds": self.seconds}}

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Start; go on from the checkpoint's seconds if there is one.

        The trainer would restore callbacks by itself, but only together with its own flow, which an unbroken
        run does not have at this point.

        Args:
            args: Not used.
            state: The trainer's, read from the checkpoint.
            control: Not used.
        """
        # A checkpoint from before there was this callback knows nothing of it.
        kept = state.stateful_callbacks.setdefault(type(self).__name__, self.state())
        self._before = kept["attributes"]["seconds"]
        self._began = time.monotonic()

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Stop."""
        self._before, self._began = self.seconds, None
