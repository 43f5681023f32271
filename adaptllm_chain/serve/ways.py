"""How a question may be answered: what a client can wish for, and what this server can do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import Runnable, RunnableConfig
from pydantic import BaseModel, ConfigDict, Field

from adaptllm_chain.chain import AdaptiveRetrievalChain
from adaptllm_chain.chain.passage_count import takes_k
from adaptllm_chain.chain.settings import check_prompts, check_retriever, choose_policy
from adaptllm_chain.chain.wrappers import innermost, prompt_spec_of
from adaptllm_chain.errors import AdaptLLMError, InvalidInputError
from adaptllm_chain.ret import Adaptive, AlwaysRetrieve, NeverRetrieve, Policy
from adaptllm_chain.serve.failures import RefusalError


class Wishes(BaseModel):
    """How a question is to be answered; what is left out is as the server is set.

    Attributes:
        mode: One of the modes in ``/settings``.
        threshold: Retrieve from this P(<RET>) on; null: retrieve if the output is ``<RET>``.
        k: How many passages to answer from.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    mode: str | None = Field(default=None, examples=["adaptive"])
    threshold: float | None = Field(default=None, ge=0.0, allow_inf_nan=False, examples=[0.5])
    k: int | None = Field(default=None, ge=1, examples=[1])


@dataclass(frozen=True, slots=True)
class Ending:
    """Where answers end. It is told once for a call of the chain, so only questions with equal ones share a call.

    Attributes:
        stop: Texts at which an answer ends; none for the chain's own.
        max_new_tokens: The most tokens of an answer; ``None`` for the model's own limit.
    """

    stop: tuple[str, ...] = ()
    max_new_tokens: int | None = None

    def arguments(self) -> dict[str, Any]:
        """Write it down for a call of the chain.

        Returns:
            Keyword arguments of its ``batch`` and ``stream``.
        """
        arguments: dict[str, Any] = {}
        if self.stop:
            arguments["stop"] = list(self.stop)
        if self.max_new_tokens is not None:
            arguments["max_new_tokens"] = self.max_new_tokens
        return arguments


@dataclass(frozen=True, slots=True)
class Way:
    """A way of answering a question. Whatever it is, the question can be answered in a batch with others.

    Attributes:
        policy: What decides.
        k: Passages to answer from; ``None`` for as many as the retriever brings by itself.
        ending: Where the answer ends.
    """

    policy: Policy
    k: int | None = None
    ending: Ending = field(default_factory=Ending)

    def config(self, *listeners: BaseCallbackHandler) -> RunnableConfig:
        """Write down what the chain reads for one question.

        Args:
            *listeners: What hears how it is answered.

        Returns:
            LangChain's config.
        """
        settings: dict[str, Any] = {"policy": self.policy}
        if self.k is not None:
            settings["k"] = self.k
        return {"callbacks": list(listeners), "configurable": settings}


class Ways:
    """The ways in which a chain can answer.

    Wishes are checked before a question meets others: a setting that the chain refuses, it refuses for a whole batch.

    Args:
        chain: The chain of the server.
        max_k: The most passages that may be asked for.

    Attributes:
        mode: The mode of the server.
        modes: The modes that it can answer in.
        threshold: The server's threshold on the probability of ``<RET>``; ``None`` if the output itself decides.
        k: Passages a question, unless others are asked for; ``None`` if the retriever does not say.
        max_k: The most passages that may be asked for, the server's own number among them; ``None`` if the retriever
            cannot be told.
    """

    def __init__(self, chain: AdaptiveRetrievalChain, max_k: int) -> None:
        self._chain = chain
        policies = (choose_policy(None, prompt_spec_of(chain.llm)), NeverRetrieve(), AlwaysRetrieve(), chain.policy)
        self._policies = {policy.name: policy for policy in policies}
        self.mode = chain.policy.name
        self.modes = tuple(name for name, policy in self._policies.items() if self._can(policy))
        adaptive = self._policies[Adaptive.name]
        self.threshold = adaptive.threshold if isinstance(adaptive, Adaptive) else None
        self.k = _k_of(chain.retriever)
        self.max_k = max(max_k, self.k or 1) if chain.retriever is not None and takes_k(chain.retriever) else None

    def choose(self, wishes: Wishes, ending: Ending | None = None) -> Way:
        """Turn what a client asks for into a way of answering.

        Args:
            wishes: What it asks for.
            ending: Where the answer is to end.

        Returns:
            The way.

        Raises:
            AdaptLLMError: If this server cannot answer like that.
        """
        policy = self._policy(self.mode if wishes.mode is None else wishes.mode)
        if "threshold" in wishes.model_fields_set:
            policy = _with_threshold(policy, wishes.threshold)
        return Way(policy, self._checked_k(wishes.k) if policy.may_retrieve else None, ending or Ending())

    def ending(self, stop: tuple[str, ...], max_tokens: int | None) -> Ending:
        """Put a client's limits of an answer together with the server's, which hold whatever it asks for.

        Args:
            stop: Texts at which the answer is to end, besides the chain's.
            max_tokens: The most tokens that it is to have.

        Returns:
            Where the answer ends.

        Raises:
            RefusalError: If the model takes no limit.
        """
        stops = (*(self._chain.stop or ()), *stop) if stop else ()
        return Ending(stops, None if max_tokens is None else self._token_limit(max_tokens))

    def _policy(self, mode: str) -> Policy:
        policy = self._policies.get(mode)
        if policy is None:
            raise InvalidInputError(f"mode={mode!r:.80}", expected=f"one of {', '.join(self.modes)}")
        self._check(policy)
        return policy

    def _can(self, policy: Policy) -> bool:
        try:
            self._check(policy)
        except AdaptLLMError:
            # Told to whoever asks for it: there is no retriever, or the adapter lacks the prompt.
            return False
        return True

    def _check(self, policy: Policy) -> None:
        check_prompts(prompt_spec_of(self._chain.llm), self._chain.prompts, policy)
        check_retriever(self._chain.retriever, policy)

    def _token_limit(self, wished: int) -> int | None:
        own = getattr(innermost(self._chain.llm), "max_new_tokens", None)
        if not isinstance(own, int):
            raise RefusalError(
                f"max_tokens={wished!r:.80}, but the model of this server takes no limit with a question",
                status=400,
                code="unsupported_parameter",
                expected="a request without max_tokens and max_completion_tokens",
            )
        return wished if wished < own else None

    def _checked_k(self, k: int | None) -> int | None:
        # Left out where it says nothing new, so that such a question is searched for together with the others.
        if k is None or k == self.k:
            return None
        if self.max_k is None:
            raise InvalidInputError(
                f"k={k!r:.80}, but the retriever of this server brings as many passages as it likes",
                expected="a request without k",
            )
        if k > self.max_k:
            raise InvalidInputError(f"k={k!r:.80}", expected=f"a whole number from 1 to {self.max_k}")
        return k


def _with_threshold(policy: Policy, threshold: float | None) -> Policy:
    kind = type(policy)
    if "threshold" in kind.model_fields:
        return kind(**{**dict(policy), "threshold": threshold})
    if threshold is None:
        return policy
    raise InvalidInputError(
        f"threshold={threshold:g} says nothing to the mode {policy.name}",
        expected=f"a threshold with the mode {Adaptive.name}",
        hint=f'"mode": "{policy.name}" alone, or "mode": "{Adaptive.name}" with the threshold',
    )


def _k_of(retriever: Runnable[Any, Any] | None) -> int | None:
    """How many passages a retriever brings by itself.

    Those over a vector store keep it among the search's arguments; some have a field for it, which these overrule.
    """
    inner = None if retriever is None else innermost(retriever)
    arguments = getattr(inner, "search_kwargs", None)
    k = (arguments if isinstance(arguments, Mapping) else {}).get("k", getattr(inner, "k", None))
    return k if isinstance(k, int) else None
