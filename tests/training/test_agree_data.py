"""AGREE's tuning data: which response is kept, what it cites, resuming with the same bytes, and tuning on the rows."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document

from adaptllm_chain.agree import GroundedAnswerChain, GroundedPrompt, parse_response
from adaptllm_chain.cli import embedder_loading
from adaptllm_chain.cli.console import progress_bar
from adaptllm_chain.cli.indexing import IndexSettings, index_files
from adaptllm_chain.entailment import ClassifierScorer, EntailmentScorer, TrueNliScorer
from adaptllm_chain.errors import DataFileError, InvalidInputError, PromptMismatchError
from adaptllm_chain.llms import LocalLLM
from adaptllm_chain.prompts import PromptSpec
from adaptllm_chain.testing import ScriptedLLM
from tests.agree.scenes import ScriptedScorer, word_for_word
from tests.cli.stand_ins import WordEmbedder
from tests.entailment.tiny import bert, bert_tokenizer, t5, t5_tokenizer
from tests.tiny_models import byte_level_tokenizer, tiny_llama
from training import agree_data
from training.agree.judging import load_judge, scorer_identity
from training.agree.queries import Query, read_queries
from training.agree.responses import Thresholds, make_row, report, response_sentences
from training.agree_data import main
from training.recipe import Recipe
from training.rows import answer_room, read_rows
from training.sft import run

PAPER = Thresholds(link_above=0.7, unsupported_up_to=0.5)
QUERY = Query("q.txt:1", "When was the mill built?")
PASSAGES = [Document("The mill was built in 1790."), Document("It burned down.", metadata={"title": "Mill"})]


# The pure part: responses and scores in, a row out.


def test_the_best_grounded_response_is_kept_with_its_citations() -> None:
    """Worked by hand: mean best scores (.9 + .2) / 2 = .55 and (.8 + .6) / 2 = .7."""
    responses = ["It was built in 1790. It was blue.", "It was built in 1790. It burned."]
    tables = [[[0.9, 0.1], [0.2, 0.1]], [[0.8, 0.3], [0.5, 0.6]]]
    made = make_row(QUERY, PASSAGES, responses, tables, PAPER)
    assert made.row == {
        "prompt": GroundedPrompt().render(QUERY.text, PASSAGES),
        "completion": "It was built in 1790 [1]. It burned.",  # .6 is neither linked nor unsupported
        "kind": "grounded",
        "question_id": "q.txt:1",
        "grounding": 0.7,
        "passages": 2,
    }
    assert make_row(QUERY, PASSAGES, responses, tables, replace(PAPER, least_grounding=0.7)).row == made.row
    below = make_row(QUERY, PASSAGES, responses, tables, replace(PAPER, least_grounding=0.71))
    assert below.row is None
    assert report(1, [below])["rows"]["below_least_grounding"] == 1
    assert report(3, [made]) == {
        "queries": 3,
        "without_passages": 2,
        "responses": {"responses": 2, "empty": 0, "unreadable": 0, "refused_by_judge": 0},
        "sentences": {"sentences": 4, "linked": 2, "unsupported": 1, "in_between": 1, "unfinished": 0},
        "rows": {"rows": 1, "without_citation": 0, "sentences": 2, "linked": 1, "unsupported": 0, "in_between": 1,
                 "mean_grounding": 0.7, "below_least_grounding": 0},
    }  # fmt: skip


def test_unsupported_statements_stand_after_the_response_and_a_row_without_citation_is_counted() -> None:
    made = make_row(QUERY, PASSAGES, ["It is blue."], [[[0.5, 0.1]]], PAPER)
    assert made.row is not None
    assert made.row["completion"] == "It is blue.\n\nUnsupported statements:\n- It is blue."
    assert report(1, [made])["rows"]["without_citation"] == 1


def test_what_cannot_be_used_is_passed_over_and_counted() -> None:
    responses = ["", "[1] …", "It was built in 1790.", "It ran. And then it was"]
    tables: list[Any] = [[], [], None, [[0.1, 0.1]]]
    made = make_row(QUERY, PASSAGES, responses, tables, PAPER)
    assert made.row is not None
    assert made.row["completion"].startswith("It ran.\n\nUnsupported statements:")
    counts = report(1, [made])
    assert counts["responses"] == {"responses": 4, "empty": 2, "unreadable": 0, "refused_by_judge": 1}
    assert counts["sentences"]["unfinished"] == 1
    nothing = make_row(QUERY, PASSAGES, ["", ""], [[], []], PAPER)
    assert nothing.row is None
    assert report(1, [nothing])["rows"] | {"mean_grounding": 0} == {
        "rows": 0, "without_citation": 0, "below_least_grounding": 0, "sentences": 0, "linked": 0, "unsupported": 0,
        "in_between": 0, "mean_grounding": 0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("response", "sentences"),
    [
        ("It ran. And then it was", ["It ran."]),
        ("It ran. \u201cIt stopped.\u201d", ["It ran.", "\u201cIt stopped.\u201d"]),
        ("1790", ["1790"]),
        ("It ran [1]. It stopped [2]", ["It ran."]),
        ("", []),
    ],
)
def test_an_unfinished_last_sentence_is_left_out_unless_it_is_all(response: str, sentences: list[str]) -> None:
    assert response_sentences(response) == sentences


words = st.sampled_from(["mill", "was", "built", "in", "1790", "the", "river", "Dr.", "U.S.", "old", "[1]", "\n"])
texts = st.lists(st.one_of(words, st.sampled_from([".", "! ", "? ", ". "])), max_size=14).map(" ".join)


@settings(deadline=None)
@given(st.lists(texts, min_size=1, max_size=3), st.data())
def test_a_row_reads_back_as_the_labels_that_it_was_made_of(responses: list[str], data: st.DataObject) -> None:
    cut = [response_sentences(response) for response in responses]
    score = st.tuples(st.floats(0, 1), st.floats(0, 1))
    known = {sentence: list(data.draw(score)) for sentence in dict.fromkeys(chain.from_iterable(cut))}
    tables = [[known[sentence] for sentence in sentences] for sentences in cut]
    made = make_row(QUERY, PASSAGES, responses, tables, PAPER)
    counts = report(1, [made])
    assert counts["sentences"]["sentences"] == sum(map(len, cut))
    assert all(number >= 0 for number in counts["sentences"].values())
    if made.row is None:
        assert counts["responses"]["empty"] + counts["responses"]["unreadable"] == len(responses)
        return
    read = parse_response(made.row["completion"], 2)
    assert read.rejected == 0
    kept = [sentence["sentence"] for sentence in read.sentences]
    assert kept in cut
    scores = [max(known[sentence]) for sentence in kept]
    assert made.row["grounding"] == pytest.approx(fmean(scores), abs=1e-6)
    if not counts["responses"]["unreadable"]:
        best = max(fmean(max(row) for row in table) for table in tables if table)
        assert made.row["grounding"] == pytest.approx(best, abs=1e-6)
    for sentence, most in zip(read.sentences, scores, strict=True):
        linked = [known[sentence["sentence"]].index(most) + 1]
        assert sentence["citations"] == (linked if most > 0.7 else [])
        assert (sentence["sentence"] in read.unsupported) == (most <= 0.5)


def test_thresholds_in_the_wrong_order_are_refused_before_anything_is_asked(tmp_path: Path, capsys) -> None:
    command = ["--queries", "none.txt", "--out", str(tmp_path), "--link-above", "0.4"]
    assert main(command) == 2
    assert "unsupported_up_to=0.5 is above link_above=0.4" in capsys.readouterr().err


# Queries.


def test_queries_need_no_answers_and_come_once(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("who built it\n\nWhen was it built?\n")
    (tmp_path / "b.jsonl").write_text('{"question": "Who built it?"}\n{"question": "why", "answers": ["x"]}\n')
    (tmp_path / "c.json").write_text(json.dumps([{"question": "where", "answers": ["here"], "id": "c7"}]))
    files = [str(tmp_path / name) for name in ("a.txt", "b.jsonl", "c.json")]
    assert read_queries(files) == [
        Query("a.txt:1", "who built it"), Query("a.txt:2", "When was it built?"),
        Query("b.jsonl:2", "why"), Query("c.json:c7", "where"),
    ]  # fmt: skip
    assert read_queries(files, limit=1) == [Query("a.txt:1", "who built it")]


def test_two_files_of_one_name_have_rows_of_their_own(tmp_path: Path) -> None:
    files = []
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        files.append(str(tmp_path / folder / "q.txt"))
        Path(files[-1]).write_text(f"what is {folder}\n")
    assert [query.id for query in read_queries(files)] == ["q.txt#1:1", "q.txt#2:1"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("q.jsonl", '{"question": "a"}\n{"answer": "b"}\n', "line 2"),
        ("q.jsonl", "{\n", "line 1"),
        ("q.txt", None, "cannot be read"),
        ("q.txt", "\n", "no question"),
    ],
)
def test_a_file_without_questions_is_named(tmp_path: Path, name: str, content: str | None, message: str) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises((DataFileError, InvalidInputError), match=message) as caught:
        read_queries([str(tmp_path / name)])
    assert name in str(caught.value)


# The whole command, with a scripted model, a scripted judge and a stand-in embedder.

TOWNS = ["Harwick", "Belmora", "Sandholt", "Quennby", "Tarnwick", "Veldoria", "Ostbruck"]


def answer(prompt: str) -> str:
    """Repeat the passage on the town that is asked about, then something that no passage says."""
    town = re.search(r"built in (\w+)\?", prompt)
    assert town is not None
    (said,) = re.findall(rf"^\[\d\] (.*{town[1]}.*)$", prompt, re.MULTILINE)
    return "" if town[1] == "Ostbruck" else f"{said} It was blue."


MODEL = ScriptedLLM(script=answer)
JUDGE = ScriptedScorer(word_for_word)
TOO_LONG = ScriptedScorer(lambda premise, hypothesis: _refuse(hypothesis) or word_for_word(premise, hypothesis))
NO_JUDGE = 0.5


def _refuse(hypothesis: str) -> float:
    if "Quennby" in hypothesis:
        raise InvalidInputError("a hypothesis has 300 tokens")
    return 0.0


@pytest.fixture
def questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(embedder_loading, "load_embedder", lambda name, **_: WordEmbedder())
    MODEL.calls.clear()
    JUDGE.calls.clear()
    path = tmp_path / "questions.json"
    rows = [
        {"question": f"When was the mill built in {town}?", "answers": ["x"],
         "gold_passage": f"The mill in {town} was built in {1700 + place}."}
        for place, town in enumerate(TOWNS)
    ]  # fmt: skip
    path.write_text(json.dumps(rows))
    return path


HERE = "python:tests.training.test_agree_data"


def command(questions: Path, out: Path, **changed: str) -> list[str]:
    options = {
        "queries": str(questions), "passages-of": str(questions), "out": str(out), "model": f"{HERE}:MODEL",
        "nli": f"{HERE}:JUDGE", "batch-size": "1", "samples": "2", "k": "3",
    }  # fmt: skip
    given_options = {**options, **{name.replace("_", "-"): value for name, value in changed.items()}}
    return [part for name, value in given_options.items() if value for part in (f"--{name}", value)]


def written(folder: Path) -> dict[str, bytes]:
    """Everything but the seconds, which are never the same twice."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and path.name != "seconds.json"}


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]


def test_one_command_makes_the_rows(questions: Path, tmp_path: Path, capsys) -> None:
    out = tmp_path / "out"
    assert main(command(questions, out)) == 0
    rows = rows_of(out)
    assert [row["question_id"] for row in rows] == [f"questions.json:{number}" for number in range(1, 7)]
    for row, town in zip(rows, TOWNS, strict=False):
        number = re.search(rf"\[(\d)\] The mill in {town}", row["prompt"])
        assert number is not None
        sentence = f"The mill in {town} was built in {1700 + TOWNS.index(town)}"
        assert row["completion"] == f"{sentence} [{number[1]}]. It was blue.\n\nUnsupported statements:\n- It was blue."
        assert (row["grounding"], row["passages"]) == (0.5, 3)
    counts = json.loads((out / "counts.json").read_text())
    assert counts["queries"] == 7
    assert counts["responses"] == {"responses": 14, "empty": 2, "unreadable": 0, "refused_by_judge": 0}
    assert counts["sentences"] == {"sentences": 24, "linked": 12, "unsupported": 12, "in_between": 0, "unfinished": 0}
    assert counts["rows"]["rows"] == 6
    assert counts["settings"]["k"] == 3
    assert set(json.loads((out / "seconds.json").read_text())) == {"searching", "sampling", "judging"}
    assert "7 queries, 14 responses, 24 sentences: 12 linked" in capsys.readouterr().out


def test_the_pairs_of_a_chunk_are_one_call_and_none_comes_twice(questions: Path, tmp_path: Path) -> None:
    assert main(command(questions, tmp_path / "out")) == 0
    assert [len(set(call)) for call in JUDGE.calls] == [len(call) for call in JUDGE.calls]
    # 8 * 1 // 2 queries a chunk: four, then three of which one has no response. Each has a sentence of its own and
    # three passages; the sentence that all have in common meets each of four passages once.
    assert [len(call) for call in JUDGE.calls] == [4 * 3 + 4, 2 * 3 + 4]
    assert [len(call) for call in MODEL.calls] == [8, 6]


def test_a_finished_folder_asks_nothing_again_and_other_thresholds_write_other_rows(
    questions: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert main(command(questions, out)) == 0
    before, asked, judged = written(out), len(MODEL.calls), len(JUDGE.calls)
    assert main(command(questions, out)) == 0
    assert written(out) == before
    assert main(command(questions, out, unsupported_below="-1")) == 0
    assert (len(MODEL.calls), len(JUDGE.calls)) == (asked, judged)
    assert not any("Unsupported statements" in row["completion"] for row in rows_of(out))
    assert json.loads((out / "counts.json").read_text())["rows"]["unsupported"] == 0


@pytest.mark.parametrize("stage", ["searching", "sampling", "judging"])
def test_a_run_that_stops_in_any_stage_goes_on_and_writes_the_same_bytes(
    questions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    assert main(command(questions, tmp_path / "unbroken")) == 0
    out = tmp_path / "out"
    owner, name = {
        "searching": (WordEmbedder, "embed_query"),
        "sampling": (ScriptedLLM, "_generate"),
        "judging": (ScriptedScorer, "score"),
    }[stage]
    whole, calls = getattr(owner, name), []

    def fails_the_second_time(self: Any, *given: Any, **more: Any) -> Any:
        calls.append(given)
        if len(calls) == (10 if stage == "searching" else 2):
            raise KeyboardInterrupt
        return whole(self, *given, **more)

    with monkeypatch.context() as patched:
        patched.setattr(owner, name, fails_the_second_time)
        with pytest.raises(KeyboardInterrupt):
            main(command(questions, out))
    assert not (out / "rows.jsonl").exists()
    last = {"searching": "passages.jsonl", "sampling": "samples.jsonl", "judging": "scores.jsonl"}[stage]
    if (out / last).exists():
        with (out / last).open("ab") as file:
            file.write(b'{"rows": [{"id": "torn')  # the kill that hits the middle of a write
    asked = len(MODEL.calls)
    assert main(command(questions, out)) == 0
    assert written(out) == written(tmp_path / "unbroken")
    assert len(MODEL.calls) - asked == {"searching": 2, "sampling": 1, "judging": 0}[stage]


OTHER_MODEL = ScriptedLLM(script=answer, name="other")
OTHER_JUDGE = ScriptedScorer(lambda premise, hypothesis: 1.0)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"limit": "6"}, "queries: "),
        ({"k": "2"}, "k: 3 -> 2"),
        ({"samples": "3"}, "samples: 2 -> 3"),
        ({"temperature": "0.5"}, "temperature: 0.7 -> 0.5"),
        ({"seed": "4"}, "seed: 0 -> 4"),
        ({"max_new_tokens": "5"}, "max_new_tokens: 96 -> 5"),
        ({"model": f"{HERE}:OTHER_MODEL"}, f"model: '{HERE}:MODEL' -> '{HERE}:OTHER_MODEL'"),
        ({"nli": f"{HERE}:OTHER_JUDGE"}, f"nli: '{HERE}:JUDGE' -> '{HERE}:OTHER_JUDGE'"),
    ],
    ids=str,
)
def test_what_differs_from_the_run_that_is_resumed_is_refused_by_name(
    questions: Path, tmp_path: Path, capsys, changed: dict[str, str], named: str
) -> None:
    out = tmp_path / "out"
    assert main(command(questions, out)) == 0
    before = written(out)
    capsys.readouterr()
    assert main(command(questions, out, **changed)) == 2
    assert named in capsys.readouterr().err
    assert written(out) == before


def test_another_index_is_refused(questions: Path, tmp_path: Path, capsys) -> None:
    indexes = []
    for count in (7, 5):
        some = tmp_path / f"{count}.json"
        some.write_text(json.dumps(json.loads(questions.read_text())[-count:]))
        indexes.append(tmp_path / f"index-{count}")
        with progress_bar("passages", hidden=True) as bar:
            index_files([], indexes[-1], WordEmbedder(), IndexSettings(passages_of=(str(some),)), bar)
    own = {"passages_of": "", "embeddings": "words", "queries": str(tmp_path / "5.json")}
    assert main(command(questions, tmp_path / "out", index=str(indexes[0]), **own)) == 0
    assert main(command(questions, tmp_path / "out", index=str(indexes[1]), **own)) == 2
    assert "index: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"passages_of": ""}, "neither --index nor --passages-of"),
        ({"index": "x"}, "both --index and --passages-of"),
        ({"nli": "python:no.such:thing"}, "names nothing"),
        ({"nli": f"{HERE}:NO_JUDGE"}, "'python:tests.training.test_agree_data:NO_JUDGE' is a float"),
        ({"nli": "no/such-model"}, "no model could be loaded from 'no/such-model'"),
        ({"queries": "none.json"}, "none.json"),
    ],
)
def test_errors_say_what_to_type(
    questions: Path, tmp_path: Path, capsys, changed: dict[str, str], message: str
) -> None:
    assert main(command(questions, tmp_path / "out", **changed)) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "expected: " in error


def test_a_response_that_the_judge_refuses_costs_no_other(questions: Path, tmp_path: Path, capsys) -> None:
    out = tmp_path / "out"
    assert main(command(questions, out, nli=f"{HERE}:TOO_LONG")) == 0
    counts = json.loads((out / "counts.json").read_text())
    assert counts["responses"]["refused_by_judge"] == 2
    assert [row["question_id"][-1] for row in rows_of(out)] == list("12356")
    assert "a hypothesis has 300 tokens" in capsys.readouterr().err


def test_a_local_model_samples_anew_in_each_chunk_and_the_same_when_resumed(
    questions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_base(tmp_path / "base")
    local = {"model": str(tmp_path / "base"), "max_new_tokens": "6", "temperature": "1.5", "device": "cpu"}
    outs = [tmp_path / "one", tmp_path / "two"]
    assert main(command(questions, outs[0], **local)) == 0
    chunks = [json.loads(line)["answers"] for line in (outs[0] / "samples.jsonl").read_text().splitlines()[1:]]
    drawn = [row["answers"] for chunk in chunks for row in chunk]
    assert any(first != second for first, second in drawn)
    with monkeypatch.context() as patched:
        patched.setattr(agree_data, "_judge", lambda *_: pytest.fail("not yet"))
        ask = LocalLLM.batch
        asked: list[int] = []

        def once(self: Any, prompts: Sequence[str], *given: Any, **more: Any) -> Any:
            asked.append(len(prompts))
            if len(asked) == 2:
                raise KeyboardInterrupt
            return ask(self, list(prompts), *given, **more)

        patched.setattr(LocalLLM, "batch", once)
        with pytest.raises(KeyboardInterrupt):
            main(command(questions, outs[1], **local))
    assert asked == [8, 6]
    assert main(command(questions, outs[1], **local)) == 0
    assert written(outs[0]) == written(outs[1])
    other = tmp_path / "other"
    assert main(command(questions, other, **local, seed="1")) == 0
    assert (other / "samples.jsonl").read_bytes().splitlines()[1:] != (
        (outs[0] / "samples.jsonl").read_bytes().splitlines()[1:]
    )


def test_judges_are_loaded_by_what_they_are(tmp_path: Path) -> None:
    bert().save_pretrained(tmp_path / "bert")
    bert_tokenizer().save_pretrained(tmp_path / "bert")
    t5().save_pretrained(tmp_path / "true_nli")
    t5_tokenizer().save_pretrained(tmp_path / "true_nli")
    scorers: list[EntailmentScorer] = [load_judge(str(tmp_path / name), device="cpu") for name in ("bert", "true_nli")]
    assert [type(scorer) for scorer in scorers] == [ClassifierScorer, TrueNliScorer]
    bert(seed=1).save_pretrained(tmp_path / "bert")
    again = load_judge(str(tmp_path / "bert"), device="cpu")
    hashes = {scorer_identity(scorer, "m")["nli_weights"] for scorer in (*scorers, again)}
    assert len(hashes) == 3
    assert load_judge(f"{HERE}:JUDGE") is JUDGE


# Tuning on the rows.


def save_base(folder: Path) -> None:
    tokenizer = byte_level_tokenizer()
    model = tiny_llama(tokenizer)
    model.config.max_position_embeddings = 2048
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def grounded_row(number: int, **changed: Any) -> dict[str, Any]:
    passages = [Document(f"Mill {number} was built in {1700 + number}."), Document("It burned.")]
    return {
        "prompt": GroundedPrompt().render(f"When was mill {number} built?", passages),
        "completion": f"It was built in {1700 + number} [1]. It hums.\n\nUnsupported statements:\n- It hums.",
        "kind": "grounded", "question_id": str(number), "grounding": 0.6, "passages": 2, **changed,
    }  # fmt: skip


def write(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def tuned(tmp_path: Path, rows: Sequence[dict[str, Any]], **fields: Any) -> tuple[dict[str, Any], Recipe]:
    save_base(tmp_path / "base")
    recipe = Recipe(**{
        "base": str(tmp_path / "base"), "rows": write(tmp_path / "rows.jsonl", rows), "out": tmp_path / "mine",
        "format": "chat", "kinds": ("grounded",), "device": "cpu", "batch_size": 4, "micro_batch_size": 2,
        "max_steps": 2, "max_length": 700, "dev_fraction": 0.3, **fields,
    })  # fmt: skip
    return run(recipe), recipe


def test_an_adapter_says_that_it_was_tuned_for_grounded_answers_and_on_which_prompt(tmp_path: Path) -> None:
    long = grounded_row(77, completion="It was built in 1790 [1]. " * 80)
    result, recipe = tuned(tmp_path, [*map(grounded_row, range(12)), long])
    assert result["rows_too_long"] + result["dev_rows_too_long"] == 1
    spec = PromptSpec.load(recipe.out)
    assert spec.trained_on == ()
    assert spec.grounded == GroundedPrompt().template
    spec.check_grounded(GroundedPrompt().template)
    with pytest.raises(PromptMismatchError, match="not that of the model's adapter"):
        spec.check_grounded(GroundedPrompt.by_example().template)
    with pytest.raises(PromptMismatchError, match=r"(?s)'parametric' prompt.*grounded"):
        spec.check("parametric")
    with pytest.raises(PromptMismatchError, match="not trained on grounded answers"):
        PromptSpec().check_grounded(GroundedPrompt().template)
    figures = result["dev"]["grounded"]
    assert (figures["questions"], figures["cited_share_taught"], figures["unsupported_share_taught"]) == (
        12 - sum(result["rows"].values()), 0.5, 1.0,
    )  # fmt: skip
    card = (recipe.out / "README.md").read_text()
    assert "GroundedAnswerChain" in card
    assert "AdaptiveRetrievalChain" not in card
    assert "**grounded**" in card
    assert "| share of sentences that cite, in the rows | 0.5 |" in card
    llm = LocalLLM.from_pretrained(recipe.base, adapter=recipe.out, max_new_tokens=4, device="cpu")
    assert llm.prompt_spec == spec
    assert GroundedAnswerChain(llm=llm, retriever=lambda _: PASSAGES).invoke("when?")["context"] == PASSAGES


def test_a_chain_takes_the_prompt_of_the_adapter_and_refuses_another() -> None:
    def chain(spec: PromptSpec | None, prompt: GroundedPrompt | None = None) -> GroundedAnswerChain:
        return GroundedAnswerChain(llm=Tuned(script=answer, prompt_spec=spec), retriever=lambda _: [], prompt=prompt)

    own = GroundedPrompt(template="{passages} {question}")
    tuned_on_own = PromptSpec(trained_on=(), grounded=own.template)
    assert chain(tuned_on_own).prompt == chain(tuned_on_own, own).prompt == own
    assert chain(None).prompt == GroundedPrompt()
    assert chain(None, own).prompt == own
    with pytest.raises(PromptMismatchError, match="leave prompt out"):
        chain(tuned_on_own, GroundedPrompt())
    with pytest.raises(PromptMismatchError, match="not trained on grounded answers"):
        chain(PromptSpec())


class Tuned(ScriptedLLM):
    """A scripted model that says what its adapter was trained on."""

    prompt_spec: PromptSpec | None = None


def test_one_adapter_can_learn_to_decide_and_to_cite(tmp_path: Path) -> None:
    templates = PromptSpec().templates
    rows = [
        {"prompt": templates.render("parametric", f"who is {number}?"), "completion": "<RET>", "kind": "parametric",
         "label": "unknown", "question_id": str(number)}
        for number in range(8)
    ]  # fmt: skip
    _, recipe = tuned(tmp_path, [*rows, *map(grounded_row, range(8))], kinds=("parametric", "grounded"), dev_fraction=0)
    spec = PromptSpec.load(recipe.out)
    assert list(spec.instructions) == ["parametric", "grounded"]
    card = (recipe.out / "README.md").read_text()
    assert "AdaptiveRetrievalChain" in card
    assert "AGREE" in card


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"prompt": "Answer the question Q. Q: who?"}, "is a grounded row, but its prompt begins with"),
        ({"passages": None}, "is no training row"),
        ({"kind": "cited"}, "is no training row"),
    ],
)
def test_a_row_that_a_chain_would_not_ask_is_refused(tmp_path: Path, changed: dict[str, Any], message: str) -> None:
    path = write(tmp_path / "rows.jsonl", [grounded_row(0), grounded_row(1, **changed)])
    with pytest.raises(DataFileError, match=f"line 2 {message}"):
        read_rows([path])


def test_the_room_for_an_answer_is_the_longest_completion_as_far_as_every_prompt_leaves_it() -> None:
    rows = [{"labels": [-100] * 5 + [1] * 4}, {"labels": [-100] * 8 + [1] * 2}]
    assert answer_room(rows, None) == 4
    assert answer_room(rows, 100) == 4
    assert answer_room(rows, 10) == 2
