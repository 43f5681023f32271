"""A language model that follows a script."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models.llms import BaseLLM
from langchain_core.outputs import Generation, GenerationChunk, LLMResult
from pydantic import Field

from adaptllm_chain.testing.script import Reply, Script, say


class ScriptedLLM(BaseLLM):
    """A LangChain LLM without a model: batches, streams, sync and async, and counts its calls.

    Attributes:
        script: What it says to which prompt.
        calls: The prompts of each call, in order; a stream is a call with one prompt.
        stops: The stop texts that each call was given; they are not obeyed.
        streamed: How many chunks have been streamed.
    """

    script: Script = Field(exclude=True, repr=False)
    calls: list[list[str]] = Field(default_factory=list, exclude=True, repr=False)
    stops: list[list[str] | None] = Field(default_factory=list, exclude=True, repr=False)
    streamed: int = 0

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(
        self,
        prompts: list[str],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> LLMResult:
        self._count(prompts, stop)
        replies = [say(self.script, prompt) for prompt in prompts]
        return LLMResult(generations=[[Generation(text=r.text, generation_info=dict(r.info))] for r in replies])

    async def _agenerate(
        self,
        prompts: list[str],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> LLMResult:
        return self._generate(prompts, stop)

    def _stream(
        self,
        prompt: str,
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[GenerationChunk]:
        self._count([prompt], stop)
        for chunk in _chunks(say(self.script, prompt)):
            if run_manager is not None:
                run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            self.streamed += 1
            yield chunk

    async def _astream(
        self,
        prompt: str,
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[GenerationChunk]:
        self._count([prompt], stop)
        for chunk in _chunks(say(self.script, prompt)):
            if run_manager is not None:
                await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            self.streamed += 1
            yield chunk

    def _count(self, prompts: list[str], stop: list[str] | None) -> None:
        self.calls.append(list(prompts))
        self.stops.append(stop)


def _chunks(reply: Reply) -> Iterator[GenerationChunk]:
    for index, piece in enumerate(reply.pieces):
        # As models do, what is known of the first token comes with the first chunk.
        yield GenerationChunk(text=piece, generation_info=dict(reply.info) if index == 0 else None)
