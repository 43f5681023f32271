"""``<RET>`` as an added token: which rows train, what is saved, how it loads, what it says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.llms import LocalLLM
from adaptllm_chain.llms.encoding import PromptEncoder
from adaptllm_chain.ret.marker import RET, is_request, read_spelling
from tests.tiny_models import byte_level_tokenizer, sentencepiece_tokenizer, tiny_llama
from training.recipe import Recipe
from training.ret_token import add_to_model, add_to_tokenizer
from training.rows import encode_rows
from training.sft import run
from training.trainer import build_trainer

FAMILIES = {"byte_level": (byte_level_tokenizer, "chat"), "sentencepiece": (sentencepiece_tokenizer, "alpaca")}
ASK = "Answer the question Q. If you need help answer <RET> to get the context. Q: "


def untie(model: Any) -> Any:
    """Give a model an output matrix of its own, as Llama-2 has."""
    model.config.tie_word_embeddings = False
    model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().flip(0).clone())
    return model


def row(question: str, completion: str) -> dict[str, str]:
    return {
        "prompt": f"{ASK}{question}",
        "completion": completion,
        "kind": "parametric",
        "label": "unknown" if completion == RET else "known",
        "question_id": question,
    }


@pytest.fixture(params=["tied", "untied"])
def base(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    tokenizer = byte_level_tokenizer()
    model = tiny_llama(tokenizer)
    folder = tmp_path / "base"
    (model if request.param == "tied" else untie(model)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    rows = [row(f"who is number {n}?", RET) for n in range(16)] + [row(f"what is {n}?", "Paris") for n in range(16)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
    return folder


def recipe_for(base: Path, **fields: Any) -> Recipe:
    settings = {
        "base": str(base), "rows": base.parent / "rows.jsonl", "out": base.parent / "out", "format": "chat",
        "kinds": ["parametric"], "ret_token": "added", "batch_size": 8, "micro_batch_size": 4, "device": "cpu",
        "max_steps": 2, "learning_rate": 0.02, "dev_fraction": 0.1,
    }  # fmt: skip
    return Recipe(**settings | fields)


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_the_marker_after_a_prompt_is_one_token(family: str) -> None:
    build, prompt_format = FAMILIES[family]
    tokenizer = build()
    token = add_to_tokenizer(tokenizer)
    encoder = PromptEncoder(tokenizer, prompt_format, RET)
    encoded = encoder.encode(f"{ASK}who?")
    assert encoded.marker_ids == (token,)
    assert encoded.ids.count(token) == 1  # the instruction names it
    assert encoder.decode([token, tokenizer.eos_token_id]) == RET
    assert add_to_tokenizer(tokenizer) == token
    assert len(tokenizer) == token + 1


@pytest.mark.parametrize("tied", [True, False])
def test_the_new_rows_train_and_no_other_does_t5(tied: bool, tmp_path: Path) -> None:
    tokenizer = byte_level_tokenizer(pad=True)
    model = tiny_llama(tokenizer) if tied else untie(tiny_llama(tokenizer))
    token = add_to_tokenizer(tokenizer)
    add_to_model(model, tokenizer)
    rows = encode_rows([row(f"who is {n}?", RET) for n in range(8)], PromptEncoder(tokenizer, "chat", RET))
    recipe = Recipe(
        rows="r", out=tmp_path, ret_token="added", device="cpu", batch_size=4, micro_batch_size=4, max_steps=2
    )
    trainer = build_trainer(model, tokenizer, rows, recipe, ret_id=token)
    layers = {"input": trainer.model.get_input_embeddings(), "output": trainer.model.get_output_embeddings()}
    before = {name: layer.weight.detach().clone() for name, layer in layers.items()}
    frozen = {name: weight.clone() for name, weight in trainer.model.named_parameters() if not weight.requires_grad}
    trainer.train()
    for name, layer in layers.items():
        changed = (layer.weight.detach() != before[name]).any(1).nonzero().flatten().tolist()
        assert changed == [token], name
    assert all(torch.equal(weight, frozen[name]) for name, weight in trainer.model.named_parameters() if name in frozen)
    assert torch.equal(layers["input"].weight[token], layers["output"].weight[token]) is tied
    trained = [name for name, weight in trainer.model.named_parameters() if weight.requires_grad]
    assert sum("trainable_tokens" in name for name in trained) == (1 if tied else 2)


def test_the_fused_head_sees_the_trained_row_as_the_plain_model_does(tmp_path: Path) -> None:
    tokenizer = byte_level_tokenizer(pad=True)
    model = untie(tiny_llama(tokenizer))
    token = add_to_tokenizer(tokenizer)
    add_to_model(model, tokenizer)
    rows = encode_rows([row("who?", RET), row("and?", "Paris")], PromptEncoder(tokenizer, "chat", RET))
    recipe = Recipe(rows="r", out=tmp_path, ret_token="added", device="cpu", batch_size=2, micro_batch_size=2)
    trainer = build_trainer(model, tokenizer, rows, recipe, ret_id=token)
    trainer.model.eval()
    batch = trainer.data_collator([trainer.train_dataset[0], trainer.train_dataset[1]])
    ours = trainer.compute_loss(trainer.model, dict(batch))
    fused = super(type(trainer), trainer).compute_loss(trainer.model, dict(batch))  # the way of a GPU
    assert torch.allclose(ours, fused, atol=1e-5)
    assert torch.allclose(ours, trainer.model(**batch).loss, atol=1e-5)


_FRESH = """
import sys, torch
from adaptllm_chain.llms import LocalLLM
llm = LocalLLM.from_pretrained(sys.argv[1], adapter=sys.argv[2], device="cpu")
ids = torch.tensor([llm._encoder.encode(sys.argv[3]).ids])
with torch.no_grad():
    torch.save(llm.model(input_ids=ids).logits, sys.argv[4])
"""


def test_saved_and_loaded_in_a_fresh_process_the_logits_are_the_same_t4(base: Path, monkeypatch) -> None:
    import training.sft

    kept: list[LocalLLM] = []
    wrap = training.sft._wrap
    monkeypatch.setattr(training.sft, "_wrap", lambda *given: kept.append(wrap(*given)) or kept[-1])
    recipe = recipe_for(base)
    run(recipe)
    (trained,) = kept
    ids = torch.tensor([trained._encoder.encode(f"{ASK}who is 3?").ids])
    with torch.no_grad():
        expected = trained.model(input_ids=ids).logits
    fresh = base.parent / "logits.pt"
    command = [sys.executable, "-c", _FRESH, str(base), str(recipe.out), f"{ASK}who is 3?", str(fresh)]
    subprocess.run(command, check=True, capture_output=True)
    found = torch.load(fresh)
    assert found.shape == expected.shape  # the base was resized without being asked
    assert (found - expected).abs().max() <= 1e-6
    # The rows alone are saved, in the end and in every checkpoint: no matrix of the whole vocabulary.
    from safetensors.torch import load_file

    vocabulary = expected.shape[-1]
    for file in base.parent.glob("out/**/adapter_model.safetensors"):
        assert all(vocabulary not in weight.shape for weight in load_file(file).values()), file
    assert list(base.parent.glob("out/checkpoints/checkpoint-*/adapter_model.safetensors"))


def test_a_resumed_run_restores_the_rows(base: Path) -> None:
    unbroken = recipe_for(base, out=base.parent / "unbroken", max_steps=4, save_steps=2, lora_dropout=0.0)
    run(unbroken)
    recipe = unbroken.model_copy(update={"out": base.parent / "out"})
    run(recipe)
    # As after a kill at the second step: the later checkpoint and the result are gone.
    import shutil

    shutil.rmtree(recipe.out / "checkpoints" / "checkpoint-4")
    for name in ("result.json", "adapter_model.safetensors"):
        (recipe.out / name).unlink()
    assert run(recipe)["resumed_from_step"] == 2
    from safetensors.torch import load_file

    first, second = (load_file(folder / "adapter_model.safetensors") for folder in (unbroken.out, recipe.out))
    assert any("trainable_tokens_delta" in name for name in first)
    for name, weight in first.items():
        assert torch.allclose(weight, second[name], atol=1e-6), name


def test_a_trained_model_says_the_token_and_the_chain_reads_it(base: Path) -> None:
    recipe = recipe_for(base, max_steps=60, learning_rate=0.02, lora_r=16, dev_fraction=0.0)
    run(recipe)
    llm = LocalLLM.from_pretrained(base, adapter=recipe.out, max_new_tokens=4, device="cpu")
    result = llm.generate([f"{ASK}who is number 3?", f"{ASK}what is 3?"])
    asks, answers = (generations[0] for generations in result.generations)
    assert is_request(read_spelling(asks.text))
    assert asks.text == RET
    assert asks.generation_info["ret_probability"] > 0.5
    assert answers.text.strip() == "Paris"
    assert answers.generation_info["ret_probability"] < 0.5
    assert "".join(llm.stream(f"{ASK}who is number 3?")) == RET


def test_text_is_the_default_and_leaves_the_tokenizer_alone_t6(base: Path) -> None:
    assert Recipe(rows="r", out="o").ret_token == "text"
    recipe = recipe_for(base, ret_token="text")
    run(recipe)
    assert not (recipe.out / "tokenizer_config.json").exists()
    saved = json.loads((recipe.out / "adapter_config.json").read_text())
    assert saved["trainable_token_indices"] is None
    assert saved["modules_to_save"] is None


def test_an_output_layer_with_a_bias_is_refused() -> None:
    tokenizer = byte_level_tokenizer()
    model = untie(tiny_llama(tokenizer))
    model.lm_head.bias = torch.nn.Parameter(torch.zeros(model.config.vocab_size))
    add_to_tokenizer(tokenizer)
    with pytest.raises(InvalidInputError, match="--ret-token text"):
        add_to_model(model, tokenizer)


def test_an_adapter_on_the_hub_brings_its_tokenizer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    from adaptllm_chain.llms.loading import _has_tokenizer

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", lambda repo, name: str(tmp_path / name))
    assert _has_tokenizer("someone/adapter")

    def fail(*_: str) -> str:
        raise OSError("404")

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", fail)
    assert not _has_tokenizer("someone/adapter")


def test_an_added_token_without_its_tokenizer_says_what_is_missing(base: Path) -> None:
    recipe = recipe_for(base)
    run(recipe)
    (recipe.out / "tokenizer_config.json").unlink()
    with pytest.raises(InvalidInputError, match="tokenizer beside"):
        LocalLLM.from_pretrained(base, adapter=recipe.out, device="cpu")
