"""Algorithm 1: rows, counts, resuming with the same bytes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from langchain_core.runnables import RunnableLambda

from adaptllm_chain.errors import InvalidInputError, JournalError
from adaptllm_chain.journal import Journal
from adaptllm_chain.prompts import PromptTemplates
from adaptllm_chain.qa_data import read_questions
from adaptllm_chain.records import Question
from tests.conftest import ROOT
from tests.tiny_models import byte_level_tokenizer, tiny_llama
from training.algorithm1 import ask_all, main
from training.labelling import (
    Evidence,
    adaptive_rows,
    always_retrieve_row,
    count,
    never_retrieve_row,
    share_to_answer,
)

CAPITALS = {
    "Sweden": "Stockholm", "Norway": "Oslo", "Italy": "Rome", "Spain": "Madrid", "Japan": "Tokyo",
    "Egypt": "Cairo", "Peru": "Lima", "Kenya": "Nairobi", "Cuba": "Havana", "Ghana": "Accra",
}  # fmt: skip


@pytest.fixture
def ten_rows(tmp_path: Path) -> Path:
    path = tmp_path / "ten.jsonl"
    rows = [
        {
            "question": f"what is the capital of {country}",
            "answers": [city],
            "gold_passage": f"{city} is the seat of government of {country}.",
        }
        for country, city in CAPITALS.items()
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def tiny_base(tmp_path: Path) -> Path:
    tokenizer = byte_level_tokenizer()
    tiny_llama(tokenizer).save_pretrained(tmp_path / "base")
    tokenizer.save_pretrained(tmp_path / "base")
    return tmp_path / "base"


def knows_europe(prompt: str) -> str:
    return next((f"It is {CAPITALS[c]}." for c in ("Sweden", "Norway", "Italy", "Spain") if c in prompt), "No idea.")


def test_rows_follow_the_algorithm(ten_rows: Path) -> None:
    templates = PromptTemplates()
    rows = []
    for question in read_questions(ten_rows):
        rows += adaptive_rows(question, Evidence(knows_europe(question.text)), templates)
    known = [row for row in rows if row["label"] == "known"]
    unknown = [row for row in rows if row["label"] == "unknown"]
    assert [row["completion"] for row in known] == ["Stockholm", "Oslo", "Rome", "Madrid"]
    assert {row["kind"] for row in known} == {"parametric"}
    assert [row["completion"] for row in unknown[:2]] == ["<RET>", "Tokyo"]
    assert unknown[0]["prompt"] == (
        "Answer the question Q. If you need help answer <RET> to get the context. Q: what is the capital of Japan"
    )
    assert unknown[1]["prompt"] == (
        "Answer the question Q given the context C. Q: what is the capital of Japan, "
        "C: Tokyo is the seat of government of Japan."
    )
    assert count(10, rows) == {
        "questions": 10, "known": 4, "unknown": 6, "ret_share": 0.6, "rows": {"context": 6, "parametric": 10},
    }  # fmt: skip


def test_a_known_question_is_taught_the_answer_that_the_model_gave(ten_rows: Path) -> None:
    question = replace(next(iter(read_questions(ten_rows))), answers=("Stockholms stad", "Stockholm"))
    (row,) = adaptive_rows(question, Evidence("Stockholm, I think"), PromptTemplates())
    assert row["completion"] == "Stockholm"


def test_strict_rule(ten_rows: Path) -> None:
    question = next(iter(read_questions(ten_rows)))
    rows = adaptive_rows(question, Evidence("It is Stockholm."), PromptTemplates(), rule="exact_match")
    assert [(row["kind"], row["completion"]) for row in rows] == [("parametric", "<RET>"), ("context", "Stockholm")]


def test_the_baselines_rows_are_there_for_known_and_unknown_questions(ten_rows: Path) -> None:
    question = next(iter(read_questions(ten_rows)))
    for answer, label in (("It is Stockholm.", "known"), ("No idea", "unknown")):
        never = never_retrieve_row(question, Evidence(answer), PromptTemplates())
        always = always_retrieve_row(question, Evidence(answer), PromptTemplates())
        assert never["prompt"] == "Answer the question Q. Q: what is the capital of Sweden"
        assert "C: Stockholm is the seat" in always["prompt"]
        assert [(row["kind"], row["completion"], row["label"]) for row in (never, always)] == [
            ("closed_book", "Stockholm", label), ("context", "Stockholm", label),
        ]  # fmt: skip
    assert always_retrieve_row(replace(question, gold_passage=None), Evidence("x"), PromptTemplates()) is None


def test_the_soft_label_is_the_share_of_right_samples(ten_rows: Path) -> None:
    question = next(iter(read_questions(ten_rows)))
    evidence = Evidence("No idea", samples=("Stockholm", "Oslo", "It is Stockholm", "?"))
    rows = list(adaptive_rows(question, evidence, PromptTemplates(), label="soft"))
    assert [(row["kind"], row["completion"], row.get("weight")) for row in rows] == [
        ("parametric", "Stockholm", 0.5), ("parametric", "<RET>", 0.5), ("context", "Stockholm", None),
    ]  # fmt: skip
    assert count(1, rows) | {"rows": None} == {
        "questions": 1, "known": 0.5, "unknown": 0.5, "ret_share": 0.5, "rows": None
    }  # fmt: skip
    sure = Evidence("No idea", samples=("Stockholm", "Stockholm"))
    assert [row["completion"] for row in adaptive_rows(question, sure, PromptTemplates(), label="soft")] == [
        "Stockholm"
    ]
    with pytest.raises(InvalidInputError, match="samples"):
        share_to_answer(question, Evidence("x"), label="soft")


@pytest.mark.parametrize(
    ("answer", "with_passage", "share"),
    [("Stockholm", "Oslo", 1), ("Oslo", "Stockholm", 0), ("Oslo", "Oslo", 1), ("Oslo", None, 1)],
)
def test_the_utility_label_retrieves_only_where_the_passage_helps(
    ten_rows: Path, answer: str, with_passage: str | None, share: float
) -> None:
    question = next(iter(read_questions(ten_rows)))
    assert share_to_answer(question, Evidence(answer, with_passage=with_passage), label="utility") == share


def closed_book(questions: list[Question]) -> list[tuple[str, str]]:
    return [(question.id, PromptTemplates().render("closed_book", question.text)) for question in questions]


def test_any_langchain_model_can_be_the_base(ten_rows: Path, tmp_path: Path) -> None:
    questions = list(read_questions(ten_rows))
    with Journal(tmp_path / "answers.jsonl", {}) as journal:
        answers = ask_all(RunnableLambda(knows_europe), closed_book(questions), journal, chunk=3)
    assert answers == [[knows_europe(question.text)] for question in questions]


KNOWS_EUROPE = RunnableLambda(knows_europe)


@pytest.mark.parametrize("name", ["python:tests.training.test_algorithm1:KNOWS_EUROPE"])
def test_a_langchain_model_of_the_users_own_by_name(ten_rows: Path, tmp_path: Path, name: str) -> None:
    assert main(["--data", str(ten_rows), "--out", str(tmp_path), "--model", name, "--baseline-rows"]) == 0
    counts = json.loads((tmp_path / "counts.json").read_text())
    assert (counts["known"], counts["unknown"], counts["ret_share"]) == (4, 6, 0.6)
    assert len((tmp_path / "never_rows.jsonl").read_text().splitlines()) == 10
    assert len((tmp_path / "always_rows.jsonl").read_text().splitlines()) == 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "python:no.such:thing"], "names nothing"),
        (["--model", "python:json:JSONDecoder"], "JSONDecoder"),
        (["--model", "nobody:model"], "nobody:model"),
        (["--model", "model", "--base-url", "http://localhost:1"], "--model openai:model"),
        (["--model", "openai:m", "--load-in", "8bit"], "--load-in"),
    ],
)
def test_a_model_that_cannot_be_made_is_a_clear_error(
    ten_rows: Path, tmp_path: Path, capsys, arguments: list[str], message: str
) -> None:
    assert main(["--data", str(ten_rows), "--out", str(tmp_path), *arguments]) == 2
    assert message in capsys.readouterr().err


def test_samples_are_asked_several_times_and_another_label_asks_nothing_again(
    ten_rows: Path, tiny_base: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    arguments = ["--data", str(ten_rows), "--out", str(out), "--model", str(tiny_base), "--max-new-tokens", "4"]
    assert main([*arguments, "--label", "soft", "--samples", "3", "--temperature", "2"]) == 0
    chunks = [json.loads(line) for line in (out / "samples.jsonl").read_text().splitlines()[1:]]
    drawn = [answer["answers"] for chunk in chunks for answer in chunk["answers"]]
    assert [len(answers) for answers in drawn] == [3] * 10
    assert any(len(set(answers)) == 3 for answers in drawn)
    before = (out / "answers.jsonl").read_bytes()
    assert main(arguments) == 0
    assert main([*arguments, "--label", "utility"]) == 0
    assert (out / "answers.jsonl").read_bytes() == before
    written = {path.name for path in out.iterdir()}
    assert {"rows.jsonl", "rows_soft.jsonl", "rows_utility.jsonl", "counts_soft.json"} <= written
    # The same seed draws the same samples.
    other = [*arguments[:3], str(tmp_path / "other"), *arguments[4:]]
    assert main([*other, "--label", "soft", "--samples", "3", "--temperature", "2"]) == 0
    assert (tmp_path / "other" / "samples.jsonl").read_bytes() == (out / "samples.jsonl").read_bytes()


def test_one_command_on_a_ten_row_file_e6(ten_rows: Path, tiny_base: Path, tmp_path: Path, capsys) -> None:
    out = tmp_path / "out"
    arguments = ["--data", str(ten_rows), "--out", str(out), "--model", str(tiny_base), "--max-new-tokens", "4"]
    assert main(arguments) == 0
    rows = [json.loads(line) for line in (out / "rows.jsonl").read_text().splitlines()]
    counts = json.loads((out / "counts.json").read_text())
    assert counts["questions"] == 10
    assert counts["rows"] == {"context": counts["unknown"], "parametric": 10}
    assert len(rows) == 10 + counts["unknown"]
    assert "10 questions" in capsys.readouterr().out
    before = {file.name: file.read_bytes() for file in out.iterdir()}
    assert main(arguments) == 0  # nothing left to ask
    assert {file.name: file.read_bytes() for file in out.iterdir()} == before


def test_other_settings_are_refused(ten_rows: Path, tiny_base: Path, tmp_path: Path, capsys) -> None:
    arguments = ["--data", str(ten_rows), "--out", str(tmp_path / "o"), "--model", str(tiny_base)]
    assert main([*arguments, "--max-new-tokens", "4"]) == 0
    assert main([*arguments, "--max-new-tokens", "5"]) == 2
    assert "max_new_tokens: 4 -> 5" in capsys.readouterr().err


def test_the_same_files_in_another_order_are_other_settings(tiny_base: Path, tmp_path: Path, capsys) -> None:
    files = []
    for name in ("a", "b"):
        files.append(tmp_path / name / "t.jsonl")  # the same name, in two folders
        files[-1].parent.mkdir()
        files[-1].write_text(json.dumps({"question": f"what is {name}", "answers": [name]}) + "\n")
    shared = ["--out", str(tmp_path / "o"), "--model", str(tiny_base), "--max-new-tokens", "4"]
    assert main(["--data", str(files[0]), "--data", str(files[1]), *shared]) == 0
    assert main(["--data", str(files[1]), "--data", str(files[0]), *shared]) == 2
    assert "data" in capsys.readouterr().err


def test_a_journal_that_answers_other_questions_is_refused(ten_rows: Path, tmp_path: Path) -> None:
    questions = list(read_questions(ten_rows))
    llm = RunnableLambda(knows_europe)
    with Journal(tmp_path / "answers.jsonl", {}) as journal:
        ask_all(llm, closed_book(questions[:6]), journal, chunk=3)
        with pytest.raises(JournalError, match="other questions"):
            ask_all(llm, closed_book(questions[::-1]), journal, chunk=3)


def test_a_file_that_is_not_there_is_a_clear_error(tmp_path: Path, capsys) -> None:
    assert main(["--data", str(tmp_path / "none.jsonl"), "--out", str(tmp_path / "o")]) == 2
    assert "none.jsonl" in capsys.readouterr().err


def test_killed_and_started_again_gives_the_same_bytes(ten_rows: Path, tiny_base: Path, tmp_path: Path) -> None:
    many = tmp_path / "many.jsonl"
    lines = ten_rows.read_text().splitlines()
    many.write_text(
        "".join(line.replace("capital of", f"capital ({n}) of") + "\n" for n in range(40) for line in lines)
    )

    def command(out: Path) -> list[str]:
        return [
            sys.executable, str(ROOT / "training" / "algorithm1.py"), "--data", str(many), "--out", str(out),
            "--model", str(tiny_base), "--batch-size", "2", "--max-new-tokens", "24",
        ]  # fmt: skip

    unbroken, broken = tmp_path / "unbroken", tmp_path / "broken"
    subprocess.run(command(unbroken), check=True, capture_output=True)
    journal = broken / "answers.jsonl"
    for chunks in (3, 9):
        process = subprocess.Popen(command(broken), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 120
        while not (journal.exists() and journal.read_bytes().count(b"\n") > chunks):
            assert process.poll() is None, "it ended before it could be killed"
            assert time.monotonic() < deadline
            time.sleep(0.005)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert not (broken / "rows.jsonl").exists()
    with journal.open("ab") as file:
        file.write(b'{"answers": [{"id": "torn')  # the kill that hits the middle of a write
    subprocess.run(command(broken), check=True, capture_output=True)
    for name in ("answers.jsonl", "rows.jsonl", "counts.json"):
        assert (broken / name).read_bytes() == (unbroken / name).read_bytes()


def test_an_error_of_the_base_names_the_question(ten_rows: Path, tmp_path: Path, capsys) -> None:
    model = "python:tests.training.test_algorithm1:FAILS_ON_PERU"
    assert main(["--data", str(ten_rows), "--out", str(tmp_path), "--model", model]) == 2
    message = capsys.readouterr().err
    assert "question '7'" in message
    assert "Peru" in message


def _fails_on_peru(prompt: str) -> str:
    if "Peru" in prompt:
        raise ConnectionError("server gone")
    return "No idea."


FAILS_ON_PERU = RunnableLambda(_fails_on_peru)


@pytest.mark.parametrize("option", [["--limit", "-1"], ["--batch-size", "0"], ["--samples", "0"]])
def test_a_count_below_one_is_wrong_usage(ten_rows: Path, tmp_path: Path, option: list[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--data", str(ten_rows), "--out", str(tmp_path), *option])


def test_skipped_rows_are_counted(ten_rows: Path, tmp_path: Path, capsys) -> None:
    ten_rows.write_text(ten_rows.read_text() + '{"question": "", "answers": []}\n')
    model = "python:tests.training.test_algorithm1:KNOWS_EUROPE"
    assert main(["--data", str(ten_rows), "--out", str(tmp_path), "--model", model, "--on-bad-row", "skip"]) == 0
    assert json.loads((tmp_path / "counts.json").read_text())["skipped"] == 1
    assert "1 broken rows skipped" in capsys.readouterr().out
