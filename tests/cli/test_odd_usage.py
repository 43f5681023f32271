from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from adaptllm_chain.cli import app, bundled, doctor
from adaptllm_chain.testing import ScriptedLLM
from tests.cli.conftest import Run
from tests.cli.stand_ins import WordEmbedder


@pytest.mark.parametrize("text", [b"What is the capital of France?\n", b""])
def test_a_pipe_is_read_once(run: Run, index: Path, text: bytes) -> None:
    reader, writer = os.pipe()
    os.write(writer, text)
    os.close(writer)
    ran = run("ask", "--index", index, "--json", "--file", f"/dev/fd/{reader}")
    os.close(reader)
    assert (ran.code, len(ran.rows)) == ((0, 1) if text else (2, 0))


def test_a_quicker_command_wins(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = bundled.bundled_index_folder()
    real = bundled.index_bundled
    stale = folder.with_name(f"{folder.name}.99999999")
    stale.mkdir(parents=True)

    def slow(out: Path, embedder: WordEmbedder) -> None:
        real(out, embedder)
        real(folder, embedder)
        (folder / "winner").touch()

    monkeypatch.setattr(bundled, "index_bundled", slow)
    assert bundled.ensure_bundled_index(WordEmbedder()) == folder
    assert (folder / "winner").exists()
    assert list(folder.parent.iterdir()) == [folder]


@pytest.mark.parametrize("out", [".", "/", "file/out"])
def test_an_odd_out(run: Run, llm: ScriptedLLM, articles: Path, monkeypatch: pytest.MonkeyPatch, out: str) -> None:
    monkeypatch.chdir(articles)
    (articles / "file").touch()
    ran = run("index", articles / "lamp.txt", "--out", out)
    assert (ran.code, "loading" in ran.err) == (2, False)


@pytest.mark.parametrize("encoding", ["base64", "rot13"])
def test_no_encoding_of_text(run: Run, encoding: str) -> None:
    assert run("index", "x", "--out", "y", "--encoding", encoding).code == 2


def test_no_stdin(llm: ScriptedLLM, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert app.main(["ask"]) == 2


def test_deep_json_fails_alone(run: Run, index: Path, tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text("[" * 100_000 + '\n{"question": "What is the capital of France?"}\n')
    ran = run("ask", "--index", index, "--json", "--file", tmp_path / "q.jsonl")
    assert (ran.code, len(ran.rows)) == (1, 1)


def test_hints_are_commands(run: Run, llm: ScriptedLLM, tmp_path: Path) -> None:
    ran = run("ask", "q", "--index", tmp_path)
    assert "adaptllm index PATH… --out DIR" in ran.err
    assert "build_index" not in ran.err


def test_damaged_offsets(run: Run, index: Path) -> None:
    path = index / "passages.offsets.npy"
    content = bytearray(path.read_bytes())
    content[10:40] = b"{'descr': (((((((((((((((((((("
    path.write_bytes(content)
    assert run("ask", "q", "--index", index).code == 2


def test_errors_of_the_system(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise PermissionError(13, "Permission denied", "/x")

    monkeypatch.setattr(doctor, "examine", fail)
    assert (run("doctor").code, run("doctor").err) == (2, "adaptllm: /x: Permission denied\n")


def test_the_demo_counts_nothing(run: Run) -> None:
    assert "fourteen" not in run("demo", "--help").out
