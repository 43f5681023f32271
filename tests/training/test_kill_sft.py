"""SFT under kill -9: a run that is started again ends where an unbroken one does (T8)."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
import torch
import yaml
from safetensors.torch import load_file

from adaptllm_chain.llms import LocalLLM
from tests.tiny_models import byte_level_tokenizer, tiny_llama
from tests.training.killing import KILLS, THOROUGH, Killer
from training.sft import main

ASK = "Answer the question Q. If you need help answer <RET> to get the context. Q: "


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    """A base in a folder, rows of both classes, and arguments that train on them."""
    tokenizer = byte_level_tokenizer()
    tiny_llama(tokenizer).save_pretrained(tmp_path / "base")
    tokenizer.save_pretrained(tmp_path / "base")
    rows = [{"prompt": f"{ASK}who is number {n}?", "completion": "<RET>"} for n in range(90)]
    rows += [{"prompt": f"{ASK}what is {n}?", "completion": "Paris"} for n in range(10)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    fields = {
        "base": str(tmp_path / "base"), "rows": str(tmp_path / "rows.jsonl"), "out": str(tmp_path / "out"),
        "format": "chat", "known_share": 0.4, "save_steps": 2, "kinds": ["parametric"], "epochs": 2,
        "batch_size": 4, "micro_batch_size": 2, "device": "cpu", "learning_rate": 0.01,
    }  # fmt: skip
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(fields))
    return ["--config", str(tmp_path / "recipe.yaml")]


@pytest.mark.parametrize("ret_token", ["text", "added"] if THOROUGH else ["text"])
def test_killed_at_any_moment_and_started_again_it_ends_the_same_t8(
    command: list[str], tmp_path: Path, ret_token: str
) -> None:
    command = [*command, "--ret-token", ret_token]
    out, unbroken = tmp_path / "out", tmp_path / "unbroken"
    killer = Killer("sft")
    _, seconds = killer.finish([*command, "--out", str(unbroken)])
    # Once when there is something to resume from, then at random.
    process = killer.start(command)
    while not list(out.glob("checkpoints/checkpoint-*/trainer_state.json")):
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.01)
    killer.kill(process)
    assert killer.killed == 1
    assert not (out / "result.json").exists()
    killer.kill_at_random(command, seconds, times=KILLS - 1)
    output, _ = killer.finish(command)

    result, expected = (json.loads((folder / "result.json").read_text()) for folder in (out, unbroken))
    assert expected["resumed_from_step"] is None
    assert result["resumed_from_step"] >= 2
    assert f"resumed from step {result['resumed_from_step']}" in output
    for key in ("steps", "rows", "rows_too_long"):
        assert result[key] == expected[key]
    assert [step for step, _ in result["losses"]] == [step for step, _ in expected["losses"]]
    every = expected["losses"][0][0]
    for (step, loss), (_, unbroken_loss) in zip(result["losses"], expected["losses"], strict=True):
        # A logged loss is a mean over the steps since the last one: that around the resumption is over fewer of them.
        if not step - every < result["resumed_from_step"] < step:
            assert loss == pytest.approx(unbroken_loss, rel=0.05, abs=0.02)
    assert result["train_loss"] == pytest.approx(expected["train_loss"], rel=0.1)
    # Order, dropout and optimizer all continue: the weights are those of the unbroken run.
    ours, theirs = (load_file(folder / "adapter_model.safetensors") for folder in (out, unbroken))
    assert all(torch.allclose(weight, theirs[name], atol=1e-4) for name, weight in ours.items())

    card = (out / "README.md").read_text()
    assert f"{result['steps']} steps" in card
    assert "More Information Needed" not in card
    # Finished: the same command again trains nothing and changes nothing.
    before = {file.name: file.read_bytes() for file in out.iterdir() if file.is_file()}
    assert main(command) == 0
    assert {file.name: file.read_bytes() for file in out.iterdir() if file.is_file()} == before
    # The adapter loads with its format.
    llm = LocalLLM.from_pretrained(tmp_path / "base", adapter=out, max_new_tokens=4)
    assert llm.format == "chat"
    assert result["dev"]["questions"] > 0
