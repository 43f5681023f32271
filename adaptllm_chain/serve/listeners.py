"""What is heard while one question is answered: the tokens that it takes, and the decision when it is taken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, Generation, LLMResult

from adaptllm_chain.chain.announcing import DECISION_EVENT
from adaptllm_chain.records import Decision
from adaptllm_chain.serve.progress import Usage


class UsageListener(BaseCallbackHandler):
    """Hears, for one question, what each call of the model took."""

    def __init__(self) -> None:
        self._calls: list[Usage | None] = []

    @property
    def usage(self) -> Usage | None:
        """The sum over all calls; ``None`` if one of them did not say, or there was none."""
        known = [call for call in self._calls if call is not None]
        return sum(known, Usage()) if known and len(known) == len(self._calls) else None

    def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
        """Ignore the start; LangChain would otherwise write the messages out as text.

        Args:
            *args: Not used.
            **kwargs: Not used.
        """

    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        """Take a finished call.

        Args:
            response: The model's result for one prompt.
            **kwargs: Not used.
        """
        generation = response.generations[0][0] if response.generations and response.generations[0] else None
        self._calls.append(_usage_of(generation) if isinstance(generation, Generation) else None)

    def on_llm_error(self, error: BaseException, **kwargs: Any) -> None:
        """Take a call that broke off, whose tokens nobody counted.

        Args:
            error: Why; also that a stream was left.
            **kwargs: Not used.
        """
        self._calls.append(None)


class DecisionListener(BaseCallbackHandler):
    """Hears the decision when it is taken: the result tells it only together with the passages.

    Attributes:
        taken: The decision; there once it has been taken.
    """

    taken: Decision

    def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
        """Take the decision.

        Args:
            name: What the event is called.
            data: What it tells.
            **kwargs: Not used.
        """
        if name == DECISION_EVENT:
            self.taken = data


def _usage_of(generation: Generation) -> Usage | None:
    counts: Mapping[str, Any] = generation.generation_info or {}
    names = ("prompt_tokens", "completion_tokens")
    if isinstance(generation, ChatGeneration) and isinstance(generation.message, AIMessage):
        counts, names = generation.message.usage_metadata or {}, ("input_tokens", "output_tokens")
    read, written = (counts.get(name) for name in names)
    return Usage(read, written) if isinstance(read, int) and isinstance(written, int) else None
