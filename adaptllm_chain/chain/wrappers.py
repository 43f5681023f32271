"""Looking through LangChain's wrappers at the model inside."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import Runnable, RunnableWithFallbacks
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.configurable import DynamicRunnable

from adaptllm_chain.prompts import HasPromptSpec, PromptSpec


def innermost(runnable: Runnable[Any, Any]) -> Runnable[Any, Any]:
    """Unwrap bindings, retries, fallbacks and configurable fields.

    Args:
        runnable: A model, wrapped or not.

    Returns:
        What is inside; of fallbacks, the first choice; of configurable fields, the default.
    """
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
