"""What answers cost: model calls and tokens, counted where LangChain tells of them."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Any, Self
from uuid import UUID

from langchain_core.caches import RETURN_VAL_TYPE, InMemoryCache
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.outputs import ChatGeneration, Generation, LLMResult
from pydantic import BaseModel, ConfigDict


class Cost(BaseModel):
    """What some answers cost.

    Attributes:
        model_calls: Prompts that the model answered; one that a cache answered counts as if asked again.
        prompt_tokens: Tokens it read, where it says so.
        completion_tokens: Tokens it wrote, where it says so.
        shared: Calls that a cache answered because another mode had asked the same: the seconds of such answers say
            nothing.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    model_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    shared: int = 0

    def __add__(self, other: Self) -> Self:
        pairs = zip(self.model_dump().items(), other.model_dump().values(), strict=True)
        return type(self)(**{name: ours + theirs for (name, ours), theirs in pairs})


class CostMeter(BaseCallbackHandler):
    """Counts the calls of a language model.

    Attributes:
        cost: What was counted since the last ``take``.
    """

    def __init__(self) -> None:
        self.cost = Cost()
        self._lock = Lock()  # models without true batches answer in threads

    def count(self, generations: Sequence[Generation], *, shared: bool) -> None:
        """Count one answered prompt.

        Args:
            generations: What the model said to it.
            shared: Whether a cache said it.
        """
        tokens = [_tokens(generation) for generation in generations]
        call = Cost(
            model_calls=1,
            prompt_tokens=max((read for read, _ in tokens), default=0),
            completion_tokens=sum(written for _, written in tokens),
            shared=int(shared),
        )
        with self._lock:
            self.cost += call

    def take(self) -> Cost:
        """Read the meter and set it back.

        Returns:
            What was counted since the last time.
        """
        with self._lock:
            taken, self.cost = self.cost, Cost()
        return taken

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """Count what a model answered; LangChain calls this.

        Args:
            response: The answers.
            run_id: The run.
            **kwargs: What else LangChain tells.
        """
        for generations in response.generations:
            self.count([row for row in generations if isinstance(row, Generation)], shared=False)


class SharedAnswers(InMemoryCache):
    """A cache through which modes share answers: adaptive asks with passages what always_retrieve has asked already.

    Args:
        meter: Counts what the cache answers, since LangChain starts no run for it.
    """

    def __init__(self, meter: CostMeter) -> None:
        super().__init__()
        self._meter = meter

    def lookup(self, prompt: str, llm_string: str) -> RETURN_VAL_TYPE | None:
        """Look an answer up.

        Args:
            prompt: The prompt.
            llm_string: The model and its settings.

        Returns:
            What the model said to it before, if it did.
        """
        found = super().lookup(prompt, llm_string)
        if found is not None:
            self._meter.count(found, shared=True)
        return found


def _tokens(generation: Generation) -> tuple[int, int]:
    """Read how many tokens a prompt and its answer had; zeros if the model does not say."""
    info = generation.generation_info or {}
    if "prompt_tokens" in info:
        return int(info["prompt_tokens"]), int(info.get("completion_tokens", 0))
    usage = getattr(generation.message, "usage_metadata", None) if isinstance(generation, ChatGeneration) else None
    return (int(usage["input_tokens"]), int(usage["output_tokens"])) if usage else (0, 0)
