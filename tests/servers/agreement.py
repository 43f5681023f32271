"""What is asked of every server of the embedded model: to decide as ``LocalLLM`` does, in every way of asking."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from adaptllm_chain import AdaptiveRetrievalChain
from adaptllm_chain.ret import Adaptive
from adaptllm_chain.testing import CountingRetriever
from tests.chain.scenes import WAYS
from tests.servers.record import KNOWN, PASSAGE, UNKNOWN

THRESHOLD = 0.5
QUESTIONS = [
    KNOWN,
    UNKNOWN,
    "What is the largest planet of the solar system?",
    "Who was the mayor of Lillehammer in 1987?",
    "What is the capital of Germany?",
    "Which architect designed the town hall of Ostersund?",
    "What is the chemical symbol of gold?",
    "In what year was the band Lamp of Narva founded?",
    "On which continent is Kenya?",
    "Who is the screenwriter of Night of the Herons?",
    "What language is spoken in Brazil?",
    "What is the occupation of Anders Falkenrath?",
]


def chain_of(llm: Any, threshold: float | None = THRESHOLD) -> AdaptiveRetrievalChain:
    retriever = CountingRetriever(documents=[PASSAGE])
    return AdaptiveRetrievalChain(llm=llm, retriever=retriever, policy=Adaptive(threshold=threshold))


def check_decisions(llm: Any, local: list[Any], tolerance: float) -> None:
    """Compare the decisions on all questions, asked together, with those of the model loaded here."""
    chain = chain_of(llm)
    results = chain.batch(QUESTIONS)
    assert {result["decision"].route for result in local} == {"direct", "retrieve"}, "the questions tell nothing apart"
    for question, ours, theirs in zip(QUESTIONS, local, results, strict=True):
        probability, signal = ours["ret_probability"], theirs["decision"].signal
        if signal.kind == "upper_bound":
            assert probability <= signal.probability + tolerance, question
        else:
            assert signal.probability == pytest.approx(probability, abs=tolerance), question
        if abs(probability - THRESHOLD) > tolerance:
            assert theirs["decision"].route == ours["decision"].route, question
    assert len(chain.retriever.queries) == sum(result["retrieved"] for result in results)


def check_ways(make_llm: Callable[[], Any], question: str, answer: str, *, same: float) -> None:
    """Ask in every way, with a threshold and by the output alone."""
    for threshold in (THRESHOLD, None):
        first, *others = (ask(chain_of(make_llm(), threshold), question) for ask in WAYS.values())
        assert first["retrieved"] is (question == UNKNOWN)
        assert first["answer"] == answer
        for other in others:
            assert other["answer"] == first["answer"]
            assert other["decision"].route == first["decision"].route
            assert other["decision"].signal.kind == first["decision"].signal.kind
            assert other["decision"].signal.probability == pytest.approx(first["decision"].signal.probability, abs=same)


def check_thresholds(llm: Any) -> None:
    """A higher threshold never retrieves more."""
    rates = []
    for threshold in (0.0, THRESHOLD, 1.0):
        results = chain_of(llm, threshold).batch(QUESTIONS[:4])
        rates.append(sum(result["retrieved"] for result in results))
    assert rates == sorted(rates, reverse=True)
    assert rates[0] > rates[-1]
