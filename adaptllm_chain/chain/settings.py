"""Checking the chain's settings against each other, before anything is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from langchain_core.runnables import Runnable
from langchain_core.runnables.base import coerce_to_runnable

from adaptllm_chain.errors import InvalidInputError, PromptMismatchError
from adaptllm_chain.prompts import PromptSpec, PromptTemplates
from adaptllm_chain.ret import Adaptive, Policy, as_policy

RunnableLike: TypeAlias = Runnable[Any, Any] | Callable[..., Any]


def as_runnable(what: Literal["llm", "retriever"], thing: RunnableLike) -> Runnable[Any, Any]:
    """Take a model or a retriever in any form that LangChain makes a Runnable of.

    Args:
        what: The name of the setting.
        thing: What was given for it.

    Returns:
        The Runnable.

    Raises:
        InvalidInputError: If it is no Runnable and no function.
    """
    try:
        return coerce_to_runnable(thing)
    except TypeError as error:
        raise InvalidInputError(
            f"{what}={thing!r:.80} is a {type(thing).__name__}",
            expected=f"a LangChain {'model' if what == 'llm' else 'retriever'}, another Runnable, or a function",
            hint="retriever=store.as_retriever()" if hasattr(thing, "as_retriever") else None,
        ) from error


def choose_policy(policy: Policy | str | None, spec: PromptSpec | None) -> Policy:
    """Take the policy that was given, or the best default for the model.

    Args:
        policy: A policy, its name, or ``None``.
        spec: What the model's adapter was trained on.

    Returns:
        The policy; by default the adaptive one, with the threshold saved beside the adapter.
    """
    if policy is not None:
        return as_policy(policy)
    return Adaptive(threshold=spec.ret_threshold if spec else None)


def check_prompts(spec: PromptSpec | None, prompts: PromptTemplates | None, policy: Policy) -> None:
    """Refuse prompts that the model's adapter was not trained on.

    Args:
        spec: What the adapter was trained on; ``None`` for a model that may read anything.
        prompts: The prompt texts that were given.
        policy: The policy, which says what kinds of prompt it needs.

    Raises:
        PromptMismatchError: If the adapter knows other prompt texts or lacks a kind.
    """
    if spec is None:
        return
    if prompts is not None and prompts != spec.templates:
        raise PromptMismatchError(
            f"the prompts that were given are not those of the model's adapter: {prompts!r}",
            expected=f"{spec.templates!r}",
            hint="leave prompts out: the chain takes the adapter's",
        )
    for kind in policy.needs:
        spec.check(kind)


def check_retriever(retriever: Any, policy: Policy) -> None:
    """Refuse a policy that may retrieve without a retriever.

    Args:
        retriever: The retriever, or ``None``.
        policy: The policy.

    Raises:
        InvalidInputError: If the policy may retrieve and there is no retriever.
    """
    if retriever is None and policy.may_retrieve:
        raise InvalidInputError(
            f"the policy {policy.name!r} may retrieve, but there is no retriever",
            expected="a retriever",
            hint='retriever=…, or policy="never_retrieve"',
        )


def read_stops(stop: Sequence[str] | None) -> list[str]:
    """Check the texts at which an answer ends.

    Args:
        stop: The texts.

    Returns:
        The texts as a list.

    Raises:
        InvalidInputError: If they are not a list of non-empty texts.
    """
    stops = list(stop or ())
    if isinstance(stop, str) or not all(isinstance(text, str) and text for text in stops):
        raise InvalidInputError(f"stop={stop!r}", expected="a list of non-empty texts", hint='stop=["\\n"]')
    return stops


def check_concurrency(*configs: Mapping[str, Any]) -> None:
    """Refuse a limit under which nothing could run.

    Args:
        *configs: LangChain's config for each question.

    Raises:
        InvalidInputError: If a ``max_concurrency`` is no whole number from 1 on.
    """
    for config in configs:
        limit = config.get("max_concurrency")
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
            raise InvalidInputError(
                f"max_concurrency={limit!r}",
                expected="the most prompts in one call, at least 1, or None for no limit",
                hint='config={"max_concurrency": 8}',
            )
