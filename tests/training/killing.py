"""Runs that are killed at random moments and started again, for the tests of resuming."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.conftest import ROOT

# The imports take longer than a tiny run and hold nothing that a kill could break: the clock starts after them.
_DRIVER = """
import sys
import torch, transformers, peft, trl, datasets
import adaptllm_chain.llms.local, training.completion_trainer
from training.{module} import main
print("ready", flush=True)
sys.exit(main(sys.argv[1:]))
"""


# ADAPTLLM_KILLS=10 kills more often, and in more ways, than the suite has time for.
THOROUGH = "ADAPTLLM_KILLS" in os.environ
KILLS = int(os.environ.get("ADAPTLLM_KILLS", "2"))


@dataclass
class Killer:
    """Starts a command of training/ again and again.

    Attributes:
        module: Of the command, such as ``"sft"``.
        seed: Of the moments.
        killed: How many runs were killed before their end.
    """

    module: str
    seed: int = 0
    killed: int = 0
    _random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def start(self, arguments: Sequence[str]) -> subprocess.Popen[str]:
        """Start the command and wait until its imports are done."""
        process = subprocess.Popen(
            [sys.executable, "-c", _DRIVER.format(module=self.module), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=ROOT,
            env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    def finish(self, arguments: Sequence[str]) -> tuple[str, float]:
        """Run the command to its end; what it printed, and the seconds that it took."""
        process = self.start(arguments)
        began = time.monotonic()
        output, _ = process.communicate()
        assert process.returncode == 0, output
        return output, time.monotonic() - began

    def kill(self, process: subprocess.Popen[str]) -> None:
        """Kill a run as the kernel would, and count it if it was not over."""
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
            self.killed += 1
        process.communicate()

    def kill_at_random(self, arguments: Sequence[str], within_s: float, times: int) -> None:
        """Start and kill several times, each time at a moment that may be any of a whole run."""
        for _ in range(times):
            process = self.start(arguments)
            time.sleep(self._random.uniform(0, within_s))
            self.kill(process)
