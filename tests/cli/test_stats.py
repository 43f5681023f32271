from __future__ import annotations

import argparse
import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from adaptllm_chain.cli import data_options
from adaptllm_chain.qa_data import DATASETS, DEFAULT_COLUMNS, OnCut, OnProblem, read_many, read_questions
from tests.cli.conftest import Run
from tests.cli.test_app import QUICK_ONLY

ROWS = [
    {"question": "who sings at noon", "answers": ["Eve", "Eve Moss"], "context": "Eve sings.", "s_pop": 3},
    {"question": "Who sings at noon?", "answers": ["Eve"]},
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


def test_help_answers_at_once() -> None:
    ran = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "adaptllm_chain.cli", "stats", "--help"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ran.returncode == 0
    imported = {line.rsplit("|", 1)[1].strip() for line in ran.stderr.splitlines() if "|" in line}
    assert imported.isdisjoint({*QUICK_ONLY, "datasets", "adaptllm_chain.qa_data"})
    assert "white space" in ran.stdout
    assert "all accepted answers" in " ".join(ran.stdout.split())


def test_what_is_offered_is_what_the_library_takes() -> None:
    assert tuple(DEFAULT_COLUMNS) == data_options.PARTS
    assert get_args(OnProblem) == data_options.ON_PROBLEM
    assert get_args(OnCut) == data_options.ON_CUT
    offered = {word.strip(",") for word in data_options.SOURCES.split() if word.startswith("hub:")}
    assert offered == {f"hub:{name}:{split}" for name, one in DATASETS.items() if one.hub_path for split in one.splits}
    parser = argparse.ArgumentParser()
    data_options.add_data_options(parser)
    keywords = set(data_options.read_arguments(parser.parse_args([])))
    for reader in (read_questions, read_many):
        assert keywords <= set(inspect.signature(reader).parameters)


def test_one_file(run: Run, data: Path) -> None:
    ran = run("stats", data)
    assert ran.code == 0
    heading, figures = (line.split() for line in ran.out.splitlines())
    assert heading[0] == "questions"
    assert figures == [str(data), "2", "4.00", "1.33", "1.00", "1.50", "50.0%", "0.0%", "50.0%", "1", "0"]


def test_several_files_have_a_total(run: Run, data: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text("question,answer\nwho sings at noon,Eve\nwhy,for two reasons\n")
    ran = run("stats", data, other, "--json")
    found = json.loads(ran.out)
    assert [file["source"] for file in found["files"]] == [str(data), str(other)]
    assert [file["questions"] for file in found["files"]] == [2, 2]
    assert [file["duplicates"] for file in found["files"]] == [1, 0]
    # One more across the files.
    assert (found["total"]["questions"], found["total"]["duplicates"]) == (4, 2)
    assert found["total"]["words_per_answer"] == (1 + 2 + 1 + 1 + 3) / 5
    assert run("stats", data, other).out.splitlines()[-1].split()[:2] == ["total", "4"]


def test_broken_rows_are_refused_or_counted_and_named(run: Run, data: Path) -> None:
    with data.open("a") as stream:
        stream.write('{"question": "no answer"}\n' * 25)
    ran = run("stats", data)
    assert ran.code == 2
    assert "line 3: 'answers' or 'answer' or 'possible_answers' is missing" in ran.err
    ran = run("stats", data, "--on-bad-row", "skip")
    assert ran.code == 0
    assert f"{data}: skipped 25 broken rows" in ran.out
    assert f"  {data}: line 3: 'answers'" in ran.out
    assert "  and 5 more" in ran.out
    found = json.loads(run("stats", data, "--on-bad-row", "skip", "--json").out)
    assert found["total"]["skipped"] == 25
    assert len(found["files"][0]["problems"]) == 20


def test_a_cut_file_is_refused_or_read_as_far_as_it_is_whole(run: Run, data: Path) -> None:
    whole = data.read_bytes()
    data.write_bytes(whole[:-4])
    ran = run("stats", data)
    assert ran.code == 2
    assert f"at byte {len(whole) - 4}" in ran.err
    ran = run("stats", data, "--on-cut", "keep")
    assert ran.code == 0
    assert ran.out.splitlines()[1].split()[1] == "1"
    assert f"{data}: the file ends in the middle of line 2, at byte {len(whole) - 4}" in ran.out


def test_unanswerable_questions_can_be_left_out(run: Run, tmp_path: Path) -> None:
    entries = [
        {"id": "1", "question": "who", "answers": [{"text": "Eve"}]},
        {"id": "2", "question": "why", "answers": [], "is_impossible": True},
    ]
    squad = tmp_path / "squad.json"
    squad.write_text(json.dumps({"data": [{"title": "T", "paragraphs": [{"context": "c", "qas": entries}]}]}))
    assert run("stats", squad).code == 2
    ran = run("stats", squad, "--on-unanswerable", "skip")
    assert ran.code == 0
    assert "1 unanswerable questions were left out" in ran.out


def test_columns_of_ones_own(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "mine.tsv"
    path.write_text("q\tgold\nwho sings\tEve\n")
    ran = run("stats", path, "--column", "question=q", "--column", "answers=gold", "--json")
    assert json.loads(ran.out)["total"]["words_per_question"] == 2
    for wrong in ("reply=gold", "question", "question="):
        ran = run("stats", path, "--column", wrong)
        assert ran.code == 2
        assert "PART=NAME" in ran.err


def test_names_that_lead_nowhere(run: Run, tmp_path: Path) -> None:
    ran = run("stats", tmp_path / "absent.json")
    assert ran.code == 2
    assert "no such file" in ran.err
    ran = run("stats", "hub:nq:train")
    assert ran.code == 2
    assert "biencoder-nq-train.json.gz" in ran.err
    assert run("stats").code == 2
