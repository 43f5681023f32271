from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from adaptllm_chain.cli import indexing
from adaptllm_chain.testing import ScriptedLLM
from tests.cli.conftest import ARTICLES, Run


def passages(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "passages.jsonl").read_text().splitlines()]


def manifest(folder: Path) -> dict[str, object]:
    made: dict[str, object] = json.loads((folder / "manifest.json").read_text())
    return made


@pytest.mark.usefixtures("llm")
class TestIndex:
    def test_says_what_it_did(self, run: Run, articles: Path, tmp_path: Path) -> None:
        (articles / "photo.jpg").write_bytes(b"\xff")
        (articles / "empty.txt").write_text(" \n")
        ran = run("index", articles, "--out", tmp_path / "out")
        assert ran.code == 0
        assert "2 passages of 2 files" in ran.out
        assert "skipped 2 files" in ran.out
        assert "photo.jpg" in ran.out
        assert f"adaptllm ask --index {tmp_path / 'out'}" in ran.out
        assert "passages" in ran.err, "the progress bar"
        assert [row["title"] for row in passages(tmp_path / "out")] == ["lamp", "The mill at Lindow"]

    def test_again_it_is_complete(self, run: Run, articles: Path, index: Path) -> None:
        before = {file.name: file.stat().st_mtime_ns for file in index.iterdir()}
        ran = run("index", articles, "--out", index)
        assert ran.code == 0
        assert "complete already" in ran.out
        assert {file.name: file.stat().st_mtime_ns for file in index.iterdir()} == before

    def test_other_files_need_restart(self, run: Run, articles: Path, index: Path) -> None:
        (articles / "new.txt").write_text("A new text.")
        ran = run("index", articles, "--out", index)
        assert ran.code == 2
        assert "--restart" in ran.err
        assert "resume" not in ran.err
        assert run("index", articles, "--out", index, "--restart").code == 0
        assert len(passages(index)) == 3

    def test_words_and_metric(self, run: Run, articles: Path, tmp_path: Path) -> None:
        out = tmp_path / "out"
        assert run("index", articles, "--out", out, "--words", 5, "--metric", "l2", "--chunk-size", 2).code == 0
        assert manifest(out)["metric"] == "l2"
        assert max(len(str(row["text"]).split()) for row in passages(out)) == 5
        words = " ".join(str(row["text"]) for row in passages(out)).split()
        # A heading that opens an article is its title and no passage.
        texts = [text.removeprefix("# The mill at Lindow\n") for text in ARTICLES.values()]
        assert sorted(words) == sorted(word for text in texts for word in text.split())
        assert {row["title"] for row in passages(out)} == {"The mill at Lindow", "lamp"}

    def test_rows(self, run: Run, tmp_path: Path) -> None:
        rows = tmp_path / "rows.jsonl"
        rows.write_text('{"body": "A text.", "name": "Its title"}\n')
        ran = run("index", rows, "--out", tmp_path / "out")
        assert ran.code == 2
        assert "--column text=" in ran.err
        ran = run("index", rows, "--out", tmp_path / "out", "--column", "text=body", "--column", "title=name")
        assert ran.code == 0
        assert passages(tmp_path / "out")[0]["title"] == "Its title"

    def test_encoding(self, run: Run, tmp_path: Path) -> None:
        file = tmp_path / "latin.txt"
        file.write_bytes("Malmö".encode("latin-1"))
        ran = run("index", file, "--out", tmp_path / "out")
        assert ran.code == 2
        assert "--encoding latin-1" in ran.err
        assert run("index", file, "--out", tmp_path / "out", "--encoding", "latin-1").code == 0
        assert passages(tmp_path / "out")[0]["text"] == "Malmö"

    def test_embedding_options_reach_the_embedder(
        self, run: Run, articles: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from adaptllm_chain.cli import embedder_loading
        from tests.cli.stand_ins import WordEmbedder

        seen: list[object] = []
        monkeypatch.setattr(
            embedder_loading, "load_embedder", lambda name, **given: seen.append((name, given)) or WordEmbedder()
        )
        run("index", articles, "--out", tmp_path / "o", "--embeddings", "e", "--device", "cpu", "--batch-size", 3)
        assert seen == [("e", {"device": "cpu", "batch_size": 3})]

    @pytest.mark.parametrize("name", ["missing", "missing.txt"])
    def test_missing_path_fails_before_anything_is_loaded(self, run: Run, articles: Path, name: str) -> None:
        ran = run("index", articles, articles / name, "--out", articles / "out")
        assert ran.code == 2
        assert "does not exist" in ran.err
        assert "loading" not in ran.err

    def test_nothing_to_index(self, run: Run, tmp_path: Path) -> None:
        folder = tmp_path / "photos"
        folder.mkdir()
        (folder / "photo.jpg").write_bytes(b"")
        ran = run("index", folder, "--out", tmp_path / "out")
        assert ran.code == 2
        assert "photo.jpg" in ran.err
        assert not (tmp_path / "out").exists()

    def test_a_folder_with_something_else_is_left_alone(self, run: Run, articles: Path, tmp_path: Path) -> None:
        ran = run("index", articles, "--out", articles)
        assert ran.code == 2
        assert "holds something else" in ran.err
        assert sorted(file.name for file in articles.iterdir()) == sorted(ARTICLES)


def test_ctrl_c_names_what_is_done(
    run: Run, llm: ScriptedLLM, articles: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = indexing.SteppingEmbedder.embed_matrix
    calls = []

    def interrupted(self: indexing.SteppingEmbedder, texts: list[str]) -> object:
        calls.append(texts)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(self, texts)

    monkeypatch.setattr(indexing.SteppingEmbedder, "embed_matrix", interrupted)
    ran = run("index", articles, "--out", tmp_path / "out", "--chunk-size", 1)
    assert ran.code == 130
    assert "give the same command again" in ran.err
    ran = run("index", articles, "--out", tmp_path / "out", "--chunk-size", 1)
    assert "1 of 2 chunks were taken over" in ran.out


def test_kill_and_go_on(tmp_path: Path) -> None:
    texts = tmp_path / "texts.jsonl"
    texts.write_text("".join(f'{{"text": "passage number {n} of many"}}\n' for n in range(40)))
    out = tmp_path / "out"
    command = [sys.executable, "-m", "tests.cli.stand_ins", "index", str(texts), "--out", str(out), "--chunk-size", "4"]
    journal = tmp_path / "out.building" / "journal.jsonl"
    with subprocess.Popen(
        command, env={**os.environ, "STAND_IN_SECONDS": "0.3"}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        deadline = time.monotonic() + 30
        while not (journal.is_file() and len(journal.read_bytes().splitlines()) > 3):
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
    assert not out.exists()
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 0
    assert "going on with the unfinished work" in ran.stderr
    assert "of 10 chunks were taken over" in ran.stdout
    resumed = {file.name: file.read_bytes() for file in out.iterdir()}
    shutil.rmtree(out)
    subprocess.run(command, capture_output=True, check=True, timeout=60)
    assert {file.name: file.read_bytes() for file in out.iterdir()} == resumed


@pytest.mark.usefixtures("llm")
class TestPassagesOfQuestions:
    @pytest.fixture
    def questions(self, tmp_path: Path) -> Path:
        rows = {
            "1": ("Who built the lamp?", "The lamp was built by Ann Weir in 1902.", "A lamp stood on the hill."),
            "2": ("Who lit the lamp?", "A lamp stood on the hill.", "The keeper lit it. " * 40),
        }
        written = {
            key: {
                "question": question,
                "possible_answers": ["x"],
                "gold_passage": gold,
                "contriever_passage": found,
                "contriever_score": "1.25",
            }
            for key, (question, gold, found) in rows.items()
        }
        (tmp_path / "questions.json").write_text(json.dumps(written))
        return tmp_path / "questions.json"

    def test_each_passage_once_and_whole(self, run: Run, questions: Path, tmp_path: Path) -> None:
        ran = run("index", "--passages-of", questions, "--out", tmp_path / "out")
        assert ran.code == 0
        rows = passages(tmp_path / "out")
        assert [str(row["text"])[:8] for row in rows] == ["The lamp", "A lamp s", "The keep"]
        assert len(str(rows[2]["text"]).split()) == 160, "more than the 100 words of a passage, and not split"
        assert "score" not in json.dumps([row["metadata"] for row in rows])

    def test_beside_files(self, run: Run, articles: Path, questions: Path, tmp_path: Path) -> None:
        assert run("index", articles, "--passages-of", questions, "--out", tmp_path / "out").code == 0
        assert len(passages(tmp_path / "out")) == 5

    def test_nothing_named_or_mistyped(self, run: Run, tmp_path: Path) -> None:
        assert "--passages-of" in run("index", "--out", tmp_path / "out").err
        assert "does not exist" in run("index", "--passages-of", tmp_path / "no.json", "--out", tmp_path / "out").err
