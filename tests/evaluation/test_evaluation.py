"""Predictions and figures, worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from langchain_core.documents import Document

from adaptllm_chain.chain import AdaptiveRetrievalChain
from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.evaluation import Chunk, Judgement, Prediction, predict, render_table, sample_questions, summarise
from adaptllm_chain.journal import Journal
from adaptllm_chain.records import Question
from adaptllm_chain.retrieval import GivenPassagesRetriever
from adaptllm_chain.testing import ScriptedLLM

QUESTIONS = [
    Question(id=str(n), text=f"question {n}", answers=(f"answer {n}",), given_passages=(Document(f"it is answer {n}"),))
    for n in range(10)
]


def knows_the_even(prompt: str) -> str:
    number = next(n for n in range(10) if f"question {n}" in prompt)
    if "given the context" in prompt:
        return f"answer {number}" if number != 9 else "no idea"
    if number % 2 == 0:
        return f"answer {number}" if number else "wrong"
    return "<RET>" if "help" in prompt else "no idea"


def chain(policy: str) -> AdaptiveRetrievalChain:
    retriever = GivenPassagesRetriever.from_questions(QUESTIONS)
    return AdaptiveRetrievalChain(llm=ScriptedLLM(script=knows_the_even), retriever=retriever, policy=policy)


def run(policy: str, folder: Path) -> list[Prediction]:
    with Journal(folder / f"{policy}.jsonl", {"policy": policy}) as journal:
        return predict(chain(policy), QUESTIONS, journal, chunk=4)


def test_figures_are_those_worked_out_by_hand(tmp_path: Path) -> None:
    modes = ("never_retrieve", "always_retrieve", "adaptive")
    rows = {policy: summarise(list(map(Judgement.of, run(policy, tmp_path)))) for policy in modes}
    # Even ones but 0 are known; with a passage all but 9 are right.
    assert rows["never_retrieve"].containment.count == 4
    assert rows["always_retrieve"].containment.count == 9
    assert rows["adaptive"].containment.count == 8
    assert rows["adaptive"].retrieved.value == 0.5
    assert (rows["adaptive"].direct_containment.count, rows["adaptive"].direct_containment.total) == (4, 5)
    assert (rows["adaptive"].retrieved_containment.count, rows["adaptive"].retrieved_containment.total) == (4, 5)
    assert rows["never_retrieve"].retrieved_containment is None
    # Wilson for 8 of 10: centre (8 + 1.92) / 13.84, half width 1.96 * sqrt(1.6 + 0.96) / 13.84.
    assert rows["adaptive"].containment.low == pytest.approx(0.4902, abs=5e-4)
    assert rows["adaptive"].containment.high == pytest.approx(0.9433, abs=5e-4)
    table = render_table(rows)
    assert "| adaptive | 10 | 80.0 % [49.0, 94.3] |" in table
    assert "95" not in table.splitlines()[0]


def test_a_resumed_run_asks_only_what_is_missing(tmp_path: Path) -> None:
    whole = run("adaptive", tmp_path / "whole")
    broken = tmp_path / "broken" / "adaptive.jsonl"
    run("adaptive", tmp_path / "broken")
    lines = broken.read_bytes().splitlines(keepends=True)
    broken.write_bytes(b"".join(lines[:2]) + lines[2][:40])
    llm = ScriptedLLM(script=knows_the_even)
    resumed_chain = chain("adaptive").model_copy(update={"llm": llm})
    chunks: list[Chunk] = []
    with Journal(broken, {"policy": "adaptive"}) as journal:
        assert predict(resumed_chain, QUESTIONS, journal, chunk=4, answered=chunks.append) == whole
    assert [(chunk.start, chunk.questions) for chunk in chunks] == [(4, 4), (8, 2)]
    # Of 4 to 7 two are known and cost one call, two ask and cost two; of 8 and 9 one each.
    assert [chunk.cost.model_calls for chunk in chunks] == [6, 3]
    assert broken.read_bytes() == b"".join(lines)


def test_ranking_against_the_never_mode() -> None:
    def prediction(number: int, answer: str, probability: float | None = None) -> Judgement:
        return Judgement.of(
            Prediction(id=str(number), question="q", answers=("x",), answer=answer, route="direct", reason="",
                       ret_probability=probability, popularity=None)
        )  # fmt: skip

    never = [prediction(0, "x"), prediction(1, "y"), prediction(2, "x"), prediction(3, "z")]
    adaptive = [prediction(n, "x", p) for n, p in enumerate((0.1, 0.9, 0.5, 0.4))]
    # Pairs (wrong, right): .9 > .1, .9 > .5, .4 > .1, .4 < .5: three of four.
    assert summarise(adaptive, never).auc == pytest.approx(0.75)
    all_wrong = [row.model_copy(update={"containment": False}) for row in never]
    assert summarise(adaptive, all_wrong).auc is None


def test_no_predictions_is_an_error() -> None:
    with pytest.raises(InvalidInputError):
        summarise([])


def test_a_sample_is_seeded_and_in_file_order() -> None:
    drawn = sample_questions(QUESTIONS, 4, seed=3)
    assert drawn == sample_questions(QUESTIONS, 4, seed=3)
    assert [int(q.id) for q in drawn] == sorted(int(q.id) for q in drawn)
    assert sample_questions(QUESTIONS, 4, seed=4) != drawn
    assert sample_questions(QUESTIONS, None, seed=0) == QUESTIONS
