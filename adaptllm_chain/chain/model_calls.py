"""Calling the language model, whichever kind of Runnable it is."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.language_models.llms import BaseLLM
from langchain_core.messages import BaseMessage
from langchain_core.outputs import LLMResult
from langchain_core.prompt_values import PromptValue, StringPromptValue
from langchain_core.runnables import Runnable, RunnableBinding, RunnableConfig
from langchain_core.runnables.config import merge_configs

from adaptllm_chain.chain.isolation import aisolated, call_config, isolated, outage
from adaptllm_chain.chain.listener import InfoListener, info_of
from adaptllm_chain.chain.outputs import ModelOutput, text_of, without_echo
from adaptllm_chain.chain.plan import Ask
from adaptllm_chain.chain.service import Service
from adaptllm_chain.chain.settings import read_stops
from adaptllm_chain.chain.wrappers import takes_stop
from adaptllm_chain.errors import InvalidInputError


class ModelCalls(Service[Ask]):
    """A language model with the arguments of one call of the chain.

    Args:
        llm: A LangChain LLM, a chat model, or any Runnable that makes text or a message of a text.
        stop: Texts at which an output ends; given to language models, unknown to other Runnables.
        arguments: Further arguments for the model; a ``stop`` among them takes the place of the one before.

    Attributes:
        stops: Texts at which an output ends.
    """

    def __init__(
        self, llm: Runnable[Any, Any], stop: Sequence[str] | None = None, arguments: Mapping[str, Any] | None = None
    ) -> None:
        self._llm = llm
        self._arguments = dict(arguments or {})
        given = self._arguments.pop("stop", None)
        self.stops = read_stops(stop if given is None else given)
        if self.stops and takes_stop(llm):
            self._arguments["stop"] = list(self.stops)
        self._bindings: list[RunnableBinding[Any, Any]] = []
        while type(llm) is RunnableBinding:
            self._bindings.append(llm)
            llm = llm.bound
        # Through generate_prompt an LLM takes all prompts at once and says what it knows beside the text.
        self._bare = llm if isinstance(llm, BaseLLM) else None

    def batch(self, errands: Sequence[Ask], configs: Sequence[RunnableConfig]) -> list[ModelOutput | Exception]:
        """Put prompts to the model together.

        Args:
            errands: The prompts.
            configs: The config for the children of each one's run.

        Returns:
            The outputs in order; an exception stands for the prompt that failed.
        """
        outputs: list[ModelOutput | Exception] = []
        down: Exception | None = None
        for prompts, own in self._portions(errands, configs):
            if self._bare is None:
                some = isolated(self._batch, prompts, own, down)
            else:
                some = isolated(self._generate, prompts, own, down)
            outputs += some
            down = outage(outputs)
        return outputs

    async def abatch(self, errands: Sequence[Ask], configs: Sequence[RunnableConfig]) -> list[ModelOutput | Exception]:
        """Put prompts to the model together.

        Args:
            errands: The prompts.
            configs: The config for the children of each one's run.

        Returns:
            The outputs in order; an exception stands for the prompt that failed.
        """
        outputs: list[ModelOutput | Exception] = []
        down: Exception | None = None
        for prompts, own in self._portions(errands, configs):
            if self._bare is None:
                some = await aisolated(self._abatch, prompts, own, down)
            else:
                some = await aisolated(self._agenerate, prompts, own, down)
            outputs += some
            down = outage(outputs)
        return outputs

    def stream(self, ask: Ask, config: RunnableConfig, listener: InfoListener) -> Iterator[Any]:
        """Stream the output for one prompt.

        Args:
            ask: The prompt.
            config: The config for the children of its run.
            listener: Hears what the model reports beside bare text.

        Returns:
            The chunks.
        """
        return self._llm.stream(ask.prompt, call_config(config, _tag(ask), listener), **self._arguments)

    def astream(self, ask: Ask, config: RunnableConfig, listener: InfoListener) -> AsyncIterator[Any]:
        """Stream the output for one prompt.

        Args:
            ask: The prompt.
            config: The config for the children of its run.
            listener: Hears what the model reports beside bare text.

        Returns:
            The chunks.
        """
        return self._llm.astream(ask.prompt, call_config(config, _tag(ask), listener), **self._arguments)

    def _portions(
        self, asks: Sequence[Ask], configs: Sequence[RunnableConfig]
    ) -> Iterator[tuple[list[str], list[RunnableConfig]]]:
        """Cut a wave to ``max_concurrency``, as LangChain's LLMs do; other Runnables do so themselves."""
        prompts = [ask.prompt for ask in asks]
        own = [call_config(config, _tag(ask)) for ask, config in zip(asks, configs, strict=True)]
        size = (own[0].get("max_concurrency") if self._bare is not None else None) or len(prompts)
        for start in range(0, len(prompts), size):
            yield prompts[start : start + size], own[start : start + size]

    # The bare LLM: one call for all prompts.

    def _generate(self, prompts: list[str], configs: list[RunnableConfig]) -> list[ModelOutput]:
        assert self._bare is not None
        result = self._bare.generate_prompt(_values(prompts), **self._generate_arguments(configs))
        return self._outputs_of(prompts, result)

    async def _agenerate(self, prompts: list[str], configs: list[RunnableConfig]) -> list[ModelOutput]:
        assert self._bare is not None
        result = await self._bare.agenerate_prompt(_values(prompts), **self._generate_arguments(configs))
        return self._outputs_of(prompts, result)

    def _generate_arguments(self, configs: list[RunnableConfig]) -> dict[str, Any]:
        arguments = dict(self._arguments)
        for binding in self._bindings:
            arguments = {**binding.kwargs, **arguments}
            configs = [_merge(binding, config) for config in configs]
        return {
            "callbacks": [config.get("callbacks") for config in configs],
            "tags": [config.get("tags") for config in configs],
            "metadata": [config.get("metadata") for config in configs],
            "run_name": [config.get("run_name") for config in configs],
            **arguments,
        }

    # Any other Runnable: its own batch.

    def _batch(self, prompts: list[str], configs: list[RunnableConfig]) -> list[ModelOutput | Exception]:
        listeners = [InfoListener() for _ in prompts]
        heard = [_listened(config, listener) for config, listener in zip(configs, listeners, strict=True)]
        results = self._llm.batch(prompts, heard, return_exceptions=True, **self._arguments)
        return list(map(self._output_of, prompts, results, listeners))

    async def _abatch(self, prompts: list[str], configs: list[RunnableConfig]) -> list[ModelOutput | Exception]:
        listeners = [InfoListener() for _ in prompts]
        heard = [_listened(config, listener) for config, listener in zip(configs, listeners, strict=True)]
        results = await self._llm.abatch(prompts, heard, return_exceptions=True, **self._arguments)
        return list(map(self._output_of, prompts, results, listeners))

    def _outputs_of(self, prompts: Sequence[str], result: LLMResult) -> list[ModelOutput]:
        return [
            ModelOutput(without_echo(candidates[0].text, prompt), [info_of(candidates[0])], self.stops)
            for prompt, candidates in zip(prompts, result.generations, strict=True)
        ]

    def _output_of(self, prompt: str, result: Any, listener: InfoListener) -> ModelOutput | Exception:
        if isinstance(result, Exception):
            return result
        try:
            text = text_of(result)
        except InvalidInputError as error:
            return error
        info = info_of(result) if isinstance(result, BaseMessage) else None
        return ModelOutput(without_echo(text, prompt), [info] if info else listener.infos(text), self.stops)


def _tag(ask: Ask) -> str:
    return f"adaptllm:{ask.kind}"


def _listened(config: RunnableConfig, listener: InfoListener) -> RunnableConfig:
    return merge_configs(config, {"callbacks": [listener]})


def _merge(binding: RunnableBinding[Any, Any], config: RunnableConfig) -> RunnableConfig:
    # "callbacks" must be there: merge_configs would put those of the surrounding context in its place.
    merged = merge_configs({**binding.config, "callbacks": binding.config.get("callbacks") or []}, config)
    return merge_configs(merged, *(factory(merged) for factory in binding.config_factories))


def _values(prompts: Sequence[str]) -> list[PromptValue]:
    return [StringPromptValue(text=prompt) for prompt in prompts]
