"""Rows as token ids: training reads the very prompt that inference feeds, whatever a question holds (D11, T1)."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from hypothesis import example, given
from hypothesis import strategies as st
from trl import SFTConfig, SFTTrainer

from adaptllm_chain.llms.encoding import PromptEncoder
from adaptllm_chain.ret.marker import RET
from tests.tiny_models import CHAT_TEMPLATE, byte_level_tokenizer, sentencepiece_tokenizer, tiny_llama
from training.recipe import Recipe
from training.ret_token import add_to_tokenizer
from training.rows import encode_rows
from training.trainer import build_trainer

ASK = "Answer the question Q. If you need help answer <RET> to get the context. Q: "
FORMATS = ("plain", "alpaca", "chat")
SPECIALS = ("</s>", "<s>", "<unk>", "<|im_end|>", "<|im_start|>", "<|endoftext|>")


@cache
def tokenizer_of(family: str) -> Any:
    if family == "byte_level":
        return byte_level_tokenizer()
    if family == "byte_level, <RET> added":
        tokenizer = byte_level_tokenizer()
        add_to_tokenizer(tokenizer)
        return tokenizer
    tokenizer = sentencepiece_tokenizer()
    # Llama-2's template writes the begin token too.
    tokenizer.chat_template = "{{ bos_token }}" + CHAT_TEMPLATE
    return tokenizer


FAMILIES = ("byte_level", "byte_level, <RET> added", "sentencepiece")

# "▁" is SentencePiece's own sign for a space: it decodes to one.
plain_text = st.text(st.characters(codec="utf-8", exclude_characters="▁"), max_size=12)
tricky_text = st.lists(
    plain_text | st.sampled_from([*SPECIALS, RET, "### Response:\n", "\n", " ", "C: "]), min_size=1, max_size=6
).map("".join)


def row(prompt: str, completion: str) -> dict[str, str]:
    return {"prompt": prompt, "completion": completion, "kind": "parametric"}


def parts(encoded: dict[str, Any]) -> tuple[list[int], list[int]]:
    """The ids without a loss, which have to be the first ones, and those with one."""
    ids, labels = encoded["input_ids"], encoded["labels"]
    completion = [label for label in labels if label != -100]
    assert labels == [-100] * (len(ids) - len(completion)) + completion
    assert ids[len(ids) - len(completion) :] == completion
    return ids[: len(ids) - len(completion)], completion


@pytest.mark.parametrize("prompt_format", FORMATS)
@pytest.mark.parametrize("family", FAMILIES)
@given(question=tricky_text, completion=st.just(RET) | tricky_text.filter(str.strip))
@example(question="is </s> or <|im_end|> the end?", completion="</s>")
@example(question="who?\n", completion="\n<|im_end|>")
def test_the_prompt_is_what_inference_feeds_and_the_labels_are_the_completion_and_its_end_d11_t1(
    family: str, prompt_format: Any, question: str, completion: str
) -> None:
    tokenizer = tokenizer_of(family)
    encoder = PromptEncoder(tokenizer, prompt_format, RET)
    (encoded,) = encode_rows([row(ASK + question, completion)], encoder)
    prompt, follows = parts(encoded)
    asked = encoder.encode(ASK + question)
    assert prompt == asked.ids
    if completion == RET:
        assert follows == [*asked.marker_ids, tokenizer.eos_token_id]
    # The one end token is the row's own: what a question or an answer spells is text.
    (harmless,) = encode_rows([row(ASK + "who?", "Paris")], encoder)
    for special in tokenizer.all_special_ids:
        assert encoded["input_ids"].count(special) == harmless["input_ids"].count(special)
    assert follows[-1] == tokenizer.eos_token_id
    assert tokenizer.decode(follows[:-1]).strip() == completion.strip()


@pytest.mark.parametrize("prompt_format", FORMATS)
@pytest.mark.parametrize("family", FAMILIES)
def test_ordinary_rows_have_the_ids_that_trl_makes_of_their_texts(
    family: str, prompt_format: Any, tmp_path: Path
) -> None:
    tokenizer = tokenizer_of(family)
    encoder = PromptEncoder(tokenizer, prompt_format, RET)
    rows = [
        row(f"{ASK}who built the mill?", RET),
        row(f"{ASK}capital of France?", "Paris"),
        row("Answer the question Q given the context C. Q: où?, C: Zoë\nwas here — at №5.", "Zoë"),
        row("  Q: spaces around  ", "1881"),
    ]
    framed = [encoder.frame(each["prompt"]) for each in rows]
    texts = [
        {"prompt": prompt.text, "completion": prompt.lead + each["completion"]}
        for prompt, each in zip(framed, rows, strict=True)
    ]
    reference = SFTTrainer(
        model=tiny_llama(tokenizer),
        processing_class=tokenizer,
        train_dataset=Dataset.from_list(texts),
        args=SFTConfig(
            output_dir=str(tmp_path), use_cpu=True, bf16=False, report_to=[], activation_checkpointing=False
        ),
    ).train_dataset
    recipe = Recipe(rows="r", out=tmp_path, device="cpu", batch_size=4, micro_batch_size=4)
    trainer = build_trainer(tiny_llama(tokenizer), tokenizer, encode_rows(rows, encoder), recipe)
    for column in ("input_ids", "labels"):
        assert trainer.train_dataset[column][:] == reference[column][:]
    assert trainer.train_dataset["kind"][:] == ["parametric"] * 4
