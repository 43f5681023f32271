"""The recipes in training/configs and training/accelerate, contradictions, and several processes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from langchain_core.documents import Document
from safetensors.torch import load_file

from adaptllm_chain.agree import GroundedPrompt
from adaptllm_chain.errors import InvalidInputError, UnsupportedHardwareError
from adaptllm_chain.llms import LocalLLM
from adaptllm_chain.llms.devices import check_load_in, pick_device
from adaptllm_chain.llms.loading import load_base
from adaptllm_chain.prompts import PromptTemplates
from adaptllm_chain.records import Question
from tests.conftest import ROOT
from tests.tiny_models import byte_level_tokenizer, tiny_llama
from training.contradictions import refuse_for_machine
from training.labelling import Evidence, adaptive_rows, never_retrieve_row
from training.processes import Processes
from training.recipe import Recipe
from training.sft import main, mean_loss, run

RECIPES = sorted((ROOT / "training" / "configs").glob("*.yaml"))
# What depends on the machine or on the size of the base; every other value of a recipe is used as it stands.
FOR_A_TINY_BASE = {"device": "cpu", "load_in": None, "dtype": "float32", "batch_size": 8, "micro_batch_size": 4}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base, and rows of every kind, as Algorithm 1 and AGREE's data script write them."""
    folder = tmp_path_factory.mktemp("tiny")
    tokenizer = byte_level_tokenizer()
    model = tiny_llama(tokenizer)
    model.config.max_position_embeddings = 2048  # as many as the longest recipe wants
    model.save_pretrained(folder / "base")
    tokenizer.save_pretrained(folder / "base")
    rows = []
    for number in range(32):
        question = Question(
            id=str(number), text=f"who built mill {number}?", answers=("Ada",), gold_passage=Document("Ada built it.")
        )
        evidence = Evidence("Ada" if number % 4 == 0 else "no idea")
        rows += adaptive_rows(question, evidence, PromptTemplates())
        rows.append(never_retrieve_row(question, evidence, PromptTemplates()))
        prompt = GroundedPrompt().render(question.text, [Document("Ada built it.")])
        grounded = {"prompt": prompt, "completion": "Ada built it [1].", "kind": "grounded", "passages": 1}
        rows.append(grounded | {"question_id": question.id})
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_every_recipe_trains_two_steps_and_its_adapter_answers(path: Path, tiny: Path, tmp_path: Path) -> None:
    fields = FOR_A_TINY_BASE | {
        "base": str(tiny / "base"), "rows": tiny / "rows.jsonl", "out": tmp_path / "out", "max_steps": 2,
    }  # fmt: skip
    recipe = Recipe.load(path, fields)
    result = run(recipe)
    assert result["steps"] == 2
    assert set(result["rows"]) == set(recipe.kinds)
    llm = LocalLLM.from_pretrained(tiny / "base", adapter=recipe.out, max_new_tokens=4, device="cpu")
    assert llm.format == recipe.format
    assert set(llm.prompt_spec.instructions) == set(recipe.kinds)
    assert isinstance(llm.invoke("Answer the question Q. Q: who?"), str)


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_every_value_of_a_recipe_says_where_it_comes_from(path: Path) -> None:
    for line in path.read_text().splitlines():
        field = re.match(r"(\w+):", line)
        if field and field[1] not in {"rows", "out"}:
            assert re.search(r"\s# \S+", line), line


def test_the_recipes_are_the_papers() -> None:
    names = {path.stem for path in RECIPES}
    assert names >= {f"llama2-7b-{data}-{mode}" for data in ("nq", "squad") for mode in ("adaptive", "never", "always")}
    for path in RECIPES:
        recipe = Recipe.load(path, {})
        if not path.stem.startswith("llama2-7b"):
            continue
        assert recipe.base == "meta-llama/Llama-2-7b-chat-hf"
        values = (recipe.batch_size, recipe.epochs, recipe.learning_rate, recipe.schedule, recipe.max_length)
        assert values == (128, 3, 3e-4, "constant", 512)
        assert (recipe.lora_r, recipe.lora_alpha, recipe.lora_dropout) == (8, 16, 0.05)
        assert (recipe.lora_targets, recipe.format, recipe.load_in) == (("q_proj", "v_proj"), "alpaca", "8bit")
        kinds = {"adaptive": ("parametric", "context"), "never": ("closed_book",), "always": ("context",)}
        assert recipe.kinds == kinds[path.stem.rsplit("-", 1)[1]]


def test_the_recipe_of_agree_is_the_papers() -> None:
    recipe = Recipe.load(ROOT / "training" / "configs" / "llama2-13b-agree.yaml", {})
    assert (recipe.lora_r, recipe.learning_rate, recipe.kinds) == (32, 1e-5, ("grounded",))


@pytest.mark.parametrize(
    ("fields", "error", "way_out"),
    [
        ({"batch_size": 12, "micro_batch_size": 8}, "multiple", "--micro-batch-size 6"),
        ({"known_share": 0.5, "kinds": ["context"]}, "balances the parametric", "--known-share null"),
        ({"max_rows": {"closed_book": 5}}, "max_rows names closed_book", "--kinds parametric,context,closed_book"),
        ({"warmup_steps": 10}, "no warm-up", "--schedule constant_with_warmup"),
        ({"ret_token": "added", "kinds": ["context"]}, "would learn nothing", "--ret-token text"),
        ({"load_in": "8bit", "base": "embedded"}, "quantised already", "--load-in null"),
        ({"load_in": "4bit", "base": "a/b.gguf"}, "quantised already", "--load-in null"),
        ({"dtype": "float16", "device": "cpu"}, "float16", "--dtype float32"),
        ({"kinds": ["context", "context"]}, "twice", "--kinds context"),
    ],
    ids=str,
)
def test_contradictory_fields_are_refused_with_the_way_out(fields: dict[str, Any], error: str, way_out: str) -> None:
    with pytest.raises(InvalidInputError, match=error) as caught:
        Recipe(**{"rows": "r", "out": "o"} | fields)
    assert caught.value.expected
    assert way_out in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("fields", "processes", "error", "way_out"),
    [
        ({"batch_size": 6, "micro_batch_size": 3}, Processes(count=4), "4 processes", "--batch-size 12"),
        ({"batch_size": 8, "micro_batch_size": 4}, Processes(count=4), "4 processes", "--micro-batch-size 2"),
        ({"device": "cuda:1"}, Processes(count=2), "would all use", "--device auto"),
        ({"load_in": "8bit"}, Processes(count=2, sharded=True), "cannot shard weights of 8 bits", "ddp.yaml"),
        ({"load_in": "4bit"}, Processes(count=2, sharded=True), "cannot shard weights of 4 bits", "--load-in null"),
        ({"ret_token": "added"}, Processes(count=2, sharded=True), "single rows", "--ret-token text"),
    ],
    ids=str,
)
def test_what_does_not_suit_the_processes_is_refused(
    fields: dict[str, Any], processes: Processes, error: str, way_out: str
) -> None:
    with pytest.raises(InvalidInputError, match=error) as caught:
        refuse_for_machine(Recipe(**{"rows": "r", "out": "o"} | fields), processes)
    assert caught.value.expected
    assert way_out in (caught.value.hint or "")


def test_eight_bits_without_a_gpu_are_refused_before_the_rows_are_read_t7(tmp_path: Path, capsys) -> None:
    path = ROOT / "training" / "configs" / "llama2-7b-nq-adaptive.yaml"
    assert main(["--config", str(path), "--out", str(tmp_path / "out"), "--device", "cpu"]) == 2
    error = capsys.readouterr().err
    assert "--load-in null" in error
    assert "algorithm1" not in error  # nothing about rows that are not there
    assert not (tmp_path / "out").exists()


def test_one_process_that_sees_several_gpus_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    recipe = Recipe(rows="r", out="o")
    with pytest.raises(InvalidInputError, match=r"4 GPUs") as caught:
        refuse_for_machine(recipe, Processes())
    assert "accelerate launch --config_file training/accelerate/ddp.yaml --num_processes 4" in caught.value.hint
    refuse_for_machine(recipe, Processes(count=4))
    refuse_for_machine(recipe.model_copy(update={"device": "cpu"}), Processes())


def test_a_process_of_several_uses_its_own_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert pick_device("auto") == "cuda"
    monkeypatch.setenv("LOCAL_RANK", "3")
    assert pick_device("auto") == "cuda:3"
    assert pick_device("cuda:1") == "cuda:1"
    monkeypatch.setenv("ACCELERATE_USE_CPU", "True")
    assert pick_device("auto") == "cpu"


def test_load_in_is_checked_for_any_caller() -> None:
    with pytest.raises(InvalidInputError, match="GGUF"):
        load_base("embedded", load_in="8bit", device="cuda")
    with pytest.raises(UnsupportedHardwareError, match="NVIDIA GPU"):
        check_load_in("4bit", "mps")
    with pytest.raises(InvalidInputError, match="3bit"):
        check_load_in("3bit", "cuda")


def test_float16_on_a_machine_without_a_gpu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InvalidInputError, match="float16"):
        refuse_for_machine(Recipe(rows="r", out="o", dtype="float16"), Processes())


def test_max_steps_wins_and_says_so(tiny: Path, tmp_path: Path, capsys) -> None:
    fields = FOR_A_TINY_BASE | {"base": str(tiny / "base"), "rows": str(tiny / "rows.jsonl"),
                                "out": str(tmp_path / "out"), "format": "chat", "epochs": 5}  # fmt: skip
    (tmp_path / "r.yaml").write_text(yaml.safe_dump(fields))
    assert main(["--config", str(tmp_path / "r.yaml"), "--max-steps", "1"]) == 0
    captured = capsys.readouterr()
    assert "max_steps=1 wins over epochs=5" in captured.err
    assert "\n1 steps on " in captured.out


def test_the_mean_loss_of_a_resumed_run_counts_every_step_once() -> None:
    history = [{"step": 5, "loss": 4.0}, {"step": 10, "loss": 2.0}, {"step": 12, "loss": 1.0}, {"step": 12}]
    assert mean_loss(history, otherwise=9.0) == pytest.approx((5 * 4 + 5 * 2 + 2 * 1) / 12)
    assert mean_loss([{"step": 2}], otherwise=9.0) == 9.0


@pytest.mark.parametrize("name", ["ddp", "fsdp"])
def test_accelerate_reads_our_configurations(name: str) -> None:
    from accelerate.commands.config.config_args import load_config_from_file

    path = ROOT / "training" / "accelerate" / f"{name}.yaml"
    config = load_config_from_file(str(path))  # refuses keys that it does not know
    assert config.num_processes == 2
    assert config.mixed_precision == "no"
    command = re.search(r"--config_file (\S+)", path.read_text())
    assert ROOT / command[1] == path
    if name == "fsdp":
        assert config.fsdp_config["fsdp_version"] == 2
        assert config.fsdp_config["fsdp_transformer_layer_cls_to_wrap"] in {
            type(module).__name__ for module in tiny_llama(byte_level_tokenizer()).modules()
        }


def test_two_processes_train_the_adapter_that_one_does(tiny: Path, tmp_path: Path) -> None:
    """Real processes with gloo: the same global batches, averaged gradients, one set of files."""
    fields = FOR_A_TINY_BASE | {
        "base": str(tiny / "base"), "rows": str(tiny / "rows.jsonl"), "format": "chat", "lora_dropout": 0.0,
        "max_steps": 5, "learning_rate": 0.01, "micro_batch_size": 2,
    }  # fmt: skip
    outs = {count: tmp_path / f"out-{count}" for count in (1, 2)}
    run(Recipe(**fields | {"out": outs[1]}))
    (tmp_path / "r.yaml").write_text(yaml.safe_dump(fields | {"out": str(outs[2])}))
    launch = "accelerate.commands.launch --multi_gpu --num_processes 2 --num_machines 1 --mixed_precision no"
    port = ["--dynamo_backend", "no", "--main_process_port", "0"]  # any free one
    command = [
        sys.executable,
        "-m",
        *launch.split(),
        *port,
        str(ROOT / "training" / "sft.py"),
        "--config",
        str(tmp_path / "r.yaml"),
    ]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("5 steps") == 1
    results = {count: json.loads((out / "result.json").read_text()) for count, out in outs.items()}
    assert results[2]["processes"] == 2
    for key in ("rows", "steps", "rows_too_long"):
        assert results[1][key] == results[2][key]
    assert results[2]["losses"][-1][1] == pytest.approx(results[1]["losses"][-1][1], rel=1e-3)
    names = [sorted(file.name for file in out.iterdir()) for out in outs.values()]
    assert names[0] == names[1]
    one, two = (load_file(out / "adapter_model.safetensors") for out in outs.values())
    initial = {name: weight for name, weight in one.items() if "lora_B" in name}
    assert all(weight.abs().max() > 1e-3 for weight in initial.values())  # it did learn
    for name, weight in one.items():
        assert torch.allclose(weight, two[name], atol=2e-5), name
