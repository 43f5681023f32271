from __future__ import annotations

from pathlib import Path

import pytest

from adaptllm_chain.qa_data import ReadReport, read_many, read_questions

DATA = Path(__file__).parents[3] / "shared" / "data"
pytestmark = [
    pytest.mark.shared_data,
    pytest.mark.skipif(not DATA.is_dir(), reason=f"needs the question-answering files in {DATA}"),
]


@pytest.mark.parametrize(
    ("name", "questions", "with_gold", "with_given"),
    [
        ("nq_train_gold.json", 425, 425, 0),
        ("squad_train_gold.json", 366, 366, 0),
        ("squad_dev_gold.json", 284, 284, 0),
        ("nq_dev_contriever.json", 240, 240, 240),
        ("popqa_test_test.json", 2000, 0, 2000),
        ("nq-open-oracle.jsonl.gz", 2400, 2400, 0),
        ("NQ-open.dev.jsonl", 3610, 0, 0),
        ("xquad.en.json", 1190, 1190, 0),
    ],
)
def test_e4_real_files_load(name: str, questions: int, with_gold: int, with_given: int) -> None:
    found = list(read_questions(DATA / name))
    assert len(found) == questions
    assert len({question.id for question in found}) == questions
    assert sum(question.gold_passage is not None for question in found) == with_gold
    assert sum(bool(question.given_passages) for question in found) == with_given
    if with_given:
        assert all(question.given_passages[0].metadata["score"] > 0 for question in found)
    if name.startswith("popqa"):
        assert all(question.popularity is not None for question in found)


def test_overlapping_files_are_joined_once() -> None:
    report = ReadReport()
    found = read_many([DATA / "NQ-open.dev.jsonl", DATA / "nq-open-oracle.jsonl.gz"], report=report)
    assert report.questions == 6010
    assert len(found) == report.questions - report.duplicates
    assert sum(question.gold_passage is not None for question in found) == 2400
