"""Looking through LangChain's wrappers at the model inside."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import BaseLanguageModel
from langchain_core.runnables import Runnable, RunnableSequence, RunnableWithFallbacks
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.configurable import DynamicRunnable

from adaptllm_chain.prompts import HasPromptSpec, PromptSpec


def innermost(runnable: Runnable[Any, Any]) -> Runnable[Any, Any]:
    """Unwrap bindings, retries, fallbacks, configurable fields, and sequences with a model in them.

    Args:
        runnable: A model, wrapped or not.

    Returns:
        What is inside; of fallbacks, the first choice; of configurable fields, the default; of a
        sequence such as ``llm | StrOutputParser()``, its first language model.
    """
    runnable = _unwrapped(runnable)
    if isinstance(runnable, RunnableSequence):
        inner = map(innermost, runnable.steps)
        return next((step for step in inner if isinstance(step, BaseLanguageModel)), runnable)
    return runnable


def takes_stop(runnable: Runnable[Any, Any]) -> bool:
    """Say whether a Runnable can be called with stop texts.

    Args:
        runnable: A model, wrapped or not.

    Returns:
        Whether a language model gets the arguments of the call; in a sequence, only the first step does.
    """
    runnable = _unwrapped(runnable)
    while isinstance(runnable, RunnableSequence):
        runnable = _unwrapped(runnable.first)
    return isinstance(runnable, BaseLanguageModel)


def _unwrapped(runnable: Runnable[Any, Any]) -> Runnable[Any, Any]:
    while True:
        if isinstance(runnable, RunnableBindingBase):
            runnable = runnable.bound
        elif isinstance(runnable, RunnableWithFallbacks):
            runnable = runnable.runnable
        elif isinstance(runnable, DynamicRunnable):
            runnable = runnable.default
        else:
            return runnable


def prompt_spec_of(llm: Runnable[Any, Any]) -> PromptSpec | None:
    """Find out what a model's adapter was trained on.

    Args:
        llm: A model, wrapped or not.

    Returns:
        Its specification; ``None`` if it has none, or formats no prompts itself.
    """
    model = innermost(llm)
    return model.prompt_spec if isinstance(model, HasPromptSpec) else None
