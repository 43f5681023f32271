from __future__ import annotations

import json
from pathlib import Path

import pytest

from adaptllm_chain.cli.bundled import CORPUS, QUESTIONS
from adaptllm_chain.retrieval import read_passages_source, split_into_passages
from adaptllm_chain.testing import ScriptedLLM
from tests.cli.conftest import Run

EXPECTED = [json.loads(line) for line in QUESTIONS.with_name("answers.jsonl").read_text(encoding="utf-8").splitlines()]
FROM_CORPUS = [row for row in EXPECTED if row["article"]]


def test_articles() -> None:
    files = sorted(CORPUS.glob("*.md"))
    assert len(files) >= 40
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert text.startswith("# "), file.name
        assert 80 <= len(text.split()) <= 165, file.name
    # A passage that is a heading alone would be found first for its title, and tell nothing.
    assert min(len(one.page_content.split()) for one in split_into_passages(read_passages_source(CORPUS))) > 30


def test_every_question_has_its_answers() -> None:
    assert QUESTIONS.read_text(encoding="utf-8").splitlines() == [row["question"] for row in EXPECTED]
    assert len(FROM_CORPUS) == len(EXPECTED) / 2


@pytest.mark.parametrize("row", FROM_CORPUS, ids=lambda row: row["article"])
def test_the_answer_stands_in_one_article_alone(row: dict[str, str]) -> None:
    answer = row["answers"][0]
    passages = list(split_into_passages(read_passages_source(CORPUS)))
    subject = row["article"].removesuffix(".md")
    holding = [passage for passage in passages if answer in passage.page_content]
    sources = {Path(passage.metadata["source"]).stem for passage in holding}
    assert subject in sources
    # A year may stand elsewhere; a name must not.
    assert sources == {subject} or answer.isdecimal()


@pytest.mark.embedded
def test_the_right_passage_is_found_first(tmp_path: Path) -> None:
    from adaptllm_chain.cli.bundled import index_bundled
    from adaptllm_chain.retrieval import FaissPassageStore, embedded_embeddings

    embedder = embedded_embeddings()
    index_bundled(tmp_path / "index", embedder)
    store = FaissPassageStore.load(tmp_path / "index", embedder)
    for row, ((passage, _),) in zip(
        FROM_CORPUS, store.search_batch([row["question"] for row in FROM_CORPUS], k=1), strict=True
    ):
        assert Path(passage.metadata["source"]).name == row["article"], row["question"]
        assert row["answers"][0] in passage.page_content, row["question"]


def test_demo(run: Run, llm: ScriptedLLM, tmp_path: Path, cache: Path) -> None:
    ran = run("demo", "--json", "--keep", tmp_path / "kept")
    assert ran.code == 0
    assert [row["input"] for row in ran.rows] == [row["question"] for row in EXPECTED]
    assert {row["retrieved"] for row in ran.rows} == {True, False}
    assert "2 of 14 retrievals saved" in ran.err
    assert (tmp_path / "kept" / "manifest.json").is_file()
    assert not cache.exists()
    # Again, with an index there already.
    ran = run("demo", "--keep", tmp_path / "kept", "--mode", "always_retrieve", "--k", 2)
    assert ran.code == 0
    assert "0 of 14 retrievals saved" in ran.out


def test_keep_does_not_replace_an_index_of_other_files(run: Run, index: Path) -> None:
    before = (index / "passages.jsonl").read_bytes()
    ran = run("demo", "--keep", index)
    assert ran.code == 2
    assert (index / "passages.jsonl").read_bytes() == before
