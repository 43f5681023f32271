"""Rows for the entailment scorer, what it is measured with, and a run of the whole command on a made-up world."""

from __future__ import annotations

import json
import random
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.metrics import auc
from adaptllm_chain.records import Question
from training.nli.__main__ import HEAD_FOLDER, RESULT_FILE, main, make_parser
from training.nli.answer_kinds import kind_of, spans
from training.nli.figures import baseline, figures, log_loss, word_overlap
from training.nli.fitting import batches, rate
from training.nli.items import is_held_out, read_sides, usable_answer
from training.nli.recipe import NliRecipe
from training.nli.rows import Item, Row, RowKind, make_rows, premise_of
from training.nli.statements import declarative, plain_statement

NAMES = ["Ada Holm", "Jon Berg", "Lia Moss", "Per Dahl", "Eva Lund", "Kai Roth", "Ida Falk", "Olaf Brandt"]
TOWNS = ["Velm", "Torsby", "Ulvik", "Arden", "Mossby", "Hallen", "Rind", "Skagen"]


def item(number: int) -> Item:
    name, town = NAMES[number % len(NAMES)], TOWNS[number % len(TOWNS)]
    year, mills = 1801 + 7 * number, 3 + number
    passage = Document(
        f"The old mill of {town} was built by {name} in {year}. It has {mills} stones (all of them old) and a wheel. "
        f"The owner in later years was {NAMES[(number + 1) % len(NAMES)]}, who sold it in {year + 40}.",
        metadata={"title": f"Mill of {town}"},
    )
    other = Document(f"A bridge of {town} was opened in {year + 3} by the mayor. It crosses the river and is long.")
    if number % 2:
        return Item(f"when was the mill of {town} built", str(year), (str(year),), passage, other)
    return Item(f"who built the mill of {town}", name, (name,), passage, other)


ITEMS = [item(number) for number in range(40)]
ROWS = make_rows(ITEMS, seed=3)


# -- statements ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "answer", "sentence"),
    [
        ("who built the mill?", "Ada Holm", "Ada Holm built the mill."),
        ("Who is the owner of Velm", "Per Dahl.", "Per Dahl is the owner of Velm."),
        ("what is the capital of velm", "Torsby", "The capital of velm is Torsby."),
        ("when did the film come out", "May 3, 1951", "The film came out on May 3, 1951."),
        ("when did the film come out", "1951", "The film came out in 1951."),
        ("when did the first film stop", "in 1951", "The first film stopped in 1951."),
        ("where did the mayor move to", "Velm", "The mayor moved to Velm."),
        ("when was the mill built", "1881", "The mill was built in 1881."),
        ("where is the mill located", "near Velm", "The mill is located near Velm."),
        ("which team won the cup", "Velm", "Velm won the cup."),
        ("how many stones are there in the mill", "three", "There are three stones in the mill."),
        ("how many stones were in the mill", "3", "There were 3 stones in the mill."),
    ],
)
def test_common_questions_become_sentences(question: str, answer: str, sentence: str) -> None:
    assert declarative(question, answer) == sentence


@pytest.mark.parametrize(
    "question",
    [
        "who did the mayor meet",  # the answer is no subject
        "when did it",  # no verb
        "when did the start of the change",  # nouns that are spelled like verbs
        "where was the boat built by Ada found",  # two participles: one belongs to the subject
        "when does the mill open",
        "how long is the river",
        "why",
        "",
    ],
)
def test_other_questions_are_left_to_the_plain_wording(question: str) -> None:
    assert declarative(question, "Velm") is None


@given(st.text(max_size=60), st.text(max_size=30))
def test_a_statement_is_one_sentence_with_the_answer_in_it(question: str, answer: str) -> None:
    bare = answer.strip().rstrip(" .?").strip()
    for statement in (plain_statement(question, answer), declarative(question, answer)):
        if statement is not None:
            assert bare.casefold() in statement.casefold()
            assert statement.endswith(".")


# -- kinds of answers ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("1951", "year"),
        ("in 1951", "year"),
        ("3 May 1951", "date"),
        ("May 3, 1951", "date"),
        ("3", "number"),
        ("12,000 people", "number"),
        ("three", "number"),
        ("more than 80", "phrase"),
        ("Ada Holm", "name"),
        ("Bank of England", "name"),
        ("the old mill", "phrase"),
        ("", "phrase"),
    ],
)
def test_kinds_by_surface(answer: str, kind: str) -> None:
    assert kind_of(answer) == kind


def test_spans_of_a_sentence() -> None:
    text = "On 3 May 1951 Ada Holm sold 12 mills near Velm for 4,500.50 crowns, as J. Berg had in 1899. It was sad."
    assert [(kind, text[start:end]) for kind, start, end in spans(text)] == [
        ("date", "3 May 1951"),
        ("name", "Ada Holm"),
        ("number", "12"),
        ("name", "Velm"),
        ("number", "4,500.50"),
        ("name", "J. Berg"),
        ("year", "1899"),
    ]


@given(st.text(alphabet="aA1 .,MaybeJune2019ofthe", max_size=80))
def test_spans_are_in_order_and_do_not_overlap(text: str) -> None:
    found = spans(text)
    assert all(0 <= start < end <= len(text) for _, start, end in found)
    assert all(before[2] <= after[1] for before, after in pairwise(found))


# -- rows ------------------------------------------------------------------------------------------


def test_all_kinds_are_made_and_the_same_again() -> None:
    made = Counter(row.kind for row in ROWS)
    assert set(made) == set(get_args(RowKind))
    assert make_rows(ITEMS, seed=3) == ROWS
    assert make_rows(ITEMS, seed=4) != ROWS


def test_what_an_item_gives_does_not_hang_on_the_length_of_the_list_before_it() -> None:
    assert make_rows(ITEMS[:20], seed=3)[:3] == ROWS[:3]


def owner(row: Row) -> Item:
    """The item that a row with a passage of its own was made of: towns repeat, years do not."""
    return next(one for one in ITEMS if row.premise.removeprefix("Mill of ").strip() and _shares(row.premise, one))


def _shares(premise: str, one: Item) -> bool:
    text = premise.rsplit("\n", maxsplit=1)[-1]
    return text in one.passage.page_content


@pytest.mark.parametrize("kind", ["answer", "sentence", "shortened"])
def test_entailed_rows_hold_what_they_are_based_on(kind: str) -> None:
    rows = [row for row in ROWS if row.kind == kind]
    for row in rows:
        assert row.entailed
        if kind == "answer":
            assert any(one.answer in row.premise and one.answer in row.hypothesis for one in ITEMS)
        elif kind == "sentence":
            assert row.hypothesis in row.premise
        else:
            assert row.hypothesis not in row.premise
            assert set(row.hypothesis.rstrip(".").split()) <= set(row.premise.replace(",", "").replace(".", "").split())


def test_wrong_answers_are_of_the_same_kind_and_stand_where_they_ought_to() -> None:
    for row in ROWS:
        if row.kind not in {"other_answer", "passage_answer"}:
            continue
        one = owner(row)
        assert one.answer not in row.hypothesis
        inserted = [kind for kind, start, end in spans(row.hypothesis) if row.hypothesis[start:end] not in one.question]
        assert ("year" in inserted) == (kind_of(one.answer) == "year")
        if row.kind == "passage_answer":
            said = [row.hypothesis[start:end] for _, start, end in spans(row.hypothesis)]
            assert any(text in one.passage.page_content for text in said)


def test_negatives_from_elsewhere_lack_the_answer() -> None:
    for row in ROWS:
        if row.kind in {"retrieved", "other_passage"}:
            asked = [one for one in ITEMS if row.hypothesis in _wordings(one)]
            assert asked
            assert all(one.answer not in row.premise for one in asked)
        if row.kind == "foreign":
            assert row.hypothesis not in row.premise


def _wordings(one: Item) -> list[str | None]:
    return [plain_statement(one.question, one.answer), declarative(one.question, one.answer)]


def test_a_swap_changes_one_thing_and_a_negation_adds_one_word() -> None:
    for row in ROWS:
        if row.kind == "swapped":
            own = [
                text for text in _own_sentences(owner(row)) if len(set(text.split()) ^ set(row.hypothesis.split())) <= 6
            ]
            assert own
            assert row.hypothesis not in own
        if row.kind == "negated":
            words = row.hypothesis.split()
            assert words.count("not") == 1
            words.remove("not")
            bare = " ".join(words)
            assert any(bare in [*_wordings(one), *_own_sentences(one)] for one in ITEMS)


def _own_sentences(one: Item) -> list[str]:
    return [text.strip() + "." for text in one.passage.page_content.rstrip(".").split(". ")]


def test_joined_rows_say_two_things_and_partial_ones_a_wrong_one() -> None:
    for row in ROWS:
        if row.kind == "joined":
            one = owner(row)
            parts = row.hypothesis.rstrip(".").casefold()
            assert any(text.rstrip(".").casefold() in parts for text in _own_sentences(one))
            assert any(text is not None and text.rstrip(".").casefold() in parts for text in _wordings(one))
        if row.kind == "partial":
            one = owner(row)
            told = [*_own_sentences(one), *(text for text in _wordings(one) if text is not None)]
            assert row.hypothesis not in told
            assert any(text.rstrip(".").casefold() in row.hypothesis.casefold() for text in told)


def test_an_exchange_keeps_the_words_and_changes_their_order() -> None:
    rows = [row for row in ROWS if row.kind == "exchanged"]
    for row in rows:
        same = [text for text in _own_sentences(owner(row)) if sorted(_plain(text)) == sorted(_plain(row.hypothesis))]
        assert same
        assert row.hypothesis not in same


def _plain(text: str) -> list[str]:
    return text.replace(".", "").replace(",", "").split()


def test_names_in_a_list_are_not_exchanged() -> None:
    text = "The mill was run by Ada Holm, Jon Berg and Lia Moss for some years."
    lone = Item("who ran it", "Ada Holm", ("Ada Holm",), Document(text), ITEMS[0].lookalike)
    assert not [
        row for row in make_rows([lone, *ITEMS[:3]], seed=0)[:20] if row.kind == "exchanged" and row.premise == text
    ]


def test_the_title_takes_the_place_of_a_pronoun_where_the_premise_shows_it() -> None:
    passage = Document("Velm lies here. It was built by Ada Holm in the year 1881.", metadata={"title": "Velm (town)"})
    rows = [
        row
        for seed in range(12)
        for row in make_rows([Item("who built it", "Ada Holm", ("Ada Holm",), passage, ITEMS[0].lookalike)], seed=seed)
    ]
    resolved = [row for row in rows if row.kind == "resolved"]
    assert resolved
    assert {row.hypothesis for row in resolved} == {"Velm was built by Ada Holm in the year 1881."}
    assert all(row.premise.startswith("Velm (town)\n") for row in resolved)


def test_a_passage_is_one_premise_in_all_rows_of_a_run() -> None:
    for one in ITEMS:
        premise = premise_of(one.passage, seed=3)
        assert premise in {one.passage.page_content, f"{one.passage.metadata['title']}\n{one.passage.page_content}"}
        assert premise in {row.premise for row in ROWS}
    assert len({row.premise for row in ROWS}) <= 2 * len(ITEMS)
    titled = [premise_of(one.passage, seed=3).startswith("Mill of") for one in ITEMS]
    assert 0 < sum(titled) < len(titled)
    assert premise_of(ITEMS[0].lookalike, seed=3) == ITEMS[0].lookalike.page_content  # it has no title


# -- questions -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "answers", "chosen"),
    [
        ("who built it", ("1881", "Ada Holm"), "Ada Holm"),
        ("where was it built", ("1881", "Velm"), "Velm"),
        ("when was it built", ("Velm", "1881"), "Velm"),
        ("when was it built", ("1882", "1881"), "1881"),
        ("who built it", ("Holm Ada",), None),
        ("who built it", ("The",), None),  # nothing is left of it
    ],
)
def test_the_answer_is_one_that_stands_in_the_passage_and_fits(
    text: str, answers: tuple[str, ...], chosen: str | None
) -> None:
    passage = Document("The mill of Velm was built by Ada Holm in 1881.")
    assert usable_answer(Question(id="1", text=text, answers=answers, gold_passage=passage)) == chosen
    assert usable_answer(Question(id="1", text=text, answers=answers)) is None


def test_the_held_out_share_is_about_what_was_asked_for_and_spelling_does_not_matter() -> None:
    passages = [Document(f"passage {number}") for number in range(4000)]
    held = [is_held_out(passage, share=0.1) for passage in passages]
    assert 320 <= sum(held) <= 480  # five standard deviations
    assert [is_held_out(Document(f"The Passage  {number}!"), share=0.1) for number in range(4000)] == held
    # A larger share holds out more, never others.
    assert all(is_held_out(passage, share=0.3) for passage, out in zip(passages, held, strict=True) if out)
    assert not any(is_held_out(passage, share=0.0) for passage in passages)


# -- training --------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 300), max_size=200), st.integers(1, 9), st.integers(0, 3))
def test_every_row_is_dealt_once_and_batches_hold_like_lengths(lengths: list[int], size: int, seed: int) -> None:
    dealt = list(batches(lengths, size, random.Random(seed)))
    assert sorted(place for batch in dealt for place in batch) == list(range(len(lengths)))
    assert len(dealt) == -(-len(lengths) // size)
    assert all(len(batch) <= size for batch in dealt)
    assert all([lengths[place] for place in batch] == sorted(lengths[place] for place in batch) for batch in dealt)
    assert list(batches(lengths, size, random.Random(seed))) == dealt


def test_the_rate_rises_and_falls() -> None:
    recipe = NliRecipe(data=(Path("x"),), learning_rate=1.0, warmup_steps=9)
    rates = [rate(step, 100, recipe) for step in range(100)]
    assert rates[:3] == pytest.approx([0.1, 0.2, 0.3])
    assert max(rates) == pytest.approx(0.91)  # where the two lines cross
    assert rates[50] == pytest.approx(0.5)
    assert rates[-1] == pytest.approx(0.01)


# -- figures ---------------------------------------------------------------------------------------


def rows_of(*kinds: str) -> list[Row]:
    return [Row("p", "h", kind) for kind in kinds]  # type: ignore[arg-type]


def test_figures_worked_out_by_hand() -> None:
    rows = rows_of("answer", "answer", "sentence", "swapped", "swapped", "negated")
    found = figures(rows, [0.9, 0.6, 0.2, 0.8, 0.1, 0.5])
    assert (found["rows"], found["entailed"]) == (6, 3)
    # Entailed against not: .9 beats all three, .6 two, .2 one, of nine pairs.
    assert found["auc"] == pytest.approx(6 / 9, abs=1e-4)
    # Right: .9, .6, .1, and .5, which is not above the cut.
    assert found["accuracy"][0] == pytest.approx(4 / 6, abs=1e-4)
    assert found["by_kind"]["answer"]["right"][0] == 1.0
    assert found["by_kind"]["sentence"] == {"entailed": True, "rows": 1, "right": [0.0, 0.0, 0.7935]}
    assert found["by_kind"]["swapped"]["right"][0] == 0.5
    assert found["at"]["0.7"]["precision"][0] == 0.5
    assert found["at"]["0.7"]["recall"][0] == pytest.approx(1 / 3, abs=1e-4)
    assert found["at"]["0.5"]["precision"][0] == pytest.approx(2 / 3, abs=1e-4)
    assert sum(part["rows"] for part in found["reliability"]) == 6
    assert found["brier"] == pytest.approx((0.01 + 0.16 + 0.64 + 0.64 + 0.01 + 0.25) / 6, abs=1e-4)


def test_log_loss_is_finite_even_for_a_certain_mistake() -> None:
    assert log_loss([0.5, 0.5], [True, False]) == pytest.approx(0.6931, abs=1e-4)
    assert log_loss([0.0], [True]) == pytest.approx(13.8155, abs=1e-4)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=2, max_size=25))
def test_no_cut_is_better_than_the_best(pairs: list[tuple[int, bool]]) -> None:
    if len({true for _, true in pairs}) < 2:
        return
    rows = rows_of(*("answer" if true else "swapped" for _, true in pairs))
    values = [float(value) for value, _ in pairs]
    found = baseline(rows, values)
    cuts = [-1.0, *values]
    best = max(sum((value > cut) == true for value, true in pairs) for cut in cuts)
    assert found["accuracy"][0] == pytest.approx(best / len(pairs), abs=1e-4)
    assert sum((value > found["best_cut"]) == true for value, true in pairs) == best
    assert found["auc"] == pytest.approx(auc(values, [true for _, true in pairs]), abs=1e-4)


def test_word_overlap() -> None:
    assert word_overlap(Row("The mill was built in 1881.", "A mill was sold.", "swapped")) == pytest.approx(2 / 3)
    assert word_overlap(Row("x", "The!", "swapped")) == 0.0


# -- the command -----------------------------------------------------------------------------------


def test_every_setting_is_an_option(tmp_path: Path) -> None:
    arguments = [
        "--data",
        "a.json",
        "--data",
        "b.json",
        "--out",
        str(tmp_path),
        "--width",
        "4",
        "--learning-rate",
        "0.1",
    ]
    recipe = NliRecipe(**vars(make_parser().parse_args(arguments)))
    assert recipe == NliRecipe(data=(Path("a.json"), Path("b.json")), out=tmp_path, width=4, learning_rate=0.1)
    assert set(vars(make_parser().parse_args(["--data", "a"]))) == set(NliRecipe.model_fields)


def test_a_missing_file_is_said_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--data", str(tmp_path / "no.json"), "--out", str(tmp_path / "out")]) == 2
    assert "no.json" in capsys.readouterr().err


def write_questions(path: Path, count: int) -> Path:
    """The items as a file in DPR's format."""
    rows: list[dict[str, Any]] = []
    for one in (item(number) for number in range(count)):
        title = one.passage.metadata["title"]
        context = {"title": title, "text": one.passage.page_content, "hasanswer": True, "isgold": True}
        rows.append({"question": one.question, "answers": list(one.accepted), "ctxs": [context]})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.embedded
def test_the_command_trains_and_measures_and_does_so_again(tmp_path: Path) -> None:
    data = write_questions(tmp_path / "mills.jsonl", 40)
    arguments = ["--data", str(data), "--out", str(tmp_path / "out"), "--held-out-share", "0.3"]
    arguments += ["--epochs", "1", "--batch-size", "32", "--width", "32", "--blocks", "1"]
    assert main(arguments) == 0
    written = (tmp_path / "out" / RESULT_FILE).read_text(encoding="utf-8")
    result = json.loads(written)
    training = result["training"]
    assert training["rows"] == sum(result["train_rows"].values())
    assert training["steps"] == -(-training["rows"] // 32)
    assert 0 <= result["held_out"]["auc"] <= 1
    assert set(result["baselines"]) == {"word_overlap", "cosine"}
    assert len(result["probe"]) == 30
    # No text of the data gets into what is published.
    assert not any(f"mill of {town}" in written.casefold() for town in map(str.casefold, TOWNS))
    head = tmp_path / "out" / HEAD_FOLDER
    assert sorted(path.name for path in head.iterdir()) == ["head.json", "head.safetensors"]
    weights = (head / "head.safetensors").read_bytes()

    # The same command gives the same bytes; another recipe does not get the folder.
    assert main(arguments) == 0
    assert (head / "head.safetensors").read_bytes() == weights
    assert main([*arguments, "--seed", "1"]) == 2


@pytest.mark.embedded
def test_no_passage_is_on_both_sides(tmp_path: Path) -> None:
    data = write_questions(tmp_path / "mills.jsonl", 40)
    sides = read_sides([data], held_out_share=0.3, store_folder=tmp_path / "stores")
    train, held = ({p.page_content for i in s for p in (i.passage, i.lookalike)} for s in (sides.train, sides.held_out))
    assert train
    assert held
    assert not train & held
    assert all(one.answer not in one.lookalike.page_content for one in (*sides.train, *sides.held_out))
    with pytest.raises(InvalidInputError, match="between 0 and 1"):
        read_sides([data], held_out_share=1.0, store_folder=tmp_path / "stores")
    with pytest.raises(InvalidInputError, match="0 to measure on"):
        read_sides([data], held_out_share=1e-9, store_folder=tmp_path / "others")
