"""The chain with other settings: one for every way of answering that is asked for, on the same model and retriever."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable

from adaptllm_chain.chain import AdaptiveRetrievalChain
from adaptllm_chain.chain.settings import choose_policy
from adaptllm_chain.chain.wrappers import innermost, prompt_spec_of
from adaptllm_chain.errors import AdaptLLMError, InvalidInputError
from adaptllm_chain.ret import Adaptive, AlwaysRetrieve, NeverRetrieve, Policy
from adaptllm_chain.serve.failures import RefusalError
from adaptllm_chain.serve.requests import Wishes

# Thresholds are numbers of the client's choice: without a limit they could fill the memory.
_KEPT = 64


@dataclass(frozen=True, slots=True)
class Way:
    """A way of answering. Questions that are answered in the same way can be answered together.

    Attributes:
        policy: What decides.
        k: Passages a question; ``None`` for as many as the retriever brings by itself.
        stop: Texts at which an answer ends, besides the chain's.
        max_new_tokens: The most tokens of an answer; ``None`` for the model's own limit.
    """

    policy: Policy
    k: int | None = None
    stop: tuple[str, ...] = ()
    max_new_tokens: int | None = None

    def arguments(self, chain: AdaptiveRetrievalChain) -> dict[str, Any]:
        """Write down what is told with each call of a chain.

        Args:
            chain: The chain.

        Returns:
            Keyword arguments of its ``batch`` and ``stream``.
        """
        arguments: dict[str, Any] = {}
        if self.stop:
            arguments["stop"] = [*(chain.stop or ()), *self.stop]
        if self.max_new_tokens is not None:
            arguments["max_new_tokens"] = self.max_new_tokens
        return arguments


class Variants:
    """Chains that differ from a given one in policy and number of passages.

    LangChain's configurable fields would do for one question, but not for a batch of them: they are part of the
    config, and a chain is built anew for each.

    Args:
        chain: The chain of the server.
        max_k: The most passages that may be asked for.

    Attributes:
        mode: The mode of the server.
        modes: The modes that it can answer in.
        k: Passages a question, unless others are asked for; ``None`` if the retriever does not say.
        threshold: The server's threshold on the probability of ``<RET>``; ``None`` if the output itself decides.
    """

    def __init__(self, chain: AdaptiveRetrievalChain, max_k: int) -> None:
        spec = prompt_spec_of(chain.llm)
        policies = (choose_policy(None, spec), NeverRetrieve(), AlwaysRetrieve(), chain.policy)
        self._chain = chain
        self._max_k = max_k
        self._policies = {policy.name: policy for policy in policies}
        self._refused: dict[str, AdaptLLMError] = {}
        self._built = lru_cache(maxsize=_KEPT)(self._build)
        for name, policy in self._policies.items():
            try:
                self._built(policy, None)
            except AdaptLLMError as error:
                # Told to whoever asks for this mode: there is no retriever, or the adapter lacks the prompt.
                self._refused[name] = error
        self.mode = chain.policy.name
        self.modes = tuple(name for name in self._policies if name not in self._refused)
        self.k = _k_of(chain.retriever)
        adaptive = self._policies[Adaptive.name]
        self.threshold = adaptive.threshold if isinstance(adaptive, Adaptive) else None

    def choose(self, wishes: Wishes) -> Way:
        """Turn what a client asks for into a way of answering.

        Args:
            wishes: What it asks for.

        Returns:
            The way.

        Raises:
            AdaptLLMError: If this server cannot answer like that.
        """
        mode = self.mode if wishes.mode is None else wishes.mode
        if mode in self._refused:
            raise self._refused[mode].with_traceback(None)
        if mode not in self.modes:
            raise InvalidInputError(f"mode={mode!r:.80}", expected=f"one of {', '.join(self.modes)}")
        policy = self._policies[mode]
        if "threshold" in wishes.model_fields_set:
            policy = _with_threshold(policy, wishes.threshold)
        return Way(policy, self._checked_k(wishes.k) if policy.may_retrieve else None)

    def chain_for(self, way: Way) -> AdaptiveRetrievalChain:
        """Find or build the chain for a way of answering.

        Args:
            way: The way.

        Returns:
            The chain; built once for the ways of late.
        """
        return self._built(way.policy, way.k)

    def token_limit(self, wished: int | None) -> int | None:
        """Turn a client's limit on the tokens of an answer into one for the model.

        Args:
            wished: The most tokens that it wants.

        Returns:
            The limit; ``None`` if the model's own is no larger.

        Raises:
            RefusalError: If the model takes no limit.
        """
        if wished is None:
            return None
        own = getattr(innermost(self._chain.llm), "max_new_tokens", None)
        if not isinstance(own, int):
            raise RefusalError(
                f"max_tokens={wished}, but the model of this server takes no limit with a question",
                status=400,
                code="unsupported_parameter",
                expected="a request without max_tokens and max_completion_tokens",
            )
        return wished if wished < own else None

    def _checked_k(self, k: int | None) -> int | None:
        # Left as it is where it says nothing new, so that such a question is answered together with the others.
        if k is None or k == self.k:
            return None
        if k > self._max_k:
            raise InvalidInputError(f"k={k}", expected=f"a whole number from 1 to {self._max_k}")
        _with_k(self._chain.retriever, k)
        return k

    def _build(self, policy: Policy, k: int | None) -> AdaptiveRetrievalChain:
        chain = self._chain
        if policy == chain.policy and k is None:
            return chain
        return AdaptiveRetrievalChain(
            llm=chain.llm,
            retriever=chain.retriever if k is None else _with_k(chain.retriever, k),
            policy=policy,
            prompts=chain.prompts,
            max_rounds=chain.max_rounds,
            on_empty=chain.on_empty,
            abstain_text=chain.abstain_text,
            stop=chain.stop,
            name=chain.name,
        )


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


# Retrievers over a vector store keep their number of passages among the search's arguments; some have a field for it,
# which those arguments overrule.


def _search_arguments(retriever: Runnable[Any, Any] | None) -> Mapping[str, Any] | None:
    arguments = getattr(retriever, "search_kwargs", None)
    return arguments if isinstance(arguments, Mapping) else None


def _k_of(retriever: Runnable[Any, Any] | None) -> int | None:
    k = (_search_arguments(retriever) or {}).get("k", getattr(retriever, "k", None))
    return k if isinstance(k, int) else None


def _with_k(retriever: Runnable[Any, Any] | None, k: int) -> Runnable[Any, Any]:
    arguments = _search_arguments(retriever)
    if isinstance(retriever, BaseRetriever):
        if "k" in type(retriever).model_fields and "k" not in (arguments or {}):
            return retriever.model_copy(update={"k": k})
        if arguments is not None:
            return retriever.model_copy(update={"search_kwargs": {**arguments, "k": k}})
    raise InvalidInputError(
        f"k={k}, but the retriever of this server brings as many passages as it likes",
        expected="a request without k",
    )
