"""Work on questions chunk by chunk, each written whole, so that a killed run goes on where it was."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from langchain_core.runnables import RunnableConfig
from pydantic import BaseModel

from adaptllm_chain.evaluation.cost import CostMeter
from adaptllm_chain.evaluation.prediction import Chunk
from adaptllm_chain.journal import Journal
from adaptllm_chain.records import Question

# Makes one prediction a question, in order, each with the question's identifier as `id`. The config counts the cost.
Work: TypeAlias = Callable[[Sequence[Question], RunnableConfig], Sequence[BaseModel]]


def ask_in_chunks(
    work: Work,
    questions: Sequence[Question],
    journal: Journal,
    *,
    chunk: int = 32,
    meter: CostMeter | None = None,
    answered: Callable[[Chunk], None] | None = None,
) -> list[dict[str, Any]]:
    """Do the work that the journal does not hold yet.

    A chunk is written whole, so a resumed run makes the batches of an unbroken one.

    Args:
        work: Makes the predictions of a chunk.
        questions: The questions.
        journal: Keeps the finished chunks, each with what it cost.
        chunk: Questions a batch.
        meter: Counts the cost; pass the one that a cache of the model counts with.
        answered: Is told of every chunk that was answered, after it was written.

    Returns:
        The predictions as JSON, one a question, in order.
    """
    meter = meter or CostMeter()
    done = [row["id"] for rows in journal for row in rows["predictions"]]
    journal.check_order(done, [question.id for question in questions])
    for start in range(len(done), len(questions), chunk):
        part = questions[start : start + chunk]
        meter.take()
        begun = time.perf_counter()
        made = work(part, {"callbacks": [meter]})
        seconds = time.perf_counter() - begun
        cost = meter.take()
        journal.extend([{"predictions": [row.model_dump(mode="json") for row in made], "cost": cost.model_dump()}])
        if answered is not None:
            answered(Chunk(start, len(part), cost, seconds))
    return [row for rows in journal for row in rows["predictions"]]
