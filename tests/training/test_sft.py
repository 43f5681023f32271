"""SFT: which tokens carry the loss, balance, split, resuming."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from hypothesis import given
from hypothesis import strategies as st

from adaptllm_chain.errors import DataFileError, InvalidInputError
from adaptllm_chain.llms.encoding import PromptEncoder
from tests.conftest import ROOT
from tests.tiny_models import byte_level_tokenizer, sentencepiece_tokenizer, tiny_llama
from training.adapter_folder import last_checkpoint
from training.completion_trainer import BucketedSampler, shared_beginning
from training.recipe import Recipe
from training.rows import _balance, encode_rows, read_rows, select_rows, split_rows, within_length
from training.sft import main
from training.trainer import build_trainer

ASK = "Answer the question Q. If you need help answer <RET> to get the context. Q: "
QUICK = {"batch_size": 4, "micro_batch_size": 2, "device": "cpu", "epochs": 2, "learning_rate": 0.01}


def recipe(tmp_path: Path, **fields: Any) -> Recipe:
    return Recipe(**{"rows": tmp_path / "rows.jsonl", "out": tmp_path / "out", **QUICK, **fields})


def row(prompt: str, completion: str, **fields: str) -> dict[str, str]:
    return {
        "prompt": prompt,
        "completion": completion,
        "kind": "parametric",
        "label": "",
        "question_id": prompt,
        **fields,
    }


def encoded(tokenizer: Any, *pairs: tuple[str, str], prompt_format: Any = "plain") -> list[dict[str, Any]]:
    return encode_rows([row(*pair) for pair in pairs], PromptEncoder(tokenizer, prompt_format, "<RET>"))


def labels_of(trainer: Any) -> list[list[int]]:
    return [[label for label in labels if label != -100] for labels in trainer.train_dataset["labels"]]


@pytest.mark.parametrize("prompt_format", ["alpaca", "plain", "chat"])
@pytest.mark.parametrize("family", [byte_level_tokenizer, sentencepiece_tokenizer])
def test_the_loss_is_on_the_completion_and_its_end_alone_t1_t2(family, prompt_format: str, tmp_path: Path) -> None:
    tokenizer = family()
    if prompt_format == "chat" and tokenizer.chat_template is None:
        pytest.skip("this tokenizer has no chat template, so there is no such format")
    tokenizer.pad_token = tokenizer.eos_token  # T2: pad token = end token
    pairs = (ASK + "who built the mill?", "<RET>"), (ASK + "capital of France?", "Paris")
    rows = encoded(tokenizer, *pairs, prompt_format=prompt_format)
    trainer = build_trainer(tiny_llama(tokenizer), tokenizer, rows, recipe(tmp_path, format=prompt_format))
    for wanted, labels in zip(("<RET>", "Paris"), labels_of(trainer), strict=True):
        assert labels[-1] == tokenizer.eos_token_id
        # Decoded after the prompt's last token: alone, SentencePiece drops the space that leads a text.
        assert tokenizer.decode(labels[:-1]).strip() == wanted
        assert labels.count(tokenizer.eos_token_id) == 1
    # The batch that reaches the model still has the end token unmasked, though it is the pad token too.
    batch = trainer.data_collator([trainer.train_dataset[0], trainer.train_dataset[1]])
    for labels in batch["labels"].tolist():
        assert [label for label in labels if label != -100][-1] == tokenizer.eos_token_id


@pytest.mark.parametrize("prompt_format", ["alpaca", "plain", "chat"])
@pytest.mark.parametrize("family", [byte_level_tokenizer, sentencepiece_tokenizer])
def test_training_reads_the_prompt_that_inference_writes(family, prompt_format: str, tmp_path: Path) -> None:
    tokenizer = family()
    if prompt_format == "chat" and tokenizer.chat_template is None:
        pytest.skip("this tokenizer has no chat template, so there is no such format")
    rows = encoded(tokenizer, (ASK + "who?", "<RET>"), prompt_format=prompt_format)
    trainer = build_trainer(tiny_llama(tokenizer), tokenizer, rows, recipe(tmp_path))
    asked = PromptEncoder(tokenizer, prompt_format, "<RET>").encode(ASK + "who?")
    assert trainer.train_dataset[0]["input_ids"] == [*asked.ids, *asked.marker_ids, tokenizer.eos_token_id]


def test_prompt_completion_rows_train_without_a_formatting_function_t3(tmp_path: Path) -> None:
    tokenizer = byte_level_tokenizer()
    rows = encoded(tokenizer, *((f"Q: {n}", "<RET>") for n in range(8)))
    trainer = build_trainer(tiny_llama(tokenizer), tokenizer, rows, recipe(tmp_path, epochs=25))
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert losses[-1] < 0.5 * losses[0]


def test_the_loss_equals_that_of_the_plain_model(tmp_path: Path) -> None:
    tokenizer = byte_level_tokenizer(pad=True)
    rows = encoded(tokenizer, ("Q: who?", "<RET>"), ("Q: and who built it?", "Paris"))
    trainer = build_trainer(tiny_llama(tokenizer), tokenizer, rows, recipe(tmp_path, lora_dropout=0.0))
    batch = trainer.data_collator([trainer.train_dataset[0], trainer.train_dataset[1]])
    ours = trainer.compute_loss(trainer.model, dict(batch))
    plain = trainer.model(**batch).loss
    assert torch.allclose(ours, plain, atol=1e-5)
    # In an accumulated step the sum is divided by all tokens of the step.
    counted = (batch["labels"] != -100).sum()
    assert torch.allclose(trainer.compute_loss(trainer.model, dict(batch), num_items_in_batch=2 * counted), plain / 2)


@pytest.mark.parametrize("rows_alike", [1, 3])
def test_reading_the_shared_beginning_once_changes_neither_loss_nor_gradient(tmp_path: Path, rows_alike: int) -> None:
    tokenizer = byte_level_tokenizer(pad=True)
    pairs = ((f"{ASK}who is {n * 'number '}{n}?", "Paris" * n) for n in range(1, 1 + rows_alike))
    rows = encoded(tokenizer, *pairs)
    trainer = build_trainer(tiny_llama(tokenizer), tokenizer, rows, recipe(tmp_path, lora_dropout=0.0))
    for name, weight in trainer.model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight)  # it starts at zero, and then half of the gradients are
    batch = trainer.data_collator([trainer.train_dataset[at] for at in range(rows_alike)])
    assert shared_beginning(batch["input_ids"], batch["labels"]) > 20

    def gradients(loss: torch.Tensor) -> dict[str, torch.Tensor]:
        trainer.model.zero_grad()
        loss.backward()
        return {name: p.grad.clone() for name, p in trainer.model.named_parameters() if p.grad is not None}

    ours = trainer.compute_loss(trainer.model, dict(batch))
    plain = trainer.model(**batch).loss
    assert torch.allclose(ours, plain, atol=1e-5)
    expected = gradients(plain)
    for name, gradient in gradients(ours).items():
        assert torch.allclose(gradient, expected[name], atol=1e-5), name


def test_the_shared_beginning_ends_before_the_token_that_predicts_the_completion() -> None:
    ids = torch.tensor([[1, 2, 3, 4, 5], [1, 2, 3, 4, 9]])
    first = torch.tensor([[-100, -100, -100, 4, 5], [-100, -100, -100, 4, 9]])
    assert shared_beginning(ids, first) == 2  # the third token predicts the fourth
    assert shared_beginning(ids, torch.full_like(ids, -100)) == 4
    assert shared_beginning(torch.tensor([[1, 2], [3, 2]]), torch.full((2, 2), -100)) == 0


@given(st.lists(st.integers(1, 30), min_size=1, max_size=50), st.integers(1, 9), st.integers(0, 3))
def test_every_epoch_holds_every_row_once(lengths: list[int], batch_size: int, epoch: int) -> None:
    sampler = BucketedSampler(lengths, batch_size, seed=1)
    sampler.set_epoch(epoch)
    order = list(sampler)
    assert sorted(order) == list(range(len(lengths)))
    assert order == list(sampler)  # a resumed run sees the same order
    for start in range(0, len(order), batch_size):
        inside = [lengths[index] for index in order[start : start + batch_size]]
        assert inside == sorted(inside)


@given(st.integers(1, 9), st.integers(1, 60), st.floats(0.05, 0.9))
def test_balance_reaches_the_share_and_drops_nothing(known: int, unknown: int, share: float) -> None:
    import random

    rows = [row(f"k{n}", "a", label="known") for n in range(known)]
    rows += [row(f"u{n}", "<RET>", label="unknown") for n in range(unknown)]
    balanced = _balance(rows, share, random.Random(0))
    times = Counter(r["prompt"] for r in balanced)
    assert all(times[f"u{n}"] == 1 for n in range(unknown))
    of_known = [times[f"k{n}"] for n in range(known)]
    assert min(of_known) >= 1
    assert max(of_known) - min(of_known) <= 1
    reached = sum(of_known) / len(balanced)
    assert reached >= share - 1 / len(balanced)
    if reached > share + 1 / len(balanced):  # only where no row was repeated
        assert max(of_known) == 1


@given(st.lists(st.sampled_from([0.125, 0.25, 0.5, 0.875, 1.0]), min_size=1, max_size=40), st.integers(0, 9))
def test_a_weight_is_how_often_a_row_stands(weights: list[float], seed: int) -> None:
    import random

    rows = [row(f"k{n}", "a", label="known") | {"weight": weight} for n, weight in enumerate(weights)]
    drawn = _balance(rows, None, random.Random(seed))
    assert abs(len(drawn) - sum(weights)) < 1 + 1e-6
    assert all(Counter(r["prompt"] for r in drawn)[r["prompt"]] <= 1 for r in rows)
    assert all(r in drawn for r in rows if r["weight"] == 1.0)


def test_balance_without_a_known_row_says_so(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="0 known"):
        select_rows([row("u", "<RET>", label="unknown")], recipe(tmp_path, known_share=0.5, kinds=["parametric"]))


def test_no_question_stands_on_both_sides() -> None:
    rows = [row(f"p{n}", "a", question_id=str(n // 2)) for n in range(400)]
    train, dev = split_rows(rows, 0.2, seed=0)
    assert len(train) + len(dev) == 400
    assert not {r["question_id"] for r in train} & {r["question_id"] for r in dev}
    assert 40 < len(dev) < 120
    # A question keeps its side when others come.
    assert split_rows(rows[:100], 0.2, seed=0)[1] == [r for r in dev if r in rows[:100]]


def test_paper_defaults() -> None:
    defaults = Recipe(rows=("r",), out="o")
    assert (defaults.epochs, defaults.learning_rate, defaults.schedule, defaults.batch_size) == (
        3,
        3e-4,
        "constant",
        128,
    )
    assert (defaults.lora_r, defaults.lora_alpha, defaults.lora_dropout) == (8, 16, 0.05)
    assert (defaults.lora_targets, defaults.max_length) == (("q_proj", "v_proj"), 512)


@pytest.mark.parametrize(
    ("override", "message"),
    [("learning_rte: 1", "learning_rte"), ("epochs: -1", "epochs"), ("batch_size: 5\nmicro_batch_size: 2", "multiple"),
     ("- a list", "list"), ("format: chatt", "format")],
)  # fmt: skip
def test_a_wrong_recipe_is_a_clear_error(tmp_path: Path, override: str, message: str) -> None:
    path = tmp_path / "r.yaml"
    path.write_text(override if override.startswith("-") else f"rows: r\nout: o\n{override}\n")
    with pytest.raises(InvalidInputError, match=message):
        Recipe.load(path, {})


@pytest.mark.parametrize("broken", [b'{"prompt": "p"}', b'{"prompt": "\xff", "completion": "c"}', b"[]", b""])
def test_a_broken_row_is_named_by_line(tmp_path: Path, broken: bytes) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"prompt": "p", "completion": "c"}\n' + broken + b"\n")
    with pytest.raises(DataFileError, match="line 2"):
        read_rows([path])


def test_the_hash_of_the_rows_is_that_of_the_files_one_after_another(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a.jsonl", "b.jsonl")]
    for file in files:
        file.write_bytes(b'{"prompt": "%s", "completion": "\xc3\xa9"}\r\n' % file.stem.encode() * 2)
    rows, digest = read_rows(files)
    assert digest == hashlib.sha256(files[0].read_bytes() + files[1].read_bytes()).hexdigest()
    assert [(r["prompt"], r["completion"], r["question_id"]) for r in rows] == [
        ("a", "é", "1"), ("a", "é", "2"), ("b", "é", "1"), ("b", "é", "2"),
    ]  # fmt: skip


@pytest.fixture
def tiny_run(tmp_path: Path) -> tuple[Path, list[str]]:
    """A base in a folder, rows of both classes, and a command that trains on them."""
    tokenizer = byte_level_tokenizer()
    tiny_llama(tokenizer).save_pretrained(tmp_path / "base")
    tokenizer.save_pretrained(tmp_path / "base")
    rows = [row(f"{ASK}who is number {n}?", "<RET>", label="unknown") for n in range(90)]
    rows += [row(f"{ASK}what is {n}?", "Paris", label="known") for n in range(10)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    fields = {"base": str(tmp_path / "base"), "rows": str(tmp_path / "rows.jsonl"), "out": str(tmp_path / "out"),
              "format": "chat", "known_share": 0.4, "save_steps": 2, "kinds": ["parametric"], **QUICK}  # fmt: skip
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(fields))
    return tmp_path, [sys.executable, str(ROOT / "training" / "sft.py"), "--config", str(tmp_path / "recipe.yaml")]


def test_another_recipe_in_the_same_folder_is_refused(tiny_run, capsys) -> None:
    folder, command = tiny_run
    (folder / "out").mkdir()
    recipe_file = folder / "out" / "recipe.yaml"
    recipe_file.write_text("epochs: 7\n")
    assert main(command[2:]) == 2
    assert "epochs: 7 -> 2" in capsys.readouterr().err


def test_a_checkpoint_that_was_cut_off_is_passed_over_t8(tmp_path: Path) -> None:
    names = ("adapter_model.safetensors", "optimizer.pt", "scheduler.pt", "trainer_state.json")
    for step in (2, 10):
        folder = tmp_path / f"checkpoint-{step}"
        folder.mkdir()
        for name in names:
            (folder / name).write_text("{}")
    assert last_checkpoint(tmp_path).endswith("checkpoint-10")
    (tmp_path / "checkpoint-10" / "trainer_state.json").write_text('{"epoch": 0.')
    assert last_checkpoint(tmp_path).endswith("checkpoint-2")
    for name in names:
        (tmp_path / "checkpoint-2" / name).unlink()
        assert last_checkpoint(tmp_path) is None
        (tmp_path / "checkpoint-2" / name).write_text("{}")
    assert last_checkpoint(tmp_path / "none") is None


@pytest.mark.parametrize(
    ("override", "message"),
    [
        (["--lora-targets", "[q_proj, v_prj]"], "v_prj"),
        (["--max-length", "8"], "max_length=8"),
        (["--max-rows", "{parametric: -1}"], "max_rows"),
        (["--seed", "["], "--seed"),
        (["--schedule", "constnt"], "schedule"),
    ],
)
def test_a_start_that_fails_does_not_claim_the_folder(tiny_run, capsys, override: list[str], message: str) -> None:
    folder, command = tiny_run
    assert main([*command[2:], *override]) == 2
    assert message in capsys.readouterr().err
    assert not (folder / "out" / "recipe.yaml").exists()


def test_a_kind_without_rows_is_refused(tiny_run, capsys) -> None:
    _, command = tiny_run
    assert main([*command[2:], "--kinds", "parametric,closed_book"]) == 2
    assert "--kinds parametric" in capsys.readouterr().err


def test_rows_without_a_label_are_labelled_by_what_they_ask_for(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"prompt": "p", "completion": "<RET>"}\n{"prompt": "q", "completion": "c"}\n')
    assert [r["label"] for r in read_rows([path])[0]] == ["unknown", "known"]


def test_a_row_of_just_the_maximum_length_is_kept_whole(tmp_path: Path) -> None:
    tokenizer = byte_level_tokenizer()
    rows = encoded(tokenizer, ("Q: who?", "Ada"))
    length = len(tokenizer("Q: who? Ada").input_ids) + 1  # the end token
    assert within_length(rows, length) == [True]
    assert within_length(rows, length - 1) == [False]
    trainer = build_trainer(tiny_llama(tokenizer), tokenizer, rows, recipe(tmp_path, max_length=length))
    assert trainer.train_dataset[0]["labels"][-1] == tokenizer.eos_token_id


@pytest.mark.parametrize(("script", "options"), [("sft", Recipe.model_fields), ("algorithm1", ["data", "base_url"])])
def test_help_is_instant_and_names_every_field(script: str, options: Iterable[str]) -> None:
    out = subprocess.run(
        [sys.executable, "-X", "importtime", str(ROOT / "training" / f"{script}.py"), "--help"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert all(f"--{name.replace('_', '-')}" in out.stdout for name in options)
    assert "torch" not in {line.rsplit("|", 1)[-1].strip() for line in out.stderr.splitlines()}


@pytest.mark.parametrize("field", [{"logits_scaling": 8.0}, {"final_logit_softcapping": 3.0}])
def test_a_model_that_reworks_its_logits_goes_through_its_own_pass(tmp_path: Path, monkeypatch, field) -> None:
    tokenizer = byte_level_tokenizer(pad=True)
    rows = encoded(tokenizer, ("Q: who?", "<RET>"))
    trainer = build_trainer(tiny_llama(tokenizer), tokenizer, rows, recipe(tmp_path, lora_dropout=0.0))
    batch = trainer.data_collator([trainer.train_dataset[0]])
    plain = trainer.compute_loss(trainer.model, dict(batch))
    monkeypatch.setattr("training.completion_trainer._hidden_states", None)  # the shortcut must not be taken
    for name, value in field.items():
        setattr(trainer.model.config, name, value)
    assert torch.isfinite(trainer.compute_loss(trainer.model, dict(batch)))
    assert torch.isfinite(plain)


def test_a_question_under_two_identifiers_is_on_one_side_alone() -> None:
    rows = [row(f"{ASK}{n}", "<RET>", question_id=f"{file}:{n}") for file in "ab" for n in range(50)]
    train, dev = split_rows(rows, 0.3, seed=0)
    assert dev
    assert not {r["prompt"] for r in train} & {r["prompt"] for r in dev}


@pytest.mark.parametrize(
    "wrong",
    [
        {"weight": -1},
        {"weight": "much"},
        {"weight": float("nan")},
        {"label": "foo"},
        {"kind": ["x"]},
        {"kind": "closed"},
        {"completion": "<RET>", "label": "known"},
    ],
)
def test_a_row_that_contradicts_itself_is_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"prompt": "p", "completion": "c", **wrong}) + "\n")
    with pytest.raises(DataFileError, match="line 1"):
        read_rows([path])


def test_a_folder_that_is_used_for_something_else_is_refused(tiny_run, capsys) -> None:
    folder, command = tiny_run
    (folder / "out").mkdir()
    (folder / "out" / "README.md").write_text("MY PROJECT")
    assert main(command[2:]) == 2
    assert "something else" in capsys.readouterr().err
    assert (folder / "out" / "README.md").read_text() == "MY PROJECT"


def test_another_base_under_the_same_path_is_refused(tiny_run, capsys) -> None:
    folder, command = tiny_run
    assert main([*command[2:], "--max-steps", "2"]) == 0
    (folder / "out" / "result.json").unlink()
    tokenizer = byte_level_tokenizer()
    torch.manual_seed(7)
    base = tiny_llama(tokenizer)
    with torch.no_grad():
        base.lm_head.weight.add_(0.1)
    base.save_pretrained(folder / "base")
    assert main([*command[2:], "--max-steps", "2"]) == 2
    assert "base_weights" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("override", "message"),
    [(["--max-length", "100000"], "max_length=100000"), (["--device", "nonsense"], "device='nonsense'"),
     (["--epochs", ".inf"], "epochs"), (["--seed", "-1"], "seed"), (["--lora-targets", "[]"], "lora_targets")],
)  # fmt: skip
def test_values_that_cannot_be_used_are_refused(tiny_run, capsys, override: list[str], message: str) -> None:
    _, command = tiny_run
    assert main([*command[2:], *override]) == 2
    assert message in capsys.readouterr().err
