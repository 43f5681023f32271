from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from qa_files import CONTENTS, lines, write

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.qa_data import ReadReport, question_key, read_many


@given(st.text(max_size=20))
def test_the_key_is_stable_under_what_it_ignores(text: str) -> None:
    key = question_key(text)
    assert question_key(f"  {text} ? ") == key
    assert question_key(key) == key


def test_the_key() -> None:
    assert question_key("Who  keeps\tthe Light ?") == question_key("who keeps the light")
    assert question_key("who? me") != question_key("who me")


def test_files_are_joined_in_order_and_ids_stay_unique(tmp_path: Path) -> None:
    one = write(tmp_path, CONTENTS["nq_open"], "one.jsonl")
    two = write(tmp_path, CONTENTS["nq_open_oracle"], "two.jsonl.gz", compress=True)
    questions = read_many([one, two])
    assert [question.id for question in questions] == ["1", "2", "two.jsonl.gz:1"]
    twice = read_many([one, one, one], deduplicate=False)
    assert len({question.id for question in twice}) == 6


def test_a_duplicate_with_a_gold_passage_takes_the_place(tmp_path: Path) -> None:
    bare = write(
        tmp_path, lines([{"question": text, "answers": ["Eve"]} for text in ("Who sings?", "who  SINGS", "x")]), "a"
    )
    rows = [{"question": "who sings", "answers": [name], "context": f"{name} sings."} for name in ("Eva", "Evi")]
    rich = write(tmp_path, lines(rows), "b")
    for paths in ([bare, rich], [rich, bare]):
        report = ReadReport()
        questions = read_many(paths, report=report)
        assert [question.answers for question in questions] == [("Eva",), ("Eve",)]
        assert (report.questions, report.duplicates) == (5, 3)
    assert len(read_many([bare, rich], deduplicate=False)) == 5


@pytest.mark.parametrize("paths", ["file.json", Path("file.json"), []])
def test_one_path_or_none_is_refused(paths: object) -> None:
    with pytest.raises(InvalidInputError, match="paths"):
        read_many(paths)  # type: ignore[arg-type]
