"""A chat model that follows a script."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import Field

from adaptllm_chain.testing.script import Reply, Script, say


class ScriptedChatModel(BaseChatModel):
    """A LangChain chat model without a model: streams, sync and async, and counts its calls.

    What a reply reports beside its text stands in the message's ``response_metadata``.

    Attributes:
        script: What it says to which prompt; the prompt is the text of the last message.
        calls: The prompt of each call, in order.
        stops: The stop texts that each call was given; they are not obeyed.
        streamed: How many chunks have been streamed.
    """

    script: Script = Field(exclude=True, repr=False)
    calls: list[str] = Field(default_factory=list, exclude=True, repr=False)
    stops: list[list[str] | None] = Field(default_factory=list, exclude=True, repr=False)
    streamed: int = 0

    @property
    def _llm_type(self) -> str:
        return "scripted-chat"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        reply = self._say(messages, stop)
        message = AIMessage(content=reply.text, response_metadata=dict(reply.info))
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return self._generate(messages, stop)

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        for chunk in _chunks(self._say(messages, stop)):
            if run_manager is not None:
                run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            self.streamed += 1
            yield chunk

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in _chunks(self._say(messages, stop)):
            if run_manager is not None:
                await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            self.streamed += 1
            yield chunk

    def _say(self, messages: list[BaseMessage], stop: list[str] | None) -> Reply:
        prompt = str(messages[-1].text)
        self.calls.append(prompt)
        self.stops.append(stop)
        return say(self.script, prompt)


def _chunks(reply: Reply) -> Iterator[ChatGenerationChunk]:
    for index, piece in enumerate(reply.pieces):
        # As models do, what is known of the first token comes with the first chunk.
        metadata = dict(reply.info) if index == 0 else {}
        yield ChatGenerationChunk(message=AIMessageChunk(content=piece, response_metadata=metadata))
