"""``adaptllm evaluate``: modes, resuming, what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from adaptllm_chain.cli import main, model_loading
from adaptllm_chain.testing import Reply, ScriptedLLM


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rows = {
        str(n): {
            "question": f"Who built mill {n}?",
            "possible_answers": [f"builder {n}"],
            "contriever_passage": f"Mill {n} was built by builder {n}.",
            "contriever_score": "1.5",
            "s_pop": 100.0 * n,
        }
        for n in range(6)
    }
    (tmp_path / "popqa.json").write_text(json.dumps(rows))
    return tmp_path / "popqa.json"


def reads_well_and_knows_little(prompt: str) -> Reply:
    number = next(n for n in range(6) if f"mill {n}" in prompt)
    if "given the context" in prompt:
        return Reply(text=f"builder {number}")
    knows = number >= 4
    text = f"builder {number}" if knows else "<RET>" if "help" in prompt else "nobody"
    return Reply(text=text, info={"ret_probability": 0.1 if knows else 0.5 + number / 10})


@pytest.fixture
def llm(monkeypatch: pytest.MonkeyPatch) -> ScriptedLLM:
    scripted = ScriptedLLM(script=reads_well_and_knows_little)
    monkeypatch.setattr(model_loading, "load_llm", lambda _: scripted)
    return scripted


def test_every_mode_is_measured(data: Path, llm: ScriptedLLM, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    modes = "never_retrieve,always_retrieve,adaptive,popularity"
    out = tmp_path / "out"
    assert main(["evaluate", "--data", str(data), "--modes", modes, "--threshold", "0.55", "--out", str(out)]) == 0
    summary = json.loads((out / "summary.json").read_text())
    assert {mode: row["containment"]["count"] for mode, row in summary.items()} == {
        "never_retrieve": 2, "always_retrieve": 6, "adaptive": 5, "popularity": 3,
    }  # fmt: skip
    # P >= .55 retrieves 1, 2 and 3; popularity retrieves for question 0 alone, and 4 and 5 are known.
    assert summary["adaptive"]["retrieved"]["count"] == 3
    assert summary["popularity"]["retrieved"]["count"] == 1
    assert summary["adaptive"]["auc"] == 1.0
    printed = capsys.readouterr().out
    assert "| adaptive | 6 | 83.3 %" in printed
    assert "1.000" in printed


def test_the_same_command_again_asks_nothing(data: Path, llm: ScriptedLLM, tmp_path: Path) -> None:
    command = ["evaluate", "--data", str(data), "--sample", "4", "--out", str(tmp_path / "out")]
    assert main(command) == 0
    first = {file.name: file.read_bytes() for file in (tmp_path / "out").iterdir()}
    asked = len(llm.calls)
    assert asked > 0
    assert main(command) == 0
    assert len(llm.calls) == asked
    assert {file.name: file.read_bytes() for file in (tmp_path / "out").iterdir()} == first


def test_other_settings_are_refused(data: Path, llm: ScriptedLLM, tmp_path: Path, capsys) -> None:
    command = ["evaluate", "--data", str(data), "--out", str(tmp_path / "out")]
    assert main(command) == 0
    assert main([*command, "--threshold", "0.3"]) == 2
    assert "threshold" in capsys.readouterr().err


def test_other_passages_are_other_settings(data: Path, llm: ScriptedLLM, tmp_path: Path, capsys) -> None:
    command = ["evaluate", "--data", str(data), "--out", str(tmp_path / "out")]
    assert main(command) == 0
    data.write_text(data.read_text().replace("was built by", "was made by"))
    assert main(command) == 2
    assert "passages" in capsys.readouterr().err


def test_a_question_that_fails_is_counted_and_does_not_stop_the_rest(
    data: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys
) -> None:
    def breaks_on_two(prompt: str) -> Reply:
        if "mill 2" in prompt:
            raise RuntimeError("out of paper")
        return reads_well_and_knows_little(prompt)

    monkeypatch.setattr(model_loading, "load_llm", lambda _: ScriptedLLM(script=breaks_on_two))
    assert main(["evaluate", "--data", str(data), "--modes", "always_retrieve", "--out", str(tmp_path / "o")]) == 1
    summary = json.loads((tmp_path / "o" / "summary.json").read_text())["always_retrieve"]
    assert (summary["questions"], summary["failed"], summary["containment"]["count"]) == (6, 1, 5)
    assert "out of paper" in capsys.readouterr().err


def test_a_mode_without_its_threshold_is_found_before_anything_runs(
    data: Path, llm: ScriptedLLM, tmp_path: Path
) -> None:
    modes = ["--modes", "never_retrieve,popularity"]
    assert main(["evaluate", "--data", str(data), "--out", str(tmp_path / "out"), *modes]) == 2
    assert llm.calls == []


def test_a_file_without_passages_is_refused_where_they_are_missing_noted(
    data: Path, llm: ScriptedLLM, tmp_path: Path, capsys
) -> None:
    command = ["evaluate", "--data", str(data), "--out", str(tmp_path / "out")]
    assert main([*command, "--retriever", "gold"]) == 2
    assert "--retriever given" in capsys.readouterr().err
    rows = json.loads(data.read_text())
    del rows["3"]["contriever_passage"]
    data.write_text(json.dumps(rows))
    assert main(command) == 0
    assert "1 of 6 questions have no given passage" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["--retriever", "no-such-index"], "adaptllm index"), (["--modes", "popularity"], "threshold")],
)
def test_wrong_options_say_what_to_type(
    data: Path, llm: ScriptedLLM, tmp_path: Path, capsys, arguments: list[str], message: str
) -> None:
    assert main(["evaluate", "--data", str(data), "--out", str(tmp_path / "out"), *arguments]) == 2
    assert message in capsys.readouterr().err


def test_an_unknown_mode_is_wrong_usage(data: Path, tmp_path: Path, capsys) -> None:
    with pytest.raises(SystemExit):
        main(["evaluate", "--data", str(data), "--out", str(tmp_path), "--modes", "sometimes"])
    assert "never_retrieve" in capsys.readouterr().err
