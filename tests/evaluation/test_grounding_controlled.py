"""Statements whose right marks are known: with a perfect judge and a perfect search nothing may be counted wrong."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document

from adaptllm_chain.agree import parse_response
from adaptllm_chain.entailment import EntailmentScorer
from adaptllm_chain.evaluation.grounding import (
    ENTAILMENT_FILE,
    EXTRACTIVE,
    ControlledPrediction,
    ExtractiveWriter,
    GroundedRun,
    Ingredients,
    KnownMarks,
    KnownScores,
    Statement,
    plan_statements,
    predict_controlled,
)
from adaptllm_chain.evaluation.grounding.extractive import text_of
from adaptllm_chain.evaluation.grounding.swapping import names_in, swap_fact
from adaptllm_chain.evaluation.tables.grounding import grounded_experiments
from adaptllm_chain.evaluation.tables.grounding_controlled import controlled
from adaptllm_chain.journal import Journal
from adaptllm_chain.records import Question
from adaptllm_chain.testing import CountingRetriever
from tests.agree.scenes import ScriptedScorer, word_for_word
from tests.evaluation.test_grounding import header

WORDS = ("mill", "lamp", "bridge", "abbey", "canal")
QUESTIONS = [Question(id=word, text=f"Who built the {word}?", answers=(f"Ada {word}",)) for word in WORDS]


def passages_about(word: str) -> list[Document]:
    title = {"title": f"The {word}"}
    return [
        Document(
            f"The {word} was built by Ada Holm in 1881. It has a red roof made of old and heavy tiles.", metadata=title
        ),
        Document(f"Many people of the {word} came from Corran Bay to live there.", metadata={"title": "People"}),
        Document(f"After the fire of 1904 the {word} was bought by Ulla Brandt.", metadata=title),
        Document(f"Visitors can see the {word} on every day of the year but one.", metadata={"title": "Visits"}),
    ]


PASSAGES = {word: passages_about(word) for word in WORDS}


def find(query: str) -> list[Document]:
    """Search perfectly: a statement brings its passage first, a question the passages about it."""
    about = [passage for passages in PASSAGES.values() for passage in passages]
    holding = [passage for passage in about if query.rstrip(".") in text_of(passage)]
    return holding or PASSAGES[next(word for word in WORDS if word in query)]


def ingredients(scorer: EntailmentScorer | None = None) -> Ingredients:
    return Ingredients(
        llm=None,
        retriever=CountingRetriever(documents=find),
        scorer=scorer or ScriptedScorer(word_for_word),
        k=2,
        budget=3,
    )


def predicted(folder: Path, given: Ingredients | None = None, **others: Any) -> list[ControlledPrediction]:
    with Journal(folder / f"{EXTRACTIVE}.jsonl", header(EXTRACTIVE)) as journal:
        return predict_controlled(given or ingredients(), QUESTIONS, journal, chunk=2, **others)


def counted(rows: list[ControlledPrediction]) -> KnownMarks:
    return sum(map(KnownMarks.of, rows), KnownMarks())


def test_a_perfect_judge_and_search_make_no_mistake(tmp_path: Path) -> None:
    counts = counted(predicted(tmp_path))
    assert (counts.copied, counts.swapped, counts.withheld) == (5, 5, 5)
    assert counts == KnownMarks(
        copied=5,
        swapped=5,
        withheld=5,
        written=15,
        linked=5,
        named=10,
        attributed=10,
        retrieved=5,
        kept=5,
        left=5,
    )


def test_a_judge_that_believes_everything(tmp_path: Path) -> None:
    counts = counted(predicted(tmp_path, ingredients(ScriptedScorer(lambda premise, hypothesis: 1.0))))
    # The first passage is linked to everything: the copied statement is right only where it comes from that one.
    assert counts.linked + counts.mislinked == 5
    assert (counts.fooled, counts.named, counts.doubted) == (10, 0, 0)
    # A statement is searched for by itself, so its own passage comes first.
    assert (counts.attributed, counts.misattributed, counts.swapped_attributed) == (10, 0, 5)
    # The writer's own marks, and the loop that follows them, need no judge.
    assert (counts.written, counts.retrieved, counts.kept, counts.left) == (15, 5, 5, 5)


def test_a_judge_that_believes_nothing(tmp_path: Path) -> None:
    counts = counted(predicted(tmp_path, ingredients(ScriptedScorer(lambda premise, hypothesis: 0.0))))
    assert (counts.linked, counts.mislinked, counts.doubted, counts.fooled, counts.named) == (0, 0, 5, 0, 10)
    assert (counts.attributed, counts.misattributed, counts.swapped_attributed) == (0, 0, 0)


def test_a_search_that_brings_only_what_the_question_brings(tmp_path: Path) -> None:
    def same(query: str) -> list[Document]:
        return PASSAGES[next(word for word in WORDS if word in query)][:2] if "?" in query else []

    given = ingredients()
    given.retriever.documents = same  # type: ignore[attr-defined]
    counts = counted(predicted(tmp_path, given))
    # Nothing lies behind the passages that are shown, so nothing could be withheld.
    assert (counts.withheld, counts.retrieved, counts.attributed) == (0, 0, 0)
    assert counts.written == counts.statements == 10


def test_a_killed_run_goes_on_with_the_same_bytes(tmp_path: Path) -> None:
    predicted(tmp_path)
    file = tmp_path / f"{EXTRACTIVE}.jsonl"
    whole = file.read_bytes()
    file.write_bytes(b"".join(whole.splitlines(keepends=True)[:2]))
    predicted(tmp_path)
    assert file.read_bytes() == whole


def test_another_seed_says_other_things(tmp_path: Path) -> None:
    said = [[row.statements for row in predicted(tmp_path / str(seed), seed=seed)] for seed in (0, 0, 1)]
    assert said[0] == said[1] != said[2]


def test_the_table(tmp_path: Path) -> None:
    predicted(tmp_path)
    with Journal(tmp_path / ENTAILMENT_FILE, {"entailment": "words"}) as journal:
        scores = KnownScores.kept_in(journal, "words", ScriptedScorer(word_for_word))
        run = GroundedRun.read(tmp_path / f"{EXTRACTIVE}.jsonl", scores)
    # Of three statements the copied one is entailed by what it cites; the judge agrees with the writer.
    assert [row.recall for row in run.judgements] == [pytest.approx(1 / 3)] * 5
    assert [row.precision for row in run.judgements] == [1] * 5
    table = controlled(grounded_experiments([run]))
    rows = {str(row.label.text): row.cells for row in table.rows}
    right = rows["copied statement linked to its passage"][2]
    assert (right.value, right.count, right.total) == (1, 5, 5)
    for cells in rows.values():
        assert cells[2].value == {"all": 1, "none": 0}[str(cells[3].text)]
        assert cells[2].total in (5, 10, 15)


def test_what_is_planned() -> None:
    passages = PASSAGES["mill"]
    for seed in range(20):
        statements = {one.kind: one.text for one in plan_statements(passages, 2, random.Random(seed))}
        assert any(statements["copied"] in text_of(passage) for passage in passages[:2])
        assert not any(statements["swapped"] in text_of(passage) for passage in passages)
        assert not any(statements["withheld"] in text_of(passage) for passage in passages[:2])
        assert any(statements["withheld"] in text_of(passage) for passage in passages[2:])


def test_nothing_is_planned_where_nothing_is_fit() -> None:
    unfit = ["too short.", "An ending that is cut off in the middle of", "It stands in the very middle of Corran St."]
    assert plan_statements([Document(text) for text in unfit], 2, random.Random(0)) == ()
    assert plan_statements([], 2, random.Random(0)) == ()


def test_the_writer_marks_what_it_is_shown() -> None:
    question = "Who built the mill?"
    said = [
        Statement(text="The mill was built by Ada Holm in 1881.", kind="copied"),
        Statement(text="After the fire of 1904 the mill was bought by Ulla Brandt.", kind="withheld"),
    ]
    writer = ExtractiveWriter({question: said})
    shown = PASSAGES["mill"]
    first = parse_response(writer(writer.prompt.render(question, shown[:2])), 2)
    assert [cited["citations"] for cited in first.sentences] == [[1], []]
    assert first.unsupported == (said[1].text,)
    second = parse_response(writer(writer.prompt.render(question, [shown[2], shown[0]])), 2)
    assert [cited["citations"] for cited in second.sentences] == [[2], [1]]
    assert second.supported
    assert parse_response(writer(writer.memory_prompt.render(question)), 0).unsupported == tuple(
        one.text for one in said
    )


def test_what_looks_like_a_name() -> None:
    text = "The mill of Ada Holm, near Corran Bay, was sold in May by Éva O'Hara. Later Ada Holm left on a Sunday."
    assert names_in(text) == ["Ada Holm", "Corran Bay", "Éva O'Hara"]


_SENTENCES = st.lists(
    st.sampled_from(["the mill", "in 1881", "by Ada Holm", "and 7 men", "near Corran Bay", "of 3.5 tons", "from Ulm"]),
    min_size=1,
    max_size=6,
).map(lambda parts: f"It was {', '.join(parts)}.")


@given(_SENTENCES, st.lists(st.sampled_from(["Ada Holm", "Ulm", "Ulla Brandt", "Corran Bay"])), st.integers())
def test_one_fact_is_swapped_for_one_that_is_not_there(sentence: str, names: list[str], seed: int) -> None:
    swapped = swap_fact(sentence, sentence, names, random.Random(seed))
    if swapped is None:
        assert not any(digits in sentence for digits in ("1881", "7"))
        assert not names_in(sentence) or all(name in sentence for name in names)
        return
    start = next(at for at, (a, b) in enumerate(zip(swapped, sentence, strict=False)) if a != b)
    new = swapped.split()
    old = sentence.split()
    assert [word for word in new if word not in old] or len(new) != len(old)
    assert "3.5" not in sentence or "3.5" in swapped, "a decimal is no whole number"
    assert sentence[:start] == swapped[:start]
    assert swapped != sentence
    assert names_in(swapped) == names_in(sentence) or any(name in swapped and name not in sentence for name in names)
