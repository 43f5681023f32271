"""The seconds of a run that was resumed are those of all its legs."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from adaptllm_chain.llms.encoding import PromptEncoder
from tests.tiny_models import byte_level_tokenizer, tiny_llama
from training.recipe import Recipe
from training.rows import encode_rows
from training.stopwatch import Stopwatch
from training.trainer import build_trainer


def leg(tmp_path: Path, checkpoint: Path | None = None) -> tuple[float, float]:
    """Train, from a checkpoint if there is one; the stopwatch's seconds, and those that passed."""
    tokenizer = byte_level_tokenizer()
    rows: list[Any] = [{"prompt": f"Q: {n}?", "completion": "Paris", "kind": "parametric"} for n in range(4)]
    encoded = encode_rows(rows, PromptEncoder(tokenizer, "plain", "<RET>"))
    recipe = Recipe(rows="r", out=tmp_path, device="cpu", batch_size=2, micro_batch_size=2, max_steps=4, save_steps=2)
    trainer = build_trainer(tiny_llama(tokenizer), tokenizer, encoded, recipe)
    stopwatch = Stopwatch()
    assert stopwatch.seconds == 0
    trainer.add_callback(stopwatch)
    began = time.monotonic()
    trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    passed = time.monotonic() - began
    assert stopwatch.seconds == stopwatch.seconds, "it stands still after the end"
    return stopwatch.seconds, passed


@pytest.mark.parametrize("known", [True, False])
def test_a_checkpoint_keeps_the_seconds(tmp_path: Path, known: bool) -> None:
    seconds, passed = leg(tmp_path)
    assert 0 < seconds <= passed
    state_file = tmp_path / "checkpoints" / "checkpoint-2" / "trainer_state.json"
    state = json.loads(state_file.read_text())
    kept = state["stateful_callbacks"]["Stopwatch"]["attributes"]
    assert 0 < kept["seconds"] < seconds
    kept["seconds"] = 1000.0  # as if the first leg had taken long
    if not known:  # a checkpoint of a version without it
        del state["stateful_callbacks"]["Stopwatch"]
    state_file.write_text(json.dumps(state))
    seconds, passed = leg(tmp_path, state_file.parent)
    before = 1000.0 if known else 0.0
    assert before < seconds <= before + passed
    later = json.loads(state_file.parent.with_name("checkpoint-4").joinpath("trainer_state.json").read_text())
    assert before < later["stateful_callbacks"]["Stopwatch"]["attributes"]["seconds"] < seconds
