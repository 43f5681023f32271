from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from adaptllm_chain.cli import main
from adaptllm_chain.testing import ScriptedLLM
from tests.cli.stand_ins import stand_in

ARTICLES = {
    "mill.md": "# The mill at Lindow\n\nThe mill at Lindow was built by Ada Holm in the year 1881.",
    "lamp.txt": "The lamp of Corran shines every seven seconds and was first lighted in 1904.",
}


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


Run = Callable[..., Ran]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def llm(monkeypatch: pytest.MonkeyPatch) -> ScriptedLLM:
    return stand_in(monkeypatch.setattr)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    def run_command(*arguments: object, stdin: str | bytes = "") -> Ran:
        raw = stdin if isinstance(stdin, bytes) else stdin.encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw), encoding="utf-8"))
        capsys.readouterr()
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as ended:  # argparse
            code = int(ended.code or 0)
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return run_command


@pytest.fixture
def articles(tmp_path: Path) -> Path:
    folder = tmp_path / "articles"
    folder.mkdir()
    for name, text in ARTICLES.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def index(run: Run, llm: ScriptedLLM, articles: Path, tmp_path: Path) -> Path:
    """An index of the articles, made by the command."""
    assert run("index", articles, "--out", tmp_path / "index").code == 0
    return tmp_path / "index"
