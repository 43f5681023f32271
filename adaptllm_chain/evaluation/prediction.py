"""Predictions: what a chain answered, one row a question, kept while the run goes on."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from langchain_core.runnables import Runnable
from pydantic import BaseModel, ConfigDict

from adaptllm_chain.evaluation.cost import Cost, CostMeter
from adaptllm_chain.journal import Journal
from adaptllm_chain.metrics import contains_answer
from adaptllm_chain.prompts import join_passages
from adaptllm_chain.records import AdaptiveAnswer, Question, Route


class Prediction(BaseModel):
    """One answer of a chain, with what is needed to judge it.

    Attributes:
        id: The question's identifier.
        question: The question.
        answers: All accepted answers.
        answer: What the chain answered.
        route: Whether it answered from memory or with retrieval.
        reason: Why, in a sentence.
        ret_probability: P(``<RET>``), in [0, 1], where the model was asked for it.
        popularity: Of the question's subject, where the data set says.
        relation: The kind of fact that is asked for, where the data set says.
        hits: Whether each passage that the model was shown holds an accepted answer (by containment), best first.
        error: What went wrong, if the chain could not answer; the answer is then empty, and wrong.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    question: str
    answers: tuple[str, ...]
    answer: str
    route: Route
    reason: str
    ret_probability: float | None
    popularity: float | None
    relation: str | None = None
    hits: tuple[bool, ...] = ()
    error: str | None = None

    @classmethod
    def of(cls, question: Question, result: AdaptiveAnswer | Exception) -> Self:
        """Put a question and a chain's result together.

        Args:
            question: The question.
            result: The result, or the error that stands in its place.

        Returns:
            The prediction.
        """
        common = {
            "id": question.id,
            "question": question.text,
            "answers": question.answers,
            "popularity": question.popularity,
            "relation": question.relation,
        }
        if isinstance(result, Exception):
            failed = {"answer": "", "route": "direct", "reason": "failed", "ret_probability": None}
            return cls.model_validate(common | failed | {"error": f"{type(result).__name__}: {result}"})
        return cls(
            **common,
            answer=result["answer"],
            route=result["decision"].route,
            reason=result["decision"].reason,
            ret_probability=result["ret_probability"],
            hits=tuple(contains_answer(join_passages([passage]), question.answers) for passage in result["context"]),
        )


def sample_questions(questions: Sequence[Question], size: int | None, seed: int) -> list[Question]:
    """Draw questions without replacement.

    Args:
        questions: The questions.
        size: How many; all of them if ``None`` or larger than there are.
        seed: Draws others.

    Returns:
        The drawn questions, in the order of the file.
    """
    if size is None or size >= len(questions):
        return list(questions)
    drawn = random.Random(seed).sample(range(len(questions)), size)
    return [questions[index] for index in sorted(drawn)]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Questions that were answered together.

    Attributes:
        start: The number of the first of them, from 0.
        questions: How many there are.
        cost: What their answers cost.
        seconds: How long they took.
    """

    start: int
    questions: int
    cost: Cost
    seconds: float


def predict(
    chain: Runnable[Any, AdaptiveAnswer],
    questions: Sequence[Question],
    journal: Journal,
    *,
    chunk: int = 32,
    meter: CostMeter | None = None,
    answered: Callable[[Chunk], None] | None = None,
) -> list[Prediction]:
    """Ask a chain every question; questions that the journal already holds are not asked again.

    A chunk is written whole, so a resumed run makes the batches of an unbroken one.

    Args:
        chain: An ``AdaptiveRetrievalChain``.
        questions: The questions.
        journal: Keeps the finished chunks, each with what it cost.
        chunk: Questions a batch.
        meter: Counts the cost; pass the one that a cache of the model counts with.
        answered: Is told of every chunk that was answered, after it was written.

    Returns:
        One prediction a question, in order. A question that fails has its error in its place.
    """
    meter = meter or CostMeter()
    done = [row["id"] for chunk_row in journal for row in chunk_row["predictions"]]
    journal.check_order(done, [question.id for question in questions])
    for start in range(len(journal) * chunk, len(questions), chunk):
        part = questions[start : start + chunk]
        inputs = [{"input": question.text, "popularity": question.popularity} for question in part]
        meter.take()
        begun = time.perf_counter()
        results = chain.batch(inputs, {"callbacks": [meter]}, return_exceptions=True)
        seconds = time.perf_counter() - begun
        made = [Prediction.of(question, result) for question, result in zip(part, results, strict=True)]
        cost = meter.take()
        journal.extend(
            [{"predictions": [prediction.model_dump(mode="json") for prediction in made], "cost": cost.model_dump()}]
        )
        if answered is not None:
            answered(Chunk(start, len(part), cost, seconds))
    return [Prediction.model_validate(row) for chunk_row in journal for row in chunk_row["predictions"]]
