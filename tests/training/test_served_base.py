"""Algorithm 1 with a base behind a real server that speaks OpenAI's protocol: ``transformers serve``."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from adaptllm_chain.journal import Journal
from adaptllm_chain.llms import LocalLLM
from adaptllm_chain.prompts import PromptTemplates
from tests.servers.process import Server, free_port, transformers_serve
from tests.tiny_models import byte_level_tokenizer, tiny_llama
from training.algorithm1 import main

MISSING = [name for name in ("langchain_openai", "fastapi", "uvicorn") if find_spec(name) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)} (pip install -e '.[test]')")

QUESTIONS = 20
CHUNK = 8  # of --batch-size 1


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served") / "base"
    tokenizer = byte_level_tokenizer()
    tiny_llama(tokenizer).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def server(base: Path) -> Iterator[Server]:
    server = transformers_serve(base, base.with_name("log"))
    try:
        server.start()
        yield server
    finally:
        server.kill()


@pytest.fixture(autouse=True)
def _own_server_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.jsonl"
    rows = [
        {"question": f"who built mill {n}?", "answers": ["a"], "gold_passage": f"Ada {n}"} for n in range(QUESTIONS)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def command(data: Path, base: Path, url: str, out: str) -> list[str]:
    return [
        "--data", str(data), "--out", str(data.with_name(out)), "--model", f"openai:{base}", "--base-url", url,
        "--max-new-tokens", "6", "--batch-size", "1",
    ]  # fmt: skip


def answers(folder: Path) -> list[str]:
    lines = (folder / "answers.jsonl").read_text().splitlines()[1:]
    return [text for line in lines for answer in json.loads(line)["answers"] for text in answer["answers"]]


def test_the_answers_are_those_of_the_same_model_loaded_here(server: Server, base: Path, data: Path) -> None:
    before = server.asked()
    assert main(command(data, base, server.url, "out")) == 0
    assert server.asked() - before == QUESTIONS
    llm = LocalLLM.from_pretrained(base, format="chat", device="cpu", max_new_tokens=6)
    prompts = [PromptTemplates().render("closed_book", f"who built mill {n}?") for n in range(QUESTIONS)]
    expected = llm.batch(prompts)
    assert len(set(expected)) > QUESTIONS // 2  # the model tells the questions apart, so the comparison says something
    assert answers(data.with_name("out")) == expected
    counts = json.loads((data.with_name("out") / "counts.json").read_text())
    assert counts["questions"] == QUESTIONS
    assert counts["settings"]["base_url"] == server.url
    # The same command again asks nothing.
    assert main(command(data, base, server.url, "out")) == 0
    assert server.asked() - before == QUESTIONS


def test_a_server_that_dies_in_the_middle_is_asked_nothing_twice(
    server: Server, base: Path, data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command(data, base, server.url, "unbroken")) == 0
    extend = Journal.extend

    def extend_and_die(journal: Journal, rows: Any) -> None:
        extend(journal, rows)
        server.kill()

    with monkeypatch.context() as patched:
        patched.setattr(Journal, "extend", extend_and_die)
        assert main(command(data, base, server.url, "broken")) == 2
    message = capsys.readouterr().err
    assert "question '9'" in message  # the first of the second chunk
    assert "Connection refused" in message
    assert "start the server" in message
    assert len(answers(data.with_name("broken"))) == CHUNK
    assert not data.with_name("broken").joinpath("rows.jsonl").exists()

    server.start()
    assert main(command(data, base, server.url, "broken")) == 0
    assert server.asked() == QUESTIONS - CHUNK
    for name in ("answers.jsonl", "rows.jsonl", "counts.json"):
        assert (data.with_name("broken") / name).read_bytes() == (data.with_name("unbroken") / name).read_bytes()


def test_a_server_that_is_not_there_says_what_to_type(
    base: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command(data, base, f"http://127.0.0.1:{free_port()}/v1", "out")) == 2
    message = capsys.readouterr().err
    assert "Connection refused" in message
    assert "--base-url" in message
    assert "transformers serve" in message


def test_no_key_is_a_clear_error(
    base: Path, data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in os.environ if name.startswith("OPENAI_")]:
        monkeypatch.delenv(name)
    assert main(command(data, base, "http://127.0.0.1:1/v1", "out")) == 2
    assert "export OPENAI_API_KEY=" in capsys.readouterr().err
