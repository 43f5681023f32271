"""Models, retrievers and a judge for AGREE's chains, and all ways to run them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda

from adaptllm_chain.agree import GroundedAnswerChain, Grounder, GroundingLoop, PostHocAttribution
from adaptllm_chain.entailment.scorer import EntailmentScorer
from adaptllm_chain.metrics.citations import CitedSentence
from adaptllm_chain.testing import CountingRetriever, Script, ScriptedChatModel, ScriptedLLM, say
from tests.chain.scenes import all_ways

MODELS: dict[str, Callable[[Script], Any]] = {
    "llm": lambda script: ScriptedLLM(script=script),
    "chat": lambda script: ScriptedChatModel(script=script),
    # Repeats the prompt before its output, as some do.
    "echoing function": lambda script: lambda prompt: f"{prompt}{say(script, prompt).text}",
}


class ScriptedScorer(EntailmentScorer):
    """A judge of entailment that follows a function, and counts its calls."""

    def __init__(self, script: Callable[[str, str], float]) -> None:
        self.script = script
        self.calls: list[list[tuple[str, str]]] = []

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        self.calls.append(list(pairs))
        return [self.script(premise, hypothesis) for premise, hypothesis in pairs]


def word_for_word(premise: str, hypothesis: str) -> float:
    return float(hypothesis.rstrip(".") in premise)


def cites(sentence: str, *citations: int, rejected: int = 0) -> CitedSentence:
    return CitedSentence(sentence=sentence, citations=list(citations), rejected=rejected)


def passages(*texts: str) -> list[Document]:
    return [Document(page_content=text) for text in texts]


def retriever(found: Mapping[str, Sequence[str]] | Sequence[str]) -> CountingRetriever:
    """One that finds the same for every query, or what stands under it; it takes no k."""
    return CountingRetriever(documents=(lambda query: found.get(query, ())) if isinstance(found, Mapping) else found)


def counted(found: Mapping[str, Sequence[str]]) -> RunnableLambda[Any, Any]:
    """A retriever that takes k."""

    def search(query: str, k: int = 4) -> list[Document]:
        return passages(*found.get(query, ())[:k])

    return RunnableLambda(search)


def answer(chain: Any, value: Any = "q", **kwargs: Any) -> dict[str, Any]:
    """Run a chain in all ways, which must agree."""
    first, *others = all_ways(chain, value, **kwargs)
    assert all(other == first for other in others)
    assert isinstance(first, dict), first
    return first


CHAINS: dict[str, Callable[..., Grounder]] = {
    "grounded": GroundedAnswerChain,
    "loop": GroundingLoop,
    "attribution": lambda **settings: PostHocAttribution(scorer=ScriptedScorer(word_for_word), **settings),
}
