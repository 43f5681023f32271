"""AGREE's four systems: predictions, judgements and tables against figures worked out by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptllm_chain.entailment import EntailmentScorer
from adaptllm_chain.errors import InvalidInputError, JournalError
from adaptllm_chain.evaluation import SUITES
from adaptllm_chain.evaluation.cost import Cost
from adaptllm_chain.evaluation.grounding import (
    ENTAILMENT_FILE,
    EXTRACTIVE,
    SUITE,
    SYSTEMS,
    GroundedJudgement,
    GroundedPrediction,
    GroundedRun,
    Ingredients,
    KnownScores,
    ShownPassage,
    holds_grounded_runs,
    judge,
    predict_grounded,
    read_grounded_runs,
)
from adaptllm_chain.evaluation.tables.grounding_report import grounding_report
from adaptllm_chain.journal import Journal
from adaptllm_chain.records import Question
from adaptllm_chain.reporting import Cell, Table
from adaptllm_chain.reporting.writing import render_json
from adaptllm_chain.testing import ScriptedLLM
from tests.agree.scenes import ScriptedScorer, cites, retriever, word_for_word

QUESTIONS = [Question(id=str(n), text=f"Who built mill {n}?", answers=(f"Ada {n}",)) for n in range(5)]
FOUND = {
    **{f"Who built mill {n}?": [f"Ada {n} built mill {n}.", f"Mill {n} is old."] for n in range(4)},
    # Of mill 3, a search for the question does not bring the builder; one for the statement does.
    "Who built mill 3?": ["Mill 3 is old.", "Mill 3 is red."],
    "Ada 3 built mill 3.": ["Ada 3 built mill 3."],
    "Ada 0 built mill 0.": ["Ada 0 built mill 0."],
    "Mill 2 is green.": ["Mill 2 is old."],
}


def reply(prompt: str) -> str:
    number = next(n for n in range(5) if f"Who built mill {n}?" in prompt)
    # The examples of in-context citing have passages of their own.
    own = prompt.rpartition("Passages:")[2]
    if "Passages:" not in prompt:
        return {0: "Ada 0 built mill 0.", 2: "Mill 2 is green."}.get(number, "I would not know.")
    if number == 3:
        at = next((n for n in (1, 2) if f"[{n}] Ada 3" in own), None)
        if at is None:
            return "Ada 3 built mill 3.\n\nUnsupported statements:\n- Ada 3 built mill 3."
        return f"Ada 3 built mill 3 [{at}]."
    return {
        0: "Ada 0 built mill 0 [1]. Mill 0 is old [1][2].",
        1: "Ada 1 built mill 1 [2][7].",
        2: "Mill 2 is old [2]. It hums.",
    }[number]


def ingredients(scorer: EntailmentScorer | None = None) -> Ingredients:
    return Ingredients(
        llm=ScriptedLLM(script=reply),
        retriever=retriever(FOUND),
        scorer=scorer or ScriptedScorer(word_for_word),
        k=2,
        budget=3,
    )


def header(mode: str, **others: Any) -> dict[str, Any]:
    return {
        "suite": SUITE,
        "data": "mills",
        "trained_on": "a-adapter",
        "mode": mode,
        "questions": "f00d",
        "statistics": {"questions": len(QUESTIONS)},
        "retriever": "index",
        "passages": "beef",
        "k": 2,
        "budget": 3,
        "prompt": "p",
        "model": "m",
        "max_new_tokens": 9,
        "dtype": "float32",
        "load_in": None,
        "versions": {"adaptllm-chain": "0.1.0"},
        **others,
    }


def predicted(name: str, folder: Path, given: Ingredients | None = None, **others: Any) -> list[GroundedPrediction]:
    given = given or ingredients()
    with Journal(folder / f"{name}.jsonl", header(name)) as journal:
        return predict_grounded(SYSTEMS[name], SYSTEMS[name].build(given), QUESTIONS, journal, chunk=2, **others)


def scored(folder: Path, scorer: EntailmentScorer | None = None) -> KnownScores:
    with Journal(folder / ENTAILMENT_FILE, {"entailment": "words", "suite": SUITE}) as journal:
        scores = KnownScores.kept_in(journal, "words", scorer or ScriptedScorer(word_for_word))
        for file in folder.glob("*.jsonl"):
            if file.name != ENTAILMENT_FILE:
                GroundedRun.read(file, scores)
    return scores


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in SYSTEMS:
        predicted(name, tmp_path / "run")
    scored(tmp_path / "run")
    return tmp_path / "run"


def test_what_the_systems_answer(tmp_path: Path) -> None:
    rows = {name: predicted(name, tmp_path) for name in SYSTEMS}
    first = rows["agree"][0]
    assert first.sentences == (cites("Ada 0 built mill 0.", 1), cites("Mill 0 is old.", 1, 2))
    assert first.passages[0] == ShownPassage(premise="Ada 0 built mill 0.")
    assert [row.rejected for row in rows["agree"]] == [0, 1, 0, 0, 0]
    assert [(row.calls, row.searches) for row in rows["agree"]] == [(1, 1)] * 4 + [(0, 1)]
    # The first draft about mill 3 names its statement, which is searched for; that about mill 2 cites too little, and
    # a second search for the question brings nothing new. Nothing is found for mill 4.
    adapted = rows["agree_adapted"]
    assert [(row.calls, row.searches, row.stopped) for row in adapted] == [
        (1, 1, "supported"),
        (1, 1, "supported"),
        (1, 2, "nothing_new"),
        (2, 2, "supported"),
        (0, 1, "nothing_new"),
    ]
    assert adapted[3].sentences == (cites("Ada 3 built mill 3.", 1),)
    assert rows["agree"][3].unsupported == ("Ada 3 built mill 3.",)
    after = rows["post_hoc"]
    assert [(row.calls, row.searches, row.route) for row in after] == [(1, 1, "direct")] * 5
    assert after[0].sentences == (cites("Ada 0 built mill 0.", 1),)
    assert after[2].sentences == (cites("Mill 2 is green."),)
    assert rows["in_context"][0].sentences == first.sentences


def test_a_killed_run_goes_on_with_the_same_bytes(tmp_path: Path) -> None:
    given = ingredients()
    told: list[int] = []
    predicted("agree", tmp_path, given, answered=lambda chunk: told.append(chunk.start))
    whole = (tmp_path / "agree.jsonl").read_bytes()
    assert told == [0, 2, 4]
    predicted("agree", tmp_path, given)
    asked = len(given.llm.calls)
    lines = whole.splitlines(keepends=True)
    (tmp_path / "agree.jsonl").write_bytes(b"".join(lines[:2]) + lines[2][:20])
    predicted("agree", tmp_path, given, answered=lambda chunk: told.append(chunk.start))
    assert told == [0, 2, 4, 2, 4]
    assert (tmp_path / "agree.jsonl").read_bytes() == whole
    # One call for the second chunk; nothing was found for the question of the third.
    assert len(given.llm.calls) == asked + 1


def test_a_question_that_fails_stands_in_its_place(tmp_path: Path) -> None:
    def broken(prompt: str) -> str:
        if "mill 1" in prompt:
            raise RuntimeError("out of paper")
        return reply(prompt)

    given = ingredients()
    given.llm.script = broken
    rows = predicted("agree", tmp_path, given)
    assert [row.error for row in rows] == [None, "RuntimeError: out of paper", None, None, None]
    failed = judge(rows, scored(tmp_path))[1]
    assert (failed.failed, failed.containment, failed.sentences, failed.recall) == (True, False, 0, None)


def test_judgements(tmp_path: Path) -> None:
    rows = judge(predicted("agree", tmp_path), scored(tmp_path))
    # 0: both sentences are entailed; [1] is superfluous in the second. 1: a mark that points nowhere takes the recall.
    # 2: the second sentence cites nothing. 3: no citation. 4: no sentence.
    assert [row.recall for row in rows] == [1, 0, 0.5, 0, None]
    assert [row.precision for row in rows] == [pytest.approx(2 / 3), 0, 1, 0, None]
    assert [row.grounding for row in rows] == [1, 1, 0.5, 0, None]
    assert [row.containment for row in rows] == [True, True, False, True, False]
    assert [(row.sentences, row.cited, row.citations) for row in rows] == [
        (2, 2, 3),
        (1, 1, 1),
        (2, 1, 1),
        (1, 0, 0),
        (0, 0, 0),
    ]


def test_marks_are_no_answers(tmp_path: Path) -> None:
    row = GroundedPrediction(
        id="0",
        question="How many?",
        answers=("2",),
        answer="Some [2].",
        sentences=(cites("Some.", 2),),
        passages=(ShownPassage(premise="a"), ShownPassage(premise="b")),
        route="retrieve",
    )
    with Journal(tmp_path / ENTAILMENT_FILE, {"entailment": "words"}) as journal:
        judged = judge([row], KnownScores.kept_in(journal, "words", ScriptedScorer(word_for_word)))[0]
    assert not judged.containment


class TestScores:
    def keep(self, folder: Path, scorer: EntailmentScorer, pairs: Sequence[tuple[str, str]]) -> list[float]:
        with Journal(folder / ENTAILMENT_FILE, {"entailment": "words"}) as journal:
            return KnownScores.kept_in(journal, "words", scorer).score(pairs)

    def test_no_pair_is_judged_twice_and_no_text_is_kept(self, tmp_path: Path) -> None:
        scorer = ScriptedScorer(lambda premise, hypothesis: len(premise) / 10)
        assert self.keep(tmp_path, scorer, [("lamp", "x"), ("oil", "x"), ("lamp", "x")]) == [0.4, 0.3, 0.4]
        assert self.keep(tmp_path, scorer, [("oil", "x"), ("wick", "x")]) == [0.3, 0.4]
        assert scorer.calls == [[("lamp", "x"), ("oil", "x")], [("wick", "x")]]
        kept = (tmp_path / ENTAILMENT_FILE).read_text()
        assert "lamp" not in kept
        assert KnownScores.read(tmp_path / ENTAILMENT_FILE).score([("wick", "x")]) == [0.4]

    def test_where_premise_and_hypothesis_meet_matters(self, tmp_path: Path) -> None:
        scorer = ScriptedScorer(lambda premise, hypothesis: len(premise) / 10)
        assert self.keep(tmp_path, scorer, [("ab", "c"), ("a", "bc")]) == [0.2, 0.1]

    def test_what_a_judge_refuses_counts_as_nothing_and_costs_nothing_else(self, tmp_path: Path) -> None:
        def short(premise: str, hypothesis: str) -> float:
            if len(hypothesis) > 3:
                raise InvalidInputError("too long")
            return 0.9

        pairs = [("p", "abc"), ("p", "abcd"), ("q", "a"), ("r", "b")]
        assert self.keep(tmp_path, ScriptedScorer(short), pairs) == [0.9, 0, 0.9, 0.9]
        scores = KnownScores.read(tmp_path / ENTAILMENT_FILE)
        assert scores.score(pairs) == [0.9, 0, 0.9, 0.9]
        assert [scores.refused(pair) for pair in pairs] == [False, True, False, False]

    def test_a_judge_that_refuses_everything_says_why(self, tmp_path: Path) -> None:
        def none(premise: str, hypothesis: str) -> float:
            raise InvalidInputError("no such label")

        with pytest.raises(InvalidInputError, match="no such label"):
            self.keep(tmp_path, ScriptedScorer(none), [("p", "a"), ("p", "b")])

    def test_scores_that_are_not_there_are_told(self, tmp_path: Path) -> None:
        with pytest.raises(JournalError, match="were not judged"):
            KnownScores.read(tmp_path / ENTAILMENT_FILE)
        self.keep(tmp_path, ScriptedScorer(word_for_word), [("p", "a")])
        with pytest.raises(JournalError, match="1 of 2 pairs"):
            KnownScores.read(tmp_path / ENTAILMENT_FILE).score([("p", "a"), ("p", "b")])
        (tmp_path / "other.jsonl").write_text('{"settings": {}}\n')
        with pytest.raises(JournalError, match="holds no scores"):
            KnownScores.read(tmp_path / "other.jsonl")

    @settings(max_examples=25, deadline=None)
    @given(st.lists(st.tuples(st.text(max_size=3), st.text(max_size=3)), max_size=9), st.integers(0, 9))
    def test_scores_are_the_judges_however_they_are_asked_for(
        self, tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]], cut: int
    ) -> None:
        folder = tmp_path_factory.mktemp("scores")
        scorer = ScriptedScorer(lambda premise, hypothesis: 1 / (1 + len(premise) + 3 * len(hypothesis)))
        wanted = scorer.score(pairs)
        assert self.keep(folder, scorer, pairs[:cut]) == wanted[:cut]
        assert self.keep(folder, scorer, pairs) == wanted


def test_the_same_report_from_predictions_and_from_judgements(folder: Path, tmp_path: Path) -> None:
    runs = read_grounded_runs([folder])
    assert [run.mode for run in runs] == sorted(SYSTEMS)
    kept = tmp_path / "kept"
    for run in runs:
        run.write(kept)
    assert render_json(grounding_report(runs)) == render_json(grounding_report(read_grounded_runs([kept])))
    texts = "".join(file.read_text().partition("\n")[2] for file in kept.rglob("*.jsonl"))
    assert texts
    assert not any(word in texts for word in ("mill", "Ada", "old"))
    assert holds_grounded_runs([kept])


def test_what_does_not_belong_together_is_refused(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    for run in read_grounded_runs([folder]):
        run.model_copy(update={"settings": run.settings | {"trained_on": "b", "judge": "another"}}).write(other)
    with pytest.raises(InvalidInputError, match="other judge than"):
        read_grounded_runs([folder, other])
    with pytest.raises(InvalidInputError, match="are both"):
        read_grounded_runs([folder, folder])
    (tmp_path / "paper").mkdir()
    (tmp_path / "paper" / "adaptive.jsonl").write_text('{"settings": {}}\n')
    with pytest.raises(InvalidInputError, match="holds no grounded answers"):
        read_grounded_runs([folder, tmp_path / "paper"])
    assert not holds_grounded_runs([tmp_path / "paper"])


def test_a_run_that_was_not_finished_or_is_something_else_is_refused(folder: Path) -> None:
    file = folder / "agree.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:2]))
    with pytest.raises(JournalError, match="2 of 5"):
        GroundedRun.read(file)
    file.write_text(json.dumps({"settings": {"suite": SUITE}}) + "\n")
    with pytest.raises(JournalError, match="no grounded answers of this version"):
        GroundedRun.read(file)


def test_the_suite_names_the_systems() -> None:
    assert all(one.modes == (*SYSTEMS, EXTRACTIVE) for one in SUITES["agree"].experiments)
    assert SUITES["agree"].data.keys() == {one.data for one in SUITES["agree"].experiments}


# Tables of four judged questions. The last answer of AGREE has no sentence.
_MEASURES: dict[str, list[tuple[float | None, float | None, float | None, bool, int]]] = {
    "in_context": [
        (0.5, 0.5, 0.5, True, 2),
        (0.0, 0.0, 0.25, False, 0),
        (0.5, 1.0, 1.0, False, 1),
        (1.0, 0.5, 1.0, True, 1),
    ],
    "post_hoc": [
        (0.0, 0.0, 0.5, False, 0),
        (0.0, 0.0, 0.0, False, 0),
        (0.0, 0.0, 0.0, True, 0),
        (0.0, 0.0, 0.0, False, 0),
    ],
    "agree": [
        (1.0, 1.0, 1.0, True, 1),
        (0.5, 1.0, 0.75, True, 1),
        (1.0, 1.0, 1.0, False, 1),
        (None, None, None, False, 0),
    ],
    "agree_adapted": [
        (1.0, 1.0, 1.0, True, 1),
        (1.0, 1.0, 1.0, True, 1),
        (1.0, 0.5, 1.0, False, 2),
        (0.0, 0.0, 0.5, True, 0),
    ],
}
_STOPPED = ("supported", "supported", "budget", "nothing_new")


def made_run(system: str) -> GroundedRun:
    rows = [
        GroundedJudgement(
            id=str(n),
            route="retrieve",
            containment=right,
            first_line_containment=right,
            exact_match=False,
            f1=0.0,
            sentences=0 if recall is None else 2,
            citations=citations,
            recall=recall,
            precision=precision,
            grounding=grounding,
            calls=1 + (n == 2) * (system == "agree_adapted"),
            searches=1,
            stopped=_STOPPED[n] if system == "agree_adapted" else None,  # type: ignore[arg-type]
        )
        for n, (recall, precision, grounding, right, citations) in enumerate(_MEASURES[system])
    ]
    own = {"statistics": {"questions": 4}, "judge": "words", "batch_size": 8, "scorer": "words", "weights": None}
    cost = Cost(model_calls=4, prompt_tokens=400, completion_tokens=40)
    return GroundedRun(settings=header(system, **own), judgements=tuple(rows), cost=cost)


@pytest.fixture(scope="module")
def made() -> dict[str, Table]:
    sections = grounding_report(list(map(made_run, SYSTEMS))).sections
    return {table.id: table for section in sections for table in section.tables}


def ours(table: Table) -> dict[str, tuple[Cell, ...]]:
    return {str(row.label.text): row.cells for row in table.rows if not row.published}


def values(cells: Sequence[Cell]) -> list[float | int | None]:
    return [cell.value for cell in cells]


def test_the_table_of_citations(made: dict[str, Table]) -> None:
    rows = ours(made["citations"])
    assert list(rows) == [system.title for system in SYSTEMS.values()]
    assert values(rows["in-context citing"])[1:] == [4, 0.5, 0.5, 0.5, 0.6875, 0.5, 0.25, 0]
    # Means over the three answers with sentences; right or wrong counts all four.
    assert values(rows["AGREE"])[1:] == pytest.approx(
        [3, 2.5 / 3, 1, 2 * (2.5 / 3) / (1 + 2.5 / 3), 2.75 / 3, 0.5, 0, 0]
    )
    assert values(rows["post-hoc attribution"])[1:] == [4, 0, 0, 0, 0.125, 0.25, 1, 0]
    assert rows["AGREE"][1].total == 4
    assert rows["AGREE"][2].total == 3
    low, high = rows["in-context citing"][2].low, rows["in-context citing"][2].high
    assert low is not None
    assert high is not None
    assert 0 <= low < 0.5 < high <= 1
    (published,) = (row for row in made["citations"].rows if row.published)
    assert [cell.text for cell in published.cells if cell.text] == ["ASQA", "75.1 %", "40.9 %"]


def test_the_table_of_differences(made: dict[str, Table]) -> None:
    rows = ours(made["differences"])
    # On the three questions that both have: (.5 + .5 + .5) / 3 and (.5 + 1 + 0) / 3; of 1/3 and 1/2, relatively.
    recall, more_recall, precision, more_precision, grounding, correct = rows["AGREE against in-context citing"][1:]
    assert values([recall, more_recall]) == pytest.approx([0.5, 1.5])
    assert values([precision, more_precision]) == pytest.approx([0.5, 1])
    assert grounding.value == pytest.approx((0.5 + 0.5 + 0) / 3)
    assert correct.value == 0
    assert recall.total == 3
    # The same difference for every question: every draw has it.
    assert (recall.low, recall.high) == pytest.approx((0.5, 0.5))
    # The baseline has nothing of which a part could be taken.
    assert rows["AGREE against post-hoc attribution"][2].value is None
    again = rows["AGREE with test-time adaptation against AGREE"]
    assert values(again[1:]) == pytest.approx([0.5 / 3, 0.2, -0.5 / 3, -1 / 6, 0.25 / 3, 0.25])
    assert len(rows) == 5


def test_the_tables_of_effort(made: dict[str, Table]) -> None:
    effort = ours(made["effort"])
    assert values(effort["AGREE with test-time adaptation"])[1:] == [1.25, 1, 100, 10, None, 0]
    (ended,) = ours(made["endings"]).values()
    assert values(ended) == [0.25, 0.5, 0.25, 0.25]
    assert "controlled" not in made, "the extractive writer did not run"


def test_systems_that_answered_other_questions_are_not_compared() -> None:
    run = made_run("agree")
    other = run.model_copy(
        update={"settings": run.settings | {"mode": "post_hoc"}, "judgements": tuple(reversed(run.judgements))}
    )
    with pytest.raises(InvalidInputError, match="answered other questions"):
        grounding_report([run, other])
