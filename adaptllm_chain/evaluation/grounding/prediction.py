"""What a system answered and cited, one row a question, with the passages that a judge needs to read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig
from pydantic import BaseModel, ConfigDict

from adaptllm_chain.agree import Grounder, premise_of
from adaptllm_chain.agree.answers import Stopped
from adaptllm_chain.evaluation.asking import ask_in_chunks
from adaptllm_chain.evaluation.cost import CostMeter
from adaptllm_chain.evaluation.grounding.systems import System
from adaptllm_chain.evaluation.prediction import Chunk
from adaptllm_chain.journal import Journal
from adaptllm_chain.metrics.citations import CitedSentence
from adaptllm_chain.records import Question, Route


class ShownPassage(BaseModel):
    """A passage that an answer could cite.

    Attributes:
        id: Its identifier in the index, if it has one.
        premise: Its title on a line of its own, then its text: what a judge of entailment reads.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str | None = None
    premise: str

    @classmethod
    def of(cls, passage: Document) -> Self:
        """Keep what is needed of a passage.

        Args:
            passage: The passage.

        Returns:
            Its identifier and its text.
        """
        return cls(id=passage.id, premise=premise_of(passage))


class GroundedPrediction(BaseModel):
    """One answer with citations, with what is needed to judge it.

    Attributes:
        id: The question's identifier.
        question: The question.
        answers: All accepted answers.
        answer: What the system answered, with its marks.
        sentences: The sentences of the answer and what each cites, by numbers from 1.
        unsupported: The statements that no passage supports, as the system says.
        rejected: How many marks of the answer point nowhere.
        passages: What the answer could cite; number i stands at place i - 1.
        route: Whether it was answered from memory or from passages.
        calls: How often the model was asked.
        searches: How many queries were searched for.
        stopped: Why test-time adaptation ended, where there was any.
        error: What went wrong, if there is no answer.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    question: str
    answers: tuple[str, ...]
    answer: str
    sentences: tuple[CitedSentence, ...] = ()
    unsupported: tuple[str, ...] = ()
    rejected: int = 0
    passages: tuple[ShownPassage, ...] = ()
    route: Route
    calls: int = 0
    searches: int = 0
    stopped: Stopped | None = None
    error: str | None = None

    @classmethod
    def of(cls, system: System, question: Question, result: Any) -> Self:
        """Put a question and a system's result together.

        Args:
            system: The system.
            question: The question.
            result: Its ``GroundedAnswer``, or the error that stands in its place.

        Returns:
            The prediction.
        """
        asked = {"id": question.id, "question": question.text, "answers": question.answers, "route": system.route}
        if isinstance(result, Exception):
            return cls.model_validate(asked | {"answer": "", "error": f"{type(result).__name__}: {result}"})
        calls, searches = system.effort(result)
        return cls.model_validate(
            asked
            | {
                "answer": result["answer"],
                "sentences": tuple(result["sentences"]),
                "unsupported": tuple(result["unsupported"]),
                "rejected": result["rejected_citations"],
                "passages": tuple(map(ShownPassage.of, result["context"])),
                "calls": calls,
                "searches": searches,
                "stopped": result.get("stopped"),
            }
        )


def predict_grounded(
    system: System,
    chain: Grounder,
    questions: Sequence[Question],
    journal: Journal,
    *,
    chunk: int = 32,
    meter: CostMeter | None = None,
    answered: Callable[[Chunk], None] | None = None,
) -> list[GroundedPrediction]:
    """Ask a system every question; questions that the journal already holds are not asked again.

    Args:
        system: The system.
        chain: Its chain.
        questions: The questions.
        journal: Keeps the finished chunks, each with what it cost.
        chunk: Questions a batch.
        meter: Counts the cost; pass the one that a cache of the model counts with.
        answered: Is told of every chunk that was answered, after it was written.

    Returns:
        One prediction a question, in order. A question that fails has its error in its place.
    """

    def work(part: Sequence[Question], config: RunnableConfig) -> list[GroundedPrediction]:
        return answer(system, chain, part, config)

    rows = ask_in_chunks(work, questions, journal, chunk=chunk, meter=meter, answered=answered)
    return list(map(GroundedPrediction.model_validate, rows))


def answer(
    system: System, chain: Grounder, questions: Sequence[Question], config: RunnableConfig
) -> list[GroundedPrediction]:
    """Answer questions as one batch.

    Args:
        system: The system.
        chain: Its chain.
        questions: The questions.
        config: LangChain's config for all of them.

    Returns:
        One prediction a question, in order.
    """
    results = chain.batch([question.text for question in questions], config, return_exceptions=True)
    return [
        GroundedPrediction.of(system, question, result) for question, result in zip(questions, results, strict=True)
    ]
