"""A callback handler that catches what a model reports beside its text.

LangChain's LLMs stream and return bare text; their ``generation_info`` reaches callbacks alone. The
same handler reads through wrappers (``with_retry``, ``with_fallbacks``, a model inside a sequence).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, Generation, GenerationChunk, LLMResult


@dataclass(slots=True)
class _Heard:
    text: str = ""
    infos: list[Mapping[str, Any]] = field(default_factory=list)


class InfoListener(BaseCallbackHandler):
    """Remembers, for one call, the text and the reported information of every model run in it."""

    # Not run_inline: next to an inline handler, langchain-core 1.8's async manager starts no LLM run
    # for the others. Events are awaited before the chunk is passed on, so nothing comes too late.

    def __init__(self) -> None:
        self._runs: dict[UUID, _Heard] = {}

    def infos(self, text: str) -> list[Mapping[str, Any]]:
        """Find what was reported beside a text.

        Args:
            text: The text, or its beginning, as it came out of the call.

        Returns:
            What the latest run that said this text reported, in order; empty if none did.
        """
        for heard in reversed(self._runs.values()):
            if heard.text.strip().startswith(text.strip()):
                return heard.infos
        return []

    def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
        """Ignore the start; LangChain would otherwise write the messages out as text.

        Args:
            *args: Not used.
            **kwargs: Not used.
        """

    def on_llm_new_token(
        self,
        token: str | list[str | dict[str, Any]],
        *,
        chunk: GenerationChunk | ChatGenerationChunk | None = None,
        run_id: UUID,
        **kwargs: Any,
    ) -> None:
        """Take a streamed chunk.

        Args:
            token: Its text.
            chunk: The chunk with its information, if the model passes it on.
            run_id: The model's run.
            **kwargs: Not used.
        """
        heard = self._runs.setdefault(run_id, _Heard())
        if chunk is None:
            heard.text += token if isinstance(token, str) else ""
            return
        heard.text += chunk.text
        heard.infos.append(info_of(chunk))

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """Take the finished output.

        Args:
            response: The model's result for one prompt.
            run_id: The model's run.
            **kwargs: Not used.
        """
        if response.generations and response.generations[0]:
            generation = response.generations[0][0]
            self._runs[run_id] = _Heard(generation.text, [info_of(generation)])


def info_of(output: Generation | BaseMessage) -> Mapping[str, Any]:
    """Gather what a model reported beside an output.

    Args:
        output: A generation, a message, or a chunk of either.

    Returns:
        Its information; empty if there is none.
    """
    if isinstance(output, BaseMessage):
        return output.response_metadata
    info: dict[str, Any] = dict(output.generation_info or {})
    if isinstance(output, ChatGeneration):
        info = {**output.message.response_metadata, **info}
    return info
