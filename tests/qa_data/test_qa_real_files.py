from __future__ import annotations

from pathlib import Path

import pytest

from adaptllm_chain.qa_data import CutFileError, ReadReport, read_many, read_questions

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


@pytest.mark.parametrize(
    "name", ["xquad.en.json", "popqa_test_test.json", "NQ-open.dev.jsonl", "nq-open-oracle.jsonl.gz"]
)
def test_real_files_that_are_cut(name: str, tmp_path: Path) -> None:
    whole = (DATA / name).read_bytes()
    full = list(read_questions(DATA / name))
    cut = tmp_path / name
    for share in (0.3, 0.9):
        cut.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(CutFileError):
            list(read_questions(cut))
        kept = list(read_questions(cut, on_cut="keep"))
        assert kept == full[: len(kept)]
        assert share - 0.15 < len(kept) / len(full) < share + 0.15


def test_overlapping_files_are_joined_once() -> None:
    report = ReadReport()
    found = read_many([DATA / "NQ-open.dev.jsonl", DATA / "nq-open-oracle.jsonl.gz"], report=report)
    assert report.questions == 6010
    assert len(found) == report.questions - report.duplicates
    assert sum(question.gold_passage is not None for question in found) == 2400
