"""What a run leaves beside its adapter: the curves as a picture, and a card that a hub and a reader can use."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from huggingface_hub import ModelCard

from adaptllm_chain.llms.embedded import EMBEDDED_BASE_NAME
from adaptllm_chain.llms.encoding import PromptEncoder
from adaptllm_chain.prompts import PromptSpec
from tests.conftest import ROOT
from tests.tiny_models import byte_level_tokenizer, tiny_llama
from training.adapter_folder import versions
from training.curves import draw_curves
from training.model_card import TAGS, model_card
from training.recipe import Recipe
from training.sft import run

LOSSES = [[5, 4.2], [10, 3.1], [15, 1.9]]
RATES = [[5, 5e-4], [10, 1e-3], [15, 9e-4]]
RESULT: dict[str, Any] = {
    "rows": {"context": 1598, "parametric": 5121},
    "rows_too_long": 2,
    "steps": 235,
    "train_loss": 1.118,
    "train_seconds": 2748.7,
    "versions": {"python": "3.11.9", "torch": "2.13.0"},
    "dev": {"questions": 395, "known": 17, "auc": None, "ret_share": 0.934, "ret_probability_quantiles": [0.1, 0.9]},
}
HASH = "1a8a" * 16


def card_of(recipe_fields: dict[str, Any], result: dict[str, Any] = RESULT, **options: Any) -> ModelCard:
    recipe = Recipe(**{"rows": "/home/me/secret/rows.jsonl", "out": "/home/me/runs/mine", **recipe_fields})
    base_name = EMBEDDED_BASE_NAME if recipe.base == "embedded" else recipe.base
    spec = PromptSpec(format=recipe.format, base_model=base_name, trained_on=recipe.kinds)
    encoder = PromptEncoder(byte_level_tokenizer(), recipe.format, "<RET>")
    return ModelCard(model_card(recipe, spec, result, encoder=encoder, rows_sha256=HASH, **options))


def test_the_header_is_what_a_hub_reads() -> None:
    data = card_of({"base": "embedded", "format": "chat"}, license_id="cc-by-sa-3.0").data
    assert data.base_model == EMBEDDED_BASE_NAME
    assert (data.library_name, data.pipeline_tag, data.license) == ("peft", "text-generation", "cc-by-sa-3.0")
    assert data.tags == list(TAGS)
    assert data.to_dict()["base_model_relation"] == "adapter"


def test_what_is_not_known_is_left_out_of_the_header(tmp_path: Path) -> None:
    data = card_of({"base": str(tmp_path), "format": "chat"}).data
    assert data.license is None
    assert data.base_model is None, "a folder on this disk is no link"
    assert "base_model_relation" not in data.to_dict()


@pytest.mark.parametrize("prompt_format", ["chat", "alpaca", "plain"])
def test_the_prompts_are_written_out(prompt_format: Any) -> None:
    text = card_of({"base": "embedded", "format": prompt_format, "kinds": ["parametric", "context"]}).text
    blocks = re.findall(r"```text\n(.*?)\n```", text, re.DOTALL)
    encoder = PromptEncoder(byte_level_tokenizer(), prompt_format, "<RET>")
    templates = PromptSpec().templates
    framed = [encoder.frame(template) for template in (templates.parametric, templates.context)]
    assert blocks == [prompt.text + prompt.lead for prompt in framed]


def test_the_table_holds_every_setting_that_counts_and_no_path() -> None:
    card = card_of({"base": "embedded", "format": "chat", "known_share": 0.33})
    table = dict(re.findall(r"^\| (.*?) \| (.*) \|$", card.text, re.MULTILINE))
    assert table["learning rate"] == "0.0003"
    assert table["known share"] == "0.33"
    assert table["load in"] == "-"
    assert table["lora targets"] == "q_proj, v_proj"
    assert table["rows, SHA-256"] == f"`{HASH}`"
    assert table["rows"] == "1,598 context, 5,121 parametric; 2 longer than 512 tokens left out"
    assert table["versions"] == "python 3.11.9, torch 2.13.0"
    missing = {name.replace("_", " ") for name in Recipe.model_fields} - set(table)
    assert missing == {"out", "device", "save steps"}
    assert "/home/me" not in card.content


def test_the_figures_are_those_of_the_result() -> None:
    text = card_of({"base": "embedded", "format": "chat"}).text
    assert "| questions | 395 |" in text
    assert "| share that asks for retrieval | 0.934 |" in text
    assert "| P(`<RET>`): least, 10 %, 25 %, 50 %, 75 %, 90 %, most | 0.1, 0.9 |" in text
    assert "![" in text
    assert "(curves.png)" in text
    assert "few questions" not in text
    none = card_of({"base": "embedded", "format": "chat"}, {**RESULT, "dev": {"questions": 0}}).text
    assert "no decision was measured" in none
    assert "few questions" in none
    # Figures that come later are shown under their own names.
    more = {"questions": 3, "accuracy_of_direct": {"exact": 0.25, "f1": None}}
    assert "| accuracy of direct | exact 0.25, f1 - |" in card_of({"format": "chat"}, {**RESULT, "dev": more}).text


def test_the_same_curves_are_the_same_bytes(tmp_path: Path) -> None:
    one = draw_curves(tmp_path / "one.png", LOSSES, RATES, title="mine").read_bytes()
    assert one == draw_curves(tmp_path / "two.png", LOSSES, RATES, title="mine").read_bytes()
    assert one.startswith(b"\x89PNG")
    assert b"tEXt" not in one, "neither a date nor a version"
    assert (
        one != draw_curves(tmp_path / "two.png", LOSSES, [[step, 1e-3] for step, _ in RATES], title="mine").read_bytes()
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.png", "two.png"]


def test_a_run_of_one_point_or_none_is_drawn_too(tmp_path: Path) -> None:
    for points in ([], LOSSES[:1]):
        assert draw_curves(tmp_path / "curves.png", points, points, title="short").stat().st_size > 5000


def test_without_matplotlib_the_way_out_is_named_before_training() -> None:
    code = """
        import sys
        sys.modules["matplotlib"] = None
        from adaptllm_chain.errors import MissingExtraError
        try:
            import training.curves
        except MissingExtraError as error:
            print(error)
    """
    code = "\n".join(line.removeprefix(8 * " ") for line in code.splitlines())
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert "pip install 'adaptllm-chain[train]'" in ran.stdout
    assert "'matplotlib'" in ran.stdout


def test_versions_name_ours() -> None:
    assert {"python", "adaptllm-chain", "torch", "trl"} <= set(versions())


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a short run, next to its base."""
    folder = tmp_path_factory.mktemp("finished")
    tokenizer = byte_level_tokenizer()
    tiny_llama(tokenizer).save_pretrained(folder / "base")
    tokenizer.save_pretrained(folder / "base")
    ask, read = PromptSpec().templates.parametric, PromptSpec().templates.context
    rows = [
        {"prompt": ask.format(question=f"who is {n}?"), "completion": "<RET>" if n % 2 else "Ada", "kind": "parametric",
         "label": "unknown" if n % 2 else "known", "question_id": str(n)}
        for n in range(40)
    ]  # fmt: skip
    rows += [
        {"prompt": read.format(question=f"who is {n}?", context="Ada."), "completion": "Ada", "kind": "context",
         "label": "unknown", "question_id": str(n)}
        for n in range(8)
    ]  # fmt: skip
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    recipe = Recipe(
        base=str(folder / "base"), rows=(folder / "rows.jsonl",), out=folder / "mine", format="chat", device="cpu",
        batch_size=4, micro_batch_size=4, epochs=1, warmup_steps=2, schedule="linear", learning_rate=0.01,
        dev_fraction=0.2,
    )  # fmt: skip
    run(recipe)
    return folder / "mine"


def test_a_run_leaves_its_curves_and_its_card(finished: Path) -> None:
    names = {path.name for path in finished.iterdir()}
    assert {"curves.png", "README.md", "recipe.yaml", "result.json", "prompt_spec.json"} <= names
    result = json.loads((finished / "result.json").read_text())
    assert [step for step, _ in result["learning_rates"]] == [step for step, _ in result["losses"]]
    rates = [rate for _, rate in result["learning_rates"]]
    assert rates == sorted(rates, reverse=True)
    assert 0 < rates[0] <= 0.01
    redrawn = draw_curves(finished.parent / "again.png", result["losses"], result["learning_rates"], title="mine")
    assert redrawn.read_bytes() == (finished / "curves.png").read_bytes()
    card = ModelCard.load(finished / "README.md")
    assert yaml.safe_load((finished / "recipe.yaml").read_text())["rows_sha256"] in card.text
    assert f"| questions | {result['dev']['questions']} |" in card.text


def test_the_snippet_on_the_card_runs(
    finished: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (snippet,) = re.findall(r"```python\n(.*?)```", (finished / "README.md").read_text(), re.DOTALL)
    monkeypatch.chdir(finished.parent)
    capsys.readouterr()
    exec(snippet, {"retriever": lambda question: []})
    assert capsys.readouterr().out.endswith("\n")
