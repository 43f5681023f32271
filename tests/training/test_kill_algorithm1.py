"""Algorithm 1 under kill -9: the same bytes as a run that nobody disturbed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.tiny_models import byte_level_tokenizer, tiny_llama
from tests.training.killing import KILLS, THOROUGH, Killer


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    tokenizer = byte_level_tokenizer()
    tiny_llama(tokenizer).save_pretrained(tmp_path / "base")
    tokenizer.save_pretrained(tmp_path / "base")
    rows = [
        {"question": f"who built mill {n} of {n + 2}?", "answers": ["a", "e", "o"], "gold_passage": f"Ada built {n}."}
        for n in range(40)
    ]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return [
        "--data", str(tmp_path / "data.jsonl"), "--model", str(tmp_path / "base"), "--device", "cpu",
        "--batch-size", "1", "--max-new-tokens", "4", "--baseline-rows",
    ]  # fmt: skip


@pytest.mark.parametrize("label", ["known", "soft", "utility"] if THOROUGH else ["soft"])
def test_killed_at_any_moment_and_started_again_it_writes_the_same_bytes(
    command: list[str], tmp_path: Path, label: str
) -> None:
    command = [*command, "--label", label, *(["--samples", "4"] if label == "soft" else [])]
    killer = Killer("algorithm1", seed=len(label))
    _, seconds = killer.finish([*command, "--out", str(tmp_path / "unbroken")])
    killer.kill_at_random([*command, "--out", str(tmp_path / "out")], seconds, times=KILLS)
    killer.finish([*command, "--out", str(tmp_path / "out")])
    assert killer.killed >= 1
    written = {file.name: file.read_bytes() for file in (tmp_path / "unbroken").iterdir()}
    assert len(written) >= 5  # rows, the baselines' rows, counts, a journal
    assert {file.name: file.read_bytes() for file in (tmp_path / "out").iterdir()} == written
