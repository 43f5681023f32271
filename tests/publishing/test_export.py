"""Exports: merged models answer as base and adapter do; folders are whole or absent; refusals name the way out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import peft
import pytest
import torch
from huggingface_hub import ModelCard
from transformers import AutoModelForCausalLM, AutoTokenizer

from adaptllm_chain.errors import AdaptLLMError, InvalidInputError, MissingExtraError, PromptMismatchError
from adaptllm_chain.llms import LocalLLM
from adaptllm_chain.llms.loading import load_model
from adaptllm_chain.prompts import PromptSpec
from adaptllm_chain.publishing import llama_cpp
from adaptllm_chain.publishing.adapter_files import is_hub_name, read_adapter, weight_names
from adaptllm_chain.publishing.gguf import export_gguf, export_gguf_adapter
from adaptllm_chain.publishing.llama_cpp import LlamaCpp
from adaptllm_chain.publishing.merging import export_merged
from adaptllm_chain.publishing.vllm import serve_command
from adaptllm_chain.publishing.whole_folder import whole_folder
from tests.tiny_models import byte_level_tokenizer, sentencepiece_tokenizer, tiny_llama

ASK = "Answer the question Q. If you need help answer <RET> to get the context. Q: who built the mill?"


def make_adapter(
    folder: Path,
    *,
    tied: bool = True,
    token: bool = False,
    dtype: torch.dtype = torch.float32,
    family: Callable[[], Any] = byte_level_tokenizer,
    **config: Any,
) -> tuple[Path, Path]:
    """Write a tiny base and an adapter with random weights, as training/sft.py leaves them."""
    base, adapter = folder / "base", folder / "adapter"
    tokenizer = family()
    model = tiny_llama(tokenizer)
    if not tied:
        model.config.tie_word_embeddings = False
        model.lm_head.weight = torch.nn.Parameter(torch.randn_like(model.lm_head.weight))
    # What real bases bring, and what cannot be saved as it is.
    model.generation_config.repetition_penalty = 1.3
    model.to(dtype).save_pretrained(base)
    tokenizer.save_pretrained(base)
    if token:
        tokenizer.add_tokens(["<RET>"])
        model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
        ids = [tokenizer.convert_tokens_to_ids("<RET>")]
        config["trainable_token_indices"] = ids if tied else {"embed_tokens": ids, "lm_head": ids}
    settings = {"r": 4, "lora_alpha": 32, "target_modules": ["q_proj", "v_proj"], "task_type": "CAUSAL_LM"}
    adapted = peft.get_peft_model(model, peft.LoraConfig(**{**settings, **config}))
    torch.manual_seed(1)
    for name, weight in adapted.named_parameters():
        if weight.requires_grad and "original_module" not in name:
            torch.nn.init.normal_(weight, std=0.3)
    adapted.peft_config["default"].base_model_name_or_path = str(base)
    adapted.save_pretrained(adapter, save_embedding_layers=False)
    if token:
        tokenizer.save_pretrained(adapter)
    PromptSpec(format="alpaca", ret_threshold=0.25, base_model=str(base)).save(adapter)
    return base, adapter


def logits(model: Any, tokenizer: Any) -> torch.Tensor:
    with torch.inference_mode():
        return model(input_ids=tokenizer(ASK, return_tensors="pt").input_ids).logits.float()


@pytest.mark.parametrize("token", [False, True], ids=["text", "token"])
@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
def test_a_merged_model_answers_as_base_and_adapter(tmp_path: Path, tied: bool, token: bool) -> None:
    base, adapter = make_adapter(tmp_path, tied=tied, token=token)
    out = export_merged(adapter, tmp_path / "merged")

    together = load_model(str(base), adapter=adapter)
    expected = logits(together.model, together.tokenizer)
    plain = AutoModelForCausalLM.from_pretrained(out)
    tokenizer = AutoTokenizer.from_pretrained(out)
    assert len(tokenizer) == len(together.tokenizer)
    assert plain.config.tie_word_embeddings is tied
    assert plain.config.vocab_size == expected.shape[-1]
    assert (logits(plain, tokenizer) - expected).abs().max() < 1e-4
    alone = load_model(str(base))
    size = alone.model.config.vocab_size
    assert (logits(alone.model, together.tokenizer if not token else alone.tokenizer)[0, -1, :size]
            - expected[0, -1, :size]).abs().max() > 0.1, "the adapter does something"  # fmt: skip

    llm = LocalLLM.from_pretrained(out, max_new_tokens=4)
    assert llm.prompt_spec == PromptSpec.load(adapter)
    assert llm.format == "alpaca"
    one, other = (
        model.generate([ASK]).generations[0][0]
        for model in (llm, LocalLLM.from_pretrained(base, adapter=adapter, max_new_tokens=4))
    )
    assert one.text == other.text
    assert one.generation_info["ret_probability"] == pytest.approx(other.generation_info["ret_probability"], rel=1e-3)


def test_whole_layers_are_merged_too(tmp_path: Path) -> None:
    base, adapter = make_adapter(tmp_path, tied=False, modules_to_save=["lm_head"])
    together = load_model(str(base), adapter=adapter)
    expected = logits(together.model, together.tokenizer)
    out = export_merged(adapter, tmp_path / "merged")
    assert (logits(AutoModelForCausalLM.from_pretrained(out), together.tokenizer) - expected).abs().max() < 1e-4


def test_what_lies_in_a_merged_folder(tmp_path: Path) -> None:
    base, adapter = make_adapter(tmp_path)
    out = export_merged(adapter, tmp_path / "merged")
    names = {path.name for path in out.iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json", "prompt_spec.json", "README.md"} <= names
    assert not [name for name in names if name.startswith("adapter_")]
    assert json.loads((out / "export.json").read_text())["base"] == str(base)
    card = ModelCard.load(out / "README.md")
    assert card.data.library_name == "transformers"
    assert card.data.base_model is None, "a folder on this disk is no link"
    assert 'LocalLLM.from_pretrained("merged")' in card.text
    assert json.loads((out / "generation_config.json").read_text()).get("repetition_penalty") is None
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("merged")] == ["merged"]


def test_a_base_keeps_its_type_unless_told_otherwise(tmp_path: Path) -> None:
    base, adapter = make_adapter(tmp_path, dtype=torch.bfloat16)
    kept = AutoModelForCausalLM.from_pretrained(export_merged(adapter, tmp_path / "kept"))
    assert kept.dtype == torch.bfloat16
    exact = AutoModelForCausalLM.from_pretrained(export_merged(adapter, tmp_path / "exact", dtype="float32"))
    assert exact.dtype == torch.float32
    # One rounding of the sum, and none of the adapter's product.
    for (name, rounded), whole in zip(kept.named_parameters(), exact.parameters(), strict=True):
        assert torch.equal(rounded, whole.to(torch.bfloat16)), name
    together = load_model(str(base), adapter=adapter, dtype="float32")
    assert (logits(exact, together.tokenizer) - logits(together.model, together.tokenizer)).abs().max() < 1e-4


def test_a_quantised_base_is_refused(tmp_path: Path) -> None:
    base, adapter = make_adapter(tmp_path)
    config = json.loads((base / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "bitsandbytes", "load_in_4bit": True}
    (base / "config.json").write_text(json.dumps(config))
    with pytest.raises(InvalidInputError, match="is quantised") as caught:
        export_merged(adapter, tmp_path / "merged")
    assert "full precision" in str(caught.value)
    assert not (tmp_path / "merged").exists()


def test_a_folder_in_use_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, adapter = make_adapter(tmp_path)
    ours = export_merged(adapter, tmp_path / "merged")
    before = (ours / "model.safetensors").stat().st_mtime_ns
    with pytest.raises(InvalidInputError, match="--overwrite"):
        export_merged(adapter, ours)
    assert (ours / "model.safetensors").stat().st_mtime_ns == before
    export_merged(adapter, ours, overwrite=True)
    assert (ours / "model.safetensors").stat().st_mtime_ns != before

    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "thesis.tex").write_text("years of work")
    with pytest.raises(InvalidInputError, match="something else"):
        export_merged(adapter, theirs, overwrite=True)
    with pytest.raises(InvalidInputError, match="is a file"):
        export_merged(adapter, theirs / "thesis.tex", overwrite=True)
    with pytest.raises(InvalidInputError, match="the root of the disk"):
        export_merged(adapter, Path("/"), overwrite=True)
    monkeypatch.chdir(theirs)
    with pytest.raises(InvalidInputError, match="something else"):
        export_merged(adapter, Path(), overwrite=True)
    assert (theirs / "thesis.tex").read_text() == "years of work"


def test_work_that_fails_leaves_nothing_and_takes_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for attempt in range(2):
        with pytest.raises(OSError, match="disk full"), whole_folder(out, {}, overwrite=True) as part:  # noqa: PT012
            (part / "half").write_text("x")
            raise OSError("disk full")
        assert out.exists() == bool(attempt)
        assert not (tmp_path / "out.part").exists()
        if not attempt:
            with whole_folder(out, {"n": 1}) as part:
                (part / "whole").write_text("x")
    assert {path.name for path in out.iterdir()} == {"whole", "export.json"}
    # What a kill left behind is cleared away; what is not ours is not.
    (tmp_path / "out.part").mkdir()
    (tmp_path / "out.part" / "export.json").write_text("{}")
    with whole_folder(out, {"n": 2}, overwrite=True):
        pass
    assert json.loads((out / "export.json").read_text()) == {"n": 2}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    (tmp_path / "out.part").mkdir()
    (tmp_path / "out.part" / "mine").write_text("x")
    with pytest.raises(InvalidInputError, match="something else"), whole_folder(out, {}, overwrite=True):
        pass


def test_a_base_that_is_not_there_and_an_adapter_without_a_format(tmp_path: Path) -> None:
    base, adapter = make_adapter(tmp_path)
    with pytest.raises(InvalidInputError, match="--model"):
        export_merged(adapter, tmp_path / "out", base=str(tmp_path / "nowhere"))
    with pytest.raises(InvalidInputError, match="there is no adapter"):
        export_merged(tmp_path / "nowhere", tmp_path / "out")
    (adapter / "prompt_spec.json").unlink()
    with pytest.raises(PromptMismatchError, match="python -c"):
        export_merged(adapter, tmp_path / "out", base=str(base))
    assert not (tmp_path / "out").exists()


def test_a_base_as_it_came_has_no_prompt_spec(tmp_path: Path) -> None:
    base, _ = make_adapter(tmp_path)
    llm = LocalLLM.from_pretrained(base)
    assert llm.prompt_spec is None
    assert llm.format == "chat"


def test_weight_names_come_from_the_header(tmp_path: Path) -> None:
    _, adapter = make_adapter(tmp_path)
    file = adapter / "adapter_model.safetensors"
    names = weight_names(file)
    assert len(names) == 2 * 2 * 2
    whole = file.read_bytes()
    for broken in (
        b"",
        b"{}",
        whole[:-1],
        whole[:40],
        b"version https://git-lfs.github.com/spec/v1\n",
        b"\2" + 7 * b"\0" + b"[]",
    ):
        file.write_bytes(broken)
        with pytest.raises(InvalidInputError, match="no whole safetensors"):
            weight_names(file)


@pytest.mark.parametrize(
    ("name", "on_hub"),
    [
        ("HuggingFaceTB/SmolLM2-135M-Instruct", True),
        ("gpt2", True),
        ("", False),
        ("/home/me/model", False),
        ("./model", False),
        ("runs/a/b", False),
        ("C:\\models\\x", False),
        ("model.gguf", False),
    ],
)
def test_names_on_the_hub(name: str, on_hub: bool) -> None:
    assert is_hub_name(name) is on_hub


def test_vllm_takes_text_mode_adapters_as_they_are(tmp_path: Path) -> None:
    base, adapter = make_adapter(tmp_path, rank_pattern={"v_proj": 12})
    assert serve_command(read_adapter(adapter), "mine") == (
        f"vllm serve {base} --enable-lora --lora-modules mine={adapter} --max-lora-rank 16"
    )


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"token": True}, "trainable_token_indices"),
        ({"tied": False, "modules_to_save": ["lm_head"]}, "modules_to_save"),
        ({"use_dora": True}, "use_dora"),
        ({"r": 65}, "rank 65"),
    ],
)
def test_vllm_refuses_others_and_merging_helps(tmp_path: Path, config: dict[str, Any], reason: str) -> None:
    _, adapter = make_adapter(tmp_path, **config)
    with pytest.raises(InvalidInputError, match=reason) as caught:
        serve_command(read_adapter(adapter), "mine")
    assert "--to merged" in str(caught.value)


def test_weights_count_and_not_the_configuration_alone(tmp_path: Path) -> None:
    _, adapter = make_adapter(tmp_path, token=True)
    config = json.loads((adapter / "adapter_config.json").read_text()) | {"trainable_token_indices": None}
    (adapter / "adapter_config.json").write_text(json.dumps(config))
    with pytest.raises(InvalidInputError, match="no LoRA matrices"):
        serve_command(read_adapter(adapter), "mine")


def test_a_gguf_base_is_not_served_by_vllm(tmp_path: Path) -> None:
    _, adapter = make_adapter(tmp_path)
    with pytest.raises(InvalidInputError, match="--to merged"):
        serve_command(read_adapter(adapter, "model.gguf"), "mine")


def test_what_is_no_adapter(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="is not there"):
        read_adapter(tmp_path)
    for text in ("{", "[]", '{"peft_type": "IA3"}', '{"peft_type": "LORA", "r": 0}'):
        (tmp_path / "adapter_config.json").write_text(text)
        with pytest.raises(InvalidInputError, match="adapter_config"):
            read_adapter(tmp_path)


# ---- llama.cpp: the real converter is run in the report of the change; here a stand-in that checks its arguments

CONVERTER = """
import argparse, json, pathlib, sys
parser = argparse.ArgumentParser()
for option in ("--outfile", "--outtype", "--model-name", "--base"):
    parser.add_argument(option)
parser.add_argument("source")
arguments = parser.parse_args()
source = pathlib.Path(arguments.base or arguments.source)
assert json.loads((source / "config.json").read_text())["architectures"] == ["LlamaForCausalLM"]
assert (pathlib.Path(arguments.source) / {needed!r}).is_file()
{more}
pathlib.Path(arguments.outfile).write_text(arguments.outtype)
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "llama.cpp"
    folder.mkdir()
    write_converters(folder)
    return folder


def write_converters(folder: Path, more: str = "") -> None:
    for script, needed in (("hf", "model.safetensors"), ("lora", "adapter_model.safetensors")):
        (folder / f"convert_{script}_to_gguf.py").write_text(CONVERTER.format(needed=needed, more=more))


def test_gguf_files(tmp_path: Path, checkout: Path) -> None:
    _, adapter = make_adapter(tmp_path)
    file = export_gguf(adapter, tmp_path / "whole", LlamaCpp.find(checkout), outtype="f32")
    assert file == tmp_path / "whole" / "whole-f32.gguf"
    assert file.read_text() == "f32"
    assert {path.name for path in file.parent.iterdir()} == {
        "whole-f32.gguf",
        "prompt_spec.json",
        "README.md",
        "export.json",
    }
    assert 'from_pretrained("whole/whole-f32.gguf")' in (file.parent / "README.md").read_text()
    file = export_gguf_adapter(adapter, tmp_path / "alone", LlamaCpp.find(checkout))
    assert {path.name for path in file.parent.iterdir()} == {"alone-f16.gguf", "prompt_spec.json", "export.json"}


@pytest.mark.parametrize("token", [False, True], ids=["text", "token"])
def test_llama_2_takes_its_sentencepiece_file_along(tmp_path: Path, checkout: Path, token: bool) -> None:
    base, adapter = make_adapter(tmp_path, family=sentencepiece_tokenizer, token=token)
    with pytest.raises(InvalidInputError, match="other tokens than the adapter was trained on"):
        export_gguf(adapter, tmp_path / "out", LlamaCpp.find(checkout))
    assert not (tmp_path / "out").exists()
    (base / "tokenizer.model").write_text("pieces and their scores")
    size = len(sentencepiece_tokenizer())
    added = f"assert json.loads((source / 'added_tokens.json').read_text()) == {{'<RET>': {size}}}"
    write_converters(
        checkout,
        more="assert (source / 'tokenizer.model').is_file()\n"
        + (added if token else "assert not (source / 'added_tokens.json').exists()"),
    )
    assert export_gguf(adapter, tmp_path / "out", LlamaCpp.find(checkout)).is_file()


@pytest.mark.parametrize("config", [{"token": True}, {"use_rslora": True}, {"alpha_pattern": {"v_proj": 3}}], ids=str)
def test_llama_cpp_has_no_place_for_some_adapters(tmp_path: Path, checkout: Path, config: dict[str, Any]) -> None:
    _, adapter = make_adapter(tmp_path, **config)
    with pytest.raises(InvalidInputError, match="--to gguf"):
        export_gguf_adapter(adapter, tmp_path / "out", LlamaCpp.find(checkout))
    assert export_gguf(adapter, tmp_path / "out", LlamaCpp.find(checkout)).is_file()


def test_a_converter_that_fails_is_quoted(tmp_path: Path, checkout: Path) -> None:
    write_converters(checkout, more="raise NotImplementedError('BPE pre-tokenizer was not recognized')")
    _, adapter = make_adapter(tmp_path)
    with pytest.raises(AdaptLLMError, match="BPE pre-tokenizer was not recognized") as caught:
        export_gguf(adapter, tmp_path / "out", LlamaCpp.find(checkout))
    assert "pip install gguf sentencepiece" in str(caught.value)
    assert not list(tmp_path.glob("out*"))


def test_llama_cpp_is_found_or_explained(tmp_path: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(llama_cpp.VARIABLE, raising=False)
    with pytest.raises(MissingExtraError, match="--no-binary llama-cpp-python"):
        LlamaCpp.find()
    with pytest.raises(MissingExtraError, match="holds no convert_hf_to_gguf"):
        LlamaCpp.find(tmp_path)
    monkeypatch.setenv(llama_cpp.VARIABLE, str(checkout))
    assert LlamaCpp.find().folder == checkout
