"""The controlled experiment: the extractive writer through the same chains, search and judge as the four systems."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from langchain_core.runnables import RunnableConfig
from pydantic import BaseModel, ConfigDict

from adaptllm_chain.agree import label_sentences
from adaptllm_chain.agree.passages import distinct
from adaptllm_chain.chain.passage_count import with_k_per_query
from adaptllm_chain.evaluation.asking import ask_in_chunks
from adaptllm_chain.evaluation.grounding.extractive import ExtractiveWriter, Statement, plan_statements
from adaptllm_chain.evaluation.grounding.prediction import GroundedPrediction, answer
from adaptllm_chain.evaluation.grounding.systems import SYSTEMS, Ingredients
from adaptllm_chain.evaluation.prediction import Chunk
from adaptllm_chain.journal import Journal
from adaptllm_chain.metrics.citations import CitedSentence
from adaptllm_chain.records import Question

EXTRACTIVE = "extractive"
"""How its file is called, and its row in tables."""


class ControlledPrediction(BaseModel):
    """What became of the statements of one question.

    Attributes:
        id: The question's identifier.
        statements: What the writer said.
        written: The answer of ``GroundedAnswerChain``: the writer's own marks, read back.
        attributed: The answer of ``PostHocAttribution``: each statement searched for and judged.
        looped: The answer of ``GroundingLoop``: what was withheld is searched for.
        labelled: The statements as the judge links them to the passages shown, as in tuning data.
        named: Those that the judge says none of these supports.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    statements: tuple[Statement, ...]
    written: GroundedPrediction
    attributed: GroundedPrediction
    looped: GroundedPrediction
    labelled: tuple[CitedSentence, ...]
    named: tuple[str, ...]


def predict_controlled(
    given: Ingredients,
    questions: Sequence[Question],
    journal: Journal,
    *,
    chunk: int = 32,
    seed: int = 0,
    answered: Callable[[Chunk], None] | None = None,
) -> list[ControlledPrediction]:
    """Let the extractive writer answer every question that the journal does not hold yet.

    Args:
        given: Retriever, judge, ``k`` and budget; its model is not asked.
        questions: The questions.
        journal: Keeps the finished chunks.
        chunk: Questions a batch.
        seed: Draws other statements.
        answered: Is told of every chunk that was answered, after it was written.

    Returns:
        One prediction a question, in order.
    """

    def work(part: Sequence[Question], config: RunnableConfig) -> list[ControlledPrediction]:
        return _answered(given, part, config, seed)

    rows = ask_in_chunks(work, questions, journal, chunk=chunk, answered=answered)
    return list(map(ControlledPrediction.model_validate, rows))


def _answered(
    given: Ingredients, questions: Sequence[Question], config: RunnableConfig, seed: int
) -> list[ControlledPrediction]:
    plans = _plans(given, [question.text for question in questions], config, seed)
    writer = ExtractiveWriter(plans)
    given = replace(given, llm=writer)
    answers = [
        answer(SYSTEMS[name], SYSTEMS[name].build(given, prompt=prompt), questions, config)
        for name, prompt in (
            ("agree", writer.prompt),
            ("post_hoc", writer.memory_prompt),
            ("agree_adapted", writer.prompt),
        )
    ]
    texts = [[statement.text for statement in plans[question.text]] for question in questions]
    pairs = [
        (passage.premise, text)
        for row, said in zip(answers[0], texts, strict=True)
        for text in said
        for passage in row.passages
    ]
    scores = iter(given.scorer.score(pairs) if pairs else ())
    made = []
    for question, said, *three in zip(questions, texts, *answers, strict=True):
        table = [[next(scores) for _ in three[0].passages] for _ in said]
        labelled, named = label_sentences(said, table)
        made.append(
            ControlledPrediction(
                id=question.id,
                statements=plans[question.text],
                written=three[0],
                attributed=three[1],
                looped=three[2],
                labelled=tuple(labelled),
                named=tuple(named),
            )
        )
    return made


def _plans(
    given: Ingredients, questions: Sequence[str], config: RunnableConfig, seed: int
) -> dict[str, tuple[Statement, ...]]:
    """Choose the statements; a question that is asked twice says the same."""
    search = with_k_per_query(given.retriever)
    found = search.batch(list(questions), {**config, "configurable": {"k": 2 * given.k}})
    return {
        question: plan_statements(distinct(passages), given.k, random.Random(f"{seed} {question}"))
        for question, passages in zip(questions, found, strict=True)
    }
