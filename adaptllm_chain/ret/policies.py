"""Policies: what decides between answering from memory and retrieving."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adaptllm_chain.errors import InvalidInputError, MissingLogprobsError
from adaptllm_chain.records import Decision, PromptKind, RetSignal
from adaptllm_chain.ret.judge import Judge
from adaptllm_chain.ret.marker import REASONS, Spelling, is_request
from adaptllm_chain.ret.refusal import refusal

PolicyName = Literal["never_retrieve", "always_retrieve", "adaptive", "popularity"]

# Policies that a name alone does not make: what they need, and how they are made.
_NEED_SETTINGS = {
    "popularity": (
        "a threshold",
        "monthly page views from which the model answers from memory",
        "policy=PopularityThreshold(threshold=1000)",
    ),
    "decision_model": ("a decision model", "one of LangChain's decision models", "policy=DecisionModelPolicy(model=…)"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a policy may look at.

    Attributes:
        question: The question as it was typed.
        popularity: How popular its subject is, if the input said so; as it stands there, unchecked.
        spelling: What the model's first output was; ``None`` if the policy asks for no output.
        signal: What is known of the probability of the marker, or what the policy's judge said.
    """

    question: str
    popularity: Any = None
    spelling: Spelling | None = None
    signal: RetSignal = field(default_factory=RetSignal)


class Policy(BaseModel, ABC):
    """Decides whether a question is answered from memory or with retrieval.

    Args:
        **settings: The policy's settings; wrong ones raise an ``InvalidInputError``.

    Attributes:
        name: How the policy is called in settings and reports.
        opening: The prompt whose output is read before deciding; ``None`` to decide without one.
        needs: The kinds of prompt that the policy is certain to use for some question.
        may_retrieve: Whether the policy can ask for a search at all.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: ClassVar[str]
    opening: ClassVar[PromptKind | None] = None
    needs: ClassVar[tuple[PromptKind, ...]]
    may_retrieve: ClassVar[bool] = True

    def __init__(self, **settings: Any) -> None:
        try:
            super().__init__(**settings)
        except ValidationError as error:
            raise refusal(type(self), error) from error

    @property
    def judge(self) -> Judge | None:
        """The decision model to ask before deciding; ``None`` to decide without one."""
        return None

    @abstractmethod
    def decide(self, evidence: Evidence) -> Decision:
        """Decide about one question.

        Args:
            evidence: What is known of it.

        Returns:
            The route and why.
        """


class NeverRetrieve(Policy):
    """Answers every question from memory, with the closed-book prompt."""

    name: ClassVar[str] = "never_retrieve"
    needs: ClassVar[tuple[PromptKind, ...]] = ("closed_book",)
    may_retrieve: ClassVar[bool] = False

    def decide(self, evidence: Evidence) -> Decision:
        """Answer from memory.

        Args:
            evidence: Not looked at.

        Returns:
            The route ``"direct"``.
        """
        return Decision(route="direct", rule="never", reason="the policy never retrieves")


class AlwaysRetrieve(Policy):
    """Retrieves for every question."""

    name: ClassVar[str] = "always_retrieve"
    needs: ClassVar[tuple[PromptKind, ...]] = ("context",)

    def decide(self, evidence: Evidence) -> Decision:
        """Retrieve.

        Args:
            evidence: Not looked at.

        Returns:
            The route ``"retrieve"``.
        """
        return Decision(route="retrieve", rule="always", reason="the policy always retrieves")


class Adaptive(Policy):
    """Adapt-LLM: the model itself says whether it needs retrieval.

    Attributes:
        threshold: ``None``: retrieve if the output asks for it (the paper's rule). A number:
            retrieve if the probability of the marker is at least that, whatever the output says.
            The model must then report log-probabilities. An LLM in a wrapper (``with_retry``,
            ``with_fallbacks``) reports none for an answer out of its LangChain cache.
    """

    name: ClassVar[str] = "adaptive"
    opening: ClassVar[PromptKind | None] = "parametric"
    needs: ClassVar[tuple[PromptKind, ...]] = ("parametric", "context")

    threshold: float | None = Field(default=None, ge=0.0, le=1.0, examples=[0.5])

    def decide(self, evidence: Evidence) -> Decision:
        """Follow the output, or the probability if there is a threshold.

        Args:
            evidence: The first output's spelling and signal.

        Returns:
            The decision.

        Raises:
            MissingLogprobsError: If there is a threshold and the model reports no log-probabilities.
        """
        if self.threshold is not None:
            return self._by_probability(evidence.signal, self.threshold)
        spelling = evidence.spelling or "answer"
        return Decision(
            route="retrieve" if is_request(spelling) else "direct",
            rule="token",
            reason=REASONS[spelling],
            signal=evidence.signal,
        )

    def _by_probability(self, signal: RetSignal, threshold: float) -> Decision:
        if signal.probability is None or math.isnan(signal.probability):
            raise MissingLogprobsError(
                f"the threshold {threshold} needs the probability of <RET>, but the model reports no log-probabilities",
                expected="generation_info or response_metadata with logprobs that are numbers",
                hint="ask the model for them, e.g. llm.bind(logprobs=True, top_logprobs=5) (ChatOpenAI: with "
                "use_responses_api=False), use LocalLLM, "
                "or decide by the output itself: policy=Adaptive(). If it does report them, but an LLM cache answered: "
                "in a wrapper (with_retry, with_fallbacks) the cache keeps the text alone; take cache=… off the LLM, "
                "or the wrapper",
            )
        if signal.kind == "upper_bound":
            retrieves = False
            reason = f"<RET> is not among the reported log-probabilities: it has at most {signal.probability:.3g}"
            if signal.probability >= threshold:
                reason += f", which leaves the threshold {threshold:g} undecided"
        else:
            retrieves = signal.probability >= threshold
            what = "the first piece of <RET>" if signal.kind == "first_piece" else "<RET>"
            side = "reaches" if retrieves else "is below"
            reason = f"the probability of {what}, {signal.probability:.3g}, {side} the threshold {threshold:g}"
        return Decision(
            route="retrieve" if retrieves else "direct",
            rule="probability",
            reason=reason,
            signal=signal,
            threshold=threshold,
        )


class PopularityThreshold(Policy):
    """Retrieves for questions about little-known subjects (PopQA's rule).

    Attributes:
        threshold: From this popularity on, the model answers from memory.
        lookup: Finds the popularity of a question's subject when the input does not give it.
    """

    name: ClassVar[str] = "popularity"
    needs: ClassVar[tuple[PromptKind, ...]] = ("closed_book", "context")

    threshold: float = Field(ge=0.0, examples=[1000])
    lookup: Callable[[str], float | None] | None = None

    def decide(self, evidence: Evidence) -> Decision:
        """Compare the popularity with the threshold.

        Args:
            evidence: The question and, unless there is a lookup, its popularity.

        Returns:
            The decision.

        Raises:
            InvalidInputError: If the popularity is not known, or no finite number.
        """
        given = evidence.popularity
        source = "the input"
        if given is None and self.lookup is not None:
            given = self.lookup(evidence.question)
            source = "the lookup"
        if given is None:
            raise InvalidInputError(
                f"the popularity of {evidence.question!r} is not known",
                expected='an input {"question": …, "popularity": number}, or a lookup that knows it',
                hint="PopularityThreshold(threshold=…, lookup=function from question to number)",
            )
        if isinstance(given, bool) or not isinstance(given, Real) or not math.isfinite(given):
            raise InvalidInputError(
                f"the popularity of {evidence.question!r} in {source} is {given!r}",
                expected="a finite number such as 1200, or None where it is not known",
            )
        popularity = float(given)
        known = popularity >= self.threshold
        side = "reaches" if known else "is below"
        return Decision(
            route="direct" if known else "retrieve",
            rule="popularity",
            reason=f"the popularity {popularity:g} {side} the threshold {self.threshold:g}",
            threshold=self.threshold,
        )


def as_policy(policy: Policy | str) -> Policy:
    """Make a policy of its name.

    Args:
        policy: A policy, which is returned as it is, or the name of one that needs no settings.

    Returns:
        The policy.

    Raises:
        InvalidInputError: For an unknown name, or the name of a policy that needs settings.
    """
    if isinstance(policy, Policy):
        return policy
    simple = {kind.name: kind for kind in (NeverRetrieve, AlwaysRetrieve, Adaptive)}
    if isinstance(policy, str) and policy in simple:
        return simple[policy]()
    if isinstance(policy, str) and policy in _NEED_SETTINGS:
        needed, expected, hint = _NEED_SETTINGS[policy]
        raise InvalidInputError(f"the policy {policy!r} needs {needed}", expected=expected, hint=hint)
    raise InvalidInputError(
        f"unknown policy {policy!r}", expected=f"a Policy, or one of {', '.join(get_args(PolicyName))}"
    )
