"""The four systems that AGREE's evaluation compares (arXiv:2311.09533), declared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from langchain_core.runnables import Runnable

from adaptllm_chain.agree import GroundedAnswerChain, GroundedPrompt, Grounder, GroundingLoop, PostHocAttribution
from adaptllm_chain.entailment import EntailmentScorer
from adaptllm_chain.records import Route

# Behind its answer a model that was shown examples goes on with a question of its own.
_END_OF_EXAMPLE = ("\n\n",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingredients:
    """What systems are made of.

    Attributes:
        llm: The model: the base, or the one that was tuned to cite.
        retriever: The retriever, the same for all systems.
        scorer: The judge of entailment that a system asks while it answers.
        k: Passages a prompt; for post-hoc attribution, passages a sentence.
        budget: The most model calls of test-time adaptation.
    """

    llm: Any
    retriever: Runnable[Any, Any]
    scorer: EntailmentScorer
    k: int
    budget: int


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """One way of answering with citations.

    Attributes:
        title: How tables call it.
        tuned: Whether its model is the one that was tuned to cite.
        route: Whether it answers from memory or from passages.
        chain: The class of its chain.
        own: The settings that this system has beside those of all.
        effort: Says of a result how many model calls and searches it took.
    """

    title: str
    tuned: bool
    route: Route
    chain: type[Grounder]
    own: Callable[[Ingredients], dict[str, Any]]
    effort: Callable[[Mapping[str, Any]], tuple[int, int]]

    def build(self, given: Ingredients, **settings: Any) -> Grounder:
        """Make the chain.

        Args:
            given: What it is made of.
            **settings: Settings of the chain in the place of the system's.

        Returns:
            The chain.
        """
        common = {"llm": given.llm, "retriever": given.retriever, "k": given.k}
        return self.chain(**{**common, **self.own(given), **settings})


def one_search(result: Mapping[str, Any]) -> tuple[int, int]:
    """Count the effort of a chain that searches once and asks the model if that brings anything.

    Args:
        result: A ``GroundedAnswer``.

    Returns:
        Model calls and searches.
    """
    return (1 if result["context"] else 0), 1


def search_a_sentence(result: Mapping[str, Any]) -> tuple[int, int]:
    """Count the effort of a chain that asks the model and searches for each of its sentences.

    Args:
        result: A ``GroundedAnswer``.

    Returns:
        Model calls and searches.
    """
    return 1, len(result["sentences"])


def as_told(result: Mapping[str, Any]) -> tuple[int, int]:
    """Read the effort of a loop.

    Args:
        result: A ``LoopedAnswer``.

    Returns:
        Model calls and searches.
    """
    return result["calls"], result["searches"]


SYSTEMS: Mapping[str, System] = MappingProxyType(
    {
        "in_context": System(
            title="in-context citing",
            tuned=False,
            route="retrieve",
            chain=GroundedAnswerChain,
            own=lambda _: {"prompt": GroundedPrompt.by_example(), "stop": _END_OF_EXAMPLE},
            effort=one_search,
        ),
        "post_hoc": System(
            title="post-hoc attribution",
            tuned=False,
            route="direct",
            chain=PostHocAttribution,
            own=lambda given: {"scorer": given.scorer},
            effort=search_a_sentence,
        ),
        "agree": System(
            title="AGREE",
            tuned=True,
            route="retrieve",
            chain=GroundedAnswerChain,
            own=lambda _: {},
            effort=one_search,
        ),
        "agree_adapted": System(
            title="AGREE with test-time adaptation",
            tuned=True,
            route="retrieve",
            chain=GroundingLoop,
            own=lambda given: {"budget": given.budget},
            effort=as_told,
        ),
    }
)
"""In the order of tables: the baselines ICLCITE and POSTATTR, then AGREE without and with test-time adaptation."""
