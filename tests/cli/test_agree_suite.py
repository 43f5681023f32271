"""``adaptllm evaluate --suite agree``: five systems, one model at a time, one report, and resuming."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from adaptllm_chain.agree.loop import BUDGET
from adaptllm_chain.cli import model_loading, nli_loading
from adaptllm_chain.evaluation.grounding import EXTRACTIVE, SYSTEMS
from adaptllm_chain.testing import ScriptedLLM
from tests.agree.scenes import ScriptedScorer, word_for_word
from tests.cli.conftest import Run
from tests.cli.stand_ins import stand_in

MILLS = range(4)


def built(n: int) -> str:
    return f"The windmill of Lindow{n} was built by Ada Holm{n} in 188{n}."


def reply(prompt: str) -> str:
    """Cite the passage with the builder, if it is there."""
    n = prompt.rpartition("Lindow")[2][0]
    lines = prompt.rpartition("Passages:")[2].splitlines()
    at = next((line[1] for line in lines if line.startswith("[") and built(int(n)) in line), None)
    return built(int(n)) if at is None else built(int(n)).replace(".", f" [{at}].")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rows = {
        str(n): {
            "question": f"Who built the windmill of Lindow{n}?",
            "possible_answers": [f"Ada Holm{n}"],
            "gold_passage": built(n),
            "contriever_passage": f"The windmill of Lindow{n} was sold by Corran Brandt{n} in the year 190{n}.",
            "contriver_score": "0.9",
        }
        for n in MILLS
    }
    (tmp_path / "nq.json").write_text(json.dumps(rows))
    return tmp_path / "nq.json"


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The adapters and judges in the order in which they were loaded, and the models."""
    found: dict[str, Any] = {"adapters": [], "judges": [], "models": []}

    def load(arguments: Any) -> ScriptedLLM:
        found["adapters"].append(arguments.adapter)
        found["models"].append(ScriptedLLM(script=reply))
        return found["models"][-1]

    def judge(name: str, **options: Any) -> ScriptedScorer:
        found["judges"].append(name)
        return ScriptedScorer(word_for_word)

    stand_in(monkeypatch.setattr)
    monkeypatch.setattr(model_loading, "load_llm", load)
    monkeypatch.setattr(model_loading, "check_adapter", lambda arguments: arguments.adapter)
    monkeypatch.setattr(nli_loading, "load_scorer", judge)
    return found


def command(data: Path, out: Path, *more: object) -> list[object]:
    return ["evaluate", "--suite", "agree", "--data", f"nq={data}", "--adapter", "tuned", "--out", out, *more]


def tables(out: Path) -> dict[str, dict[str, list[Any]]]:
    report = json.loads((out / "report.json").read_text())
    return {
        table["id"]: {
            row["label"]["text"]: [cell.get("value") for cell in row["cells"]]
            for row in table["rows"]
            if not row["published"]
        }
        for section in report["sections"]
        for table in section["tables"]
    }


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_the_suite(run: Run, loaded: dict[str, Any], data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ran = run(*command(data, out))
    assert ran.code == 0, ran.err
    assert loaded["adapters"] == ["none", "tuned"]
    assert loaded["judges"] == ["embedded"]
    # The first draft of test-time adaptation is what AGREE has said without it.
    assert sum(map(len, loaded["models"][1].calls)) == len(MILLS)
    folder = out / "nq-index-k5"
    assert {file.stem for file in folder.iterdir()} == {*SYSTEMS, EXTRACTIVE, "entailment", "seconds"}
    shown = tables(out / "report")
    for system in SYSTEMS.values():
        # Every system cites the builder's passage rightly, and nothing else.
        assert shown["citations"][system.title][1:7] == [4, 1, 1, 1, 1, 1]
    assert shown["controlled"]["marks and named statements read as written"][2] == 1
    assert shown["effort"]["AGREE with test-time adaptation"][1:3] == [1, 1]
    settings = json.loads((folder / "agree_adapted.jsonl").read_text().partition("\n")[0])["settings"]
    assert (settings["k"], settings["budget"], settings["trained_on"]) == (5, BUDGET, "tuned")


def test_the_same_command_again_asks_nothing_and_changes_nothing(
    run: Run, loaded: dict[str, Any], data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert run(*command(data, out)).code == 0
    before = files_of(out)
    loaded["models"].clear()
    assert run(*command(data, out)).code == 0
    assert not any(llm.calls for llm in loaded["models"])
    assert files_of(out) == before


def test_the_same_report_from_predictions_and_from_judgements(
    run: Run, loaded: dict[str, Any], data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert run(*command(data, out)).code == 0
    assert run("report", out, "--out", tmp_path / "one").code == 0
    assert run("report", tmp_path / "one" / "judgements", "--out", tmp_path / "two").code == 0
    assert files_of(tmp_path / "one") == files_of(tmp_path / "two") == files_of(out / "report")
    kept = [content for name, content in files_of(tmp_path / "one").items() if "judgements" in name]
    assert len(kept) == 5
    assert not any(word in content.partition(b"\n")[2] for content in kept for word in (b"Lindow", b"Holm"))


def test_numbers_and_judges_of_ones_own(run: Run, loaded: dict[str, Any], data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    more = ["--k", "2", "--budget", "1", "--nli", "a/links", "--judge", "b/measures", "--trained-on", "mine"]
    assert run(*command(data, out, *more)).code == 0
    assert loaded["judges"] == ["a/links", "b/measures"]
    report = json.loads((out / "report" / "report.json").read_text())
    shown = {name: report["settings"][name] for name in ("judge", "scorer", "k", "budget")}
    assert shown == {"judge": "b/measures", "scorer": "a/links", "k": "2", "budget": "1"}
    assert (out / "report" / "judgements" / "mine" / "nq-index-k2" / "agree.jsonl").is_file()


def test_another_judge_does_not_mix_with_the_first(
    run: Run, loaded: dict[str, Any], data: Path, tmp_path: Path
) -> None:
    assert run(*command(data, tmp_path / "out")).code == 0
    ran = run(*command(data, tmp_path / "out", "--judge", "another"))
    assert ran.code == 2
    assert "entailment.jsonl" in ran.err


def test_questions_that_fail_are_told(
    run: Run, loaded: dict[str, Any], data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(prompt: str) -> str:
        raise RuntimeError("out of paper")

    monkeypatch.setattr(model_loading, "load_llm", lambda _: ScriptedLLM(script=broken))
    ran = run(*command(data, tmp_path / "out"))
    assert ran.code == 1
    assert "16 answers failed" in ran.err, "four questions in four systems"
    assert "out of paper" in ran.err


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--threshold", "0.5"], "--threshold with --suite agree"),
        (["--never-adapter", "x"], "--never-adapter with --suite agree"),
        (["--data", "web=x"], "nq=FILE"),
        (["--index", "no-such-index"], "--index"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_loaded(
    run: Run, loaded: dict[str, Any], data: Path, tmp_path: Path, more: list[str], told: str
) -> None:
    ran = run(*command(data, tmp_path / "out", *more))
    assert ran.code == 2
    assert told in ran.err
    assert loaded == {"adapters": [], "judges": [], "models": []}


def test_the_tuned_adapter_must_be_named(run: Run, loaded: dict[str, Any], data: Path, tmp_path: Path) -> None:
    ran = run("evaluate", "--suite", "agree", "--data", f"nq={data}", "--out", tmp_path / "out")
    assert ran.code == 2
    assert "--adapter DIR" in ran.err


def test_a_report_of_answers_that_were_not_judged(run: Run, loaded: dict[str, Any], data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run(*command(data, out)).code == 0
    (out / "nq-index-k5" / "entailment.jsonl").unlink()
    ran = run("report", out / "nq-index-k5", "--out", tmp_path / "r")
    assert ran.code == 2
    assert "were not judged" in ran.err
