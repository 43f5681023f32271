"""Settings that one call may change, by LangChain's own means: ``config={"configurable": {…}}``.

``policy`` and ``threshold`` decide, ``k`` is the number of passages. They are read for each question, so that a batch
whose questions have settings of their own is still asked and searched for as one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from langchain_core.runnables import ConfigurableFieldSpec, RunnableConfig

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.ret import Policy, as_policy
from adaptllm_chain.ret.policies import PolicyName


def call_specs(policy: Policy, taken: Collection[str]) -> list[ConfigurableFieldSpec]:
    """Describe the settings that a call may change.

    Args:
        policy: The chain's policy, which gives the defaults.
        taken: The ids that the model or the retriever declares itself; its description stands.

    Returns:
        A specification for each of the others.
    """
    specs = [
        ConfigurableFieldSpec(
            id="policy",
            annotation=PolicyName,
            name="Policy",
            description="What decides, instead of the chain's policy: a name, or in Python a Policy.",
            default=policy.name,
        ),
        ConfigurableFieldSpec(
            id="threshold",
            annotation=float | None,
            name="Threshold",
            description="The policy's threshold; null lets the adaptive policy follow the output itself.",
            default=getattr(policy, "threshold", None),
        ),
        ConfigurableFieldSpec(
            id="k",
            annotation=int | None,
            name="Passages",
            description="Passages a search, at most; null leaves it to the retriever.",
        ),
    ]
    return [spec for spec in specs if spec.id not in taken]


def policy_of_call(config: RunnableConfig, policy: Policy) -> Policy:
    """Choose the policy for one question.

    Args:
        config: LangChain's config for it.
        policy: The chain's policy; its own name in the config stands for it, with its settings.

    Returns:
        The policy that was asked for, with the threshold that was; otherwise the chain's.

    Raises:
        InvalidInputError: If there is no such policy, or none with such a threshold.
    """
    given = _given(config)
    named = given.get("policy")
    chosen = policy if named is None or named == policy.name else as_policy(named)
    if "threshold" not in given:
        return chosen
    if "threshold" not in type(chosen).model_fields:
        raise InvalidInputError(
            f"threshold={given['threshold']!r}, but the policy {chosen.name!r} has none",
            expected="a policy with a threshold",
            hint='config={"configurable": {"policy": "adaptive", "threshold": 0.3}}',
        )
    return type(chosen)(**{**dict(chosen), "threshold": given["threshold"]})


def k_of_call(config: RunnableConfig) -> int | None:
    """Read the number of passages for one question.

    Args:
        config: LangChain's config for it.

    Returns:
        Passages a search, at most; ``None`` to leave it to the retriever.

    Raises:
        InvalidInputError: If it is no whole number from 1 on.
    """
    k = _given(config).get("k")
    if k is not None and (isinstance(k, bool) or not isinstance(k, int) or k < 1):
        raise InvalidInputError(
            f"k={k!r}",
            expected="the most passages a search, at least 1, or None to leave it to the retriever",
            hint='config={"configurable": {"k": 3}}',
        )
    return k


def _given(config: RunnableConfig) -> Mapping[str, Any]:
    return config.get("configurable") or {}
