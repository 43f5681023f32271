"""``adaptllm evaluate --suite paper``: every experiment that there is data for, one report, and resuming."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from adaptllm_chain.cli import model_loading
from adaptllm_chain.evaluation import SUITES
from adaptllm_chain.testing import ScriptedLLM
from tests.cli.conftest import Run
from tests.cli.stand_ins import stand_in

MILLS = range(6)


def written(path: Path, **parts: Any) -> Path:
    rows = {
        str(n): {"question": f"Who built the windmill of Lindow{n}?", "possible_answers": [f"builder {n}"]}
        | {name: value(n) for name, value in parts.items()}
        for n in MILLS
    }
    path.write_text(json.dumps(rows))
    return path


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    def gold(n: int) -> str:
        return f"The windmill of Lindow{n} is a work of builder {n}"

    return {
        "popqa": written(
            tmp_path / "popqa.json",
            gold_passage=lambda _: "",
            contriever_passage=lambda n: f"The windmill of Lindow{n} was sold by owner {n}",
            contriever_score=lambda _: "1.5",
            s_pop=lambda n: 10.0**n,
        ),
        "nq_dev": written(
            tmp_path / "nq.json",
            gold_passage=gold,
            contriever_passage=lambda n: f"Lindow{n} is a village of owner {n}",
            contriver_score=lambda _: "0.9",
        ),
        "squad_dev": written(tmp_path / "squad.json", passage_text=gold, prediction=lambda _: "?"),
    }


def named(files: dict[str, Path]) -> list[str]:
    return [part for name, file in files.items() for part in ("--data", f"{name}={file}")]


def test_the_paper(run: Run, llm: ScriptedLLM, files: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = ["evaluate", "--suite", "paper", *named(files), "--out", out, "--trained-on", "mills"]
    ran = run(*command)
    assert ran.code == 0, ran.err
    folders = {folder.name for folder in out.iterdir()} - {"index", "report"}
    assert folders == {one.folder for one in SUITES["paper"].experiments}
    report = json.loads((out / "report" / "report.json").read_text())
    tables = {table["id"]: table for section in report["sections"] for table in section["tables"]}
    assert {"table-1", "table-2", "table-3", "table-4", "table-5", "several-passages", "recall"} <= set(tables)
    rows = {row["label"]["text"]: [cell.get("value") for cell in row["cells"]] for row in tables["recall"]["rows"]}
    # Gold passages name the builder; those that were found before do not; the index holds both.
    assert rows["NQ dev, passages gold"][1] == 1
    assert rows["NQ dev, passages found before"][1] == 0
    assert rows["NQ dev, passages found in the index"][3] == 1
    asked = len(llm.calls)
    before = {file: file.read_bytes() for file in (out / "report").rglob("*") if file.is_file()}
    assert run(*command).code == 0
    assert len(llm.calls) == asked, "nothing is asked again"
    assert {file: file.read_bytes() for file in before} == before


def test_a_model_is_loaded_once_for_experiments_in_a_row(
    run: Run, files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[str | None] = []

    def load(arguments: Any) -> ScriptedLLM:
        loaded.append(arguments.adapter)
        return ScriptedLLM(script=lambda _: "an answer")

    stand_in(monkeypatch.setattr)
    monkeypatch.setattr(model_loading, "load_llm", load)
    monkeypatch.setattr(model_loading, "check_adapter", lambda arguments: arguments.adapter)
    del files["popqa"]
    command = ["evaluate", "--suite", "paper", *named(files)]
    assert run(*command, "--out", tmp_path / "one").code == 0
    assert loaded == [None]
    loaded.clear()
    del files["squad_dev"]
    own = ["--always-adapter", "reader", "--index", tmp_path / "one" / "index", "--out", tmp_path / "two"]
    assert run(*command[:3], *named(files), *own).code == 0
    # Two adapters in turns, five experiments: neither waits in memory while the other is asked.
    assert loaded == ["reader", None] * 5


def test_as_many_as_there_are(run: Run, llm: ScriptedLLM, files: dict[str, Path], tmp_path: Path) -> None:
    del files["popqa"], files["nq_dev"]
    assert run("evaluate", "--suite", "paper", *named(files), "--out", tmp_path / "out").code == 0
    made = {folder.name for folder in (tmp_path / "out").iterdir()}
    assert made == {"squad_dev-gold-k1", "squad_dev-index-k1", "index", "report"}


def test_passages_that_are_not_there_are_told(
    run: Run, llm: ScriptedLLM, files: dict[str, Path], tmp_path: Path
) -> None:
    rows = {"nq_dev": written(tmp_path / "bare.json", gold_passage=lambda n: f"Lindow{n}", prediction=lambda _: "?")}
    ran = run("evaluate", "--suite", "paper", *named(rows), "--out", tmp_path / "out")
    assert ran.code == 0
    assert "nq_dev-given-k1: left out" in ran.err


def test_an_index_of_ones_own(run: Run, llm: ScriptedLLM, index: Path, files: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run("evaluate", "--suite", "paper", *named(files), "--out", out, "--index", index).code == 0
    assert not (out / "index").exists()


@pytest.mark.parametrize("data", ["FILE", "popqa=", "web={}", "=x"])
def test_data_without_a_known_name(run: Run, llm: ScriptedLLM, tmp_path: Path, data: str) -> None:
    ran = run("evaluate", "--suite", "paper", "--data", data, "--out", tmp_path / "out")
    assert ran.code == 2
    assert "--data popqa=FILE" in ran.err


def test_an_index_without_a_suite(
    run: Run, llm: ScriptedLLM, files: dict[str, Path], index: Path, tmp_path: Path
) -> None:
    ran = run("evaluate", "--data", files["popqa"], "--index", index, "--out", tmp_path / "out")
    assert ran.code == 2
    assert f"--retriever {index}" in ran.err


def test_questions_that_fail_are_told(
    run: Run, llm: ScriptedLLM, files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(prompt: str) -> str:
        raise RuntimeError("out of paper")

    monkeypatch.setattr(model_loading, "load_llm", lambda _: ScriptedLLM(script=broken))
    ran = run("evaluate", "--suite", "paper", "--data", f"squad_dev={files['squad_dev']}", "--out", tmp_path / "out")
    assert ran.code == 1
    assert "24 questions failed" in ran.err, "six in two modes of two experiments"
    assert "out of paper" in ran.err


def test_a_data_set_given_twice(run: Run, llm: ScriptedLLM, files: dict[str, Path], tmp_path: Path) -> None:
    ran = run("evaluate", "--suite", "paper", *named(files), *named(files), "--out", tmp_path / "out")
    assert ran.code == 2
    assert "given twice" in ran.err


def test_an_index_that_is_not_there_is_found_before_anything_is_asked(
    run: Run, llm: ScriptedLLM, files: dict[str, Path], tmp_path: Path
) -> None:
    ran = run("evaluate", "--suite", "paper", *named(files), "--out", tmp_path / "out", "--index", tmp_path / "no")
    assert ran.code == 2
    assert "--index" in ran.err
    assert llm.calls == []
