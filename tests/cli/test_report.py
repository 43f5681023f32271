"""``adaptllm report``: from predictions to files, twice the same, and what may not stand together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from adaptllm_chain.cli import main
from adaptllm_chain.evaluation import SECONDS_FILE, Run
from tests.cli.test_evaluate import data, llm  # noqa: F401 - fixtures


def evaluate(data: Path, out: Path, *options: str) -> None:  # noqa: F811
    assert main(["evaluate", "--data", str(data), "--out", str(out), *options]) == 0


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def cells(report: Path, table: str) -> dict[str, list[Any]]:
    written = json.loads((report / "report.json").read_text())
    tables = {one["id"]: one for section in written["sections"] for one in section["tables"]}
    return {row["label"]["text"]: [cell.get("value") for cell in row["cells"]] for row in tables[table]["rows"]}


@pytest.mark.usefixtures("llm")
class TestReport:
    def test_shows_what_the_predictions_say(self, data: Path, tmp_path: Path) -> None:  # noqa: F811
        evaluate(data, tmp_path / "run")
        assert main(["report", str(tmp_path / "run"), "--out", str(tmp_path / "report")]) == 0
        table = cells(tmp_path / "report", "table-1")
        accuracies = {label: row[3] for label, row in table.items() if label.startswith("smollm2-nq")}
        assert accuracies == {
            "smollm2-nq: never_retrieve": 2 / 6, "smollm2-nq: always_retrieve": 1, "smollm2-nq: adaptive": 1,
        }  # fmt: skip
        assert {"report.html", "report.md", "report.json"} <= set(files_of(tmp_path / "report"))
        assert any(name.endswith(".svg") for name in files_of(tmp_path / "report"))

    def test_two_runs_give_identical_files_but_for_the_seconds(self, data: Path, tmp_path: Path) -> None:  # noqa: F811
        made = []
        for name in ("first", "second"):
            evaluate(data, tmp_path / name)
            (tmp_path / name / SECONDS_FILE).unlink()
            assert main(["report", str(tmp_path / name), "--out", str(tmp_path / name / "report")]) == 0
            made.append(files_of(tmp_path / name))
        assert made[0] == made[1]

    def test_the_same_report_from_what_holds_no_text(self, data: Path, tmp_path: Path) -> None:  # noqa: F811
        evaluate(data, tmp_path / "run")
        assert main(["report", str(tmp_path / "run"), "--out", str(tmp_path / "one")]) == 0
        assert main(["report", str(tmp_path / "one" / "judgements"), "--out", str(tmp_path / "two")]) == 0
        assert files_of(tmp_path / "one") == files_of(tmp_path / "two")
        kept = b"".join(content for name, content in files_of(tmp_path / "one").items() if "judgements" in name)
        assert kept
        assert b"mill" not in kept
        assert b"builder" not in kept

    def test_again_over_its_own_folder(self, data: Path, tmp_path: Path) -> None:  # noqa: F811
        evaluate(data, tmp_path)
        command = ["report", str(tmp_path), "--out", str(tmp_path / "report")]
        assert main(command) == 0
        before = files_of(tmp_path / "report")
        assert main(command) == 0
        assert files_of(tmp_path / "report") == before

    def test_a_run_that_was_not_finished_is_refused(self, data: Path, tmp_path: Path, capsys) -> None:  # noqa: F811
        evaluate(data, tmp_path / "run", "--batch-size", "1")
        file = tmp_path / "run" / "adaptive.jsonl"
        file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:2]))
        assert main(["report", str(tmp_path / "run"), "--out", str(tmp_path / "report")]) == 2
        assert "4 of 6" in capsys.readouterr().err
        assert not (tmp_path / "report").exists()

    @pytest.mark.parametrize(
        ("change", "told"),
        [
            ({"questions": "other"}, "other data"),
            ({"passages": "other"}, "other passages"),
            ({"templates": {"parametric": "other"}}, "other prompts"),
            ({"versions": {"torch": "0.1"}}, "other versions"),
        ],
    )
    def test_what_does_not_belong_together_is_refused(
        self,
        data: Path,  # noqa: F811
        tmp_path: Path,
        capsys,
        change: dict[str, Any],
        told: str,
    ) -> None:
        evaluate(data, tmp_path / "one")
        evaluate(data, tmp_path / "two", "--trained-on", "another")
        file = tmp_path / "two" / "adaptive.jsonl"
        lines = file.read_text().splitlines(keepends=True)
        header = json.loads(lines[0])
        header["settings"] |= change
        file.write_text(json.dumps(header) + "\n" + "".join(lines[1:]))
        assert main(["report", str(tmp_path / "one"), str(tmp_path / "two"), "--out", str(tmp_path / "r")]) == 2
        assert told in capsys.readouterr().err

    def test_models_side_by_side(self, data: Path, tmp_path: Path) -> None:  # noqa: F811
        evaluate(data, tmp_path / "one")
        evaluate(data, tmp_path / "two", "--trained-on", "another")
        assert main(["report", str(tmp_path / "one"), str(tmp_path / "two"), "--out", str(tmp_path / "r")]) == 0
        assert {"smollm2-nq: adaptive", "another: adaptive"} <= set(cells(tmp_path / "r", "table-1"))

    def test_the_same_run_twice_is_refused(self, data: Path, tmp_path: Path, capsys) -> None:  # noqa: F811
        evaluate(data, tmp_path / "one")
        evaluate(data, tmp_path / "two")
        assert main(["report", str(tmp_path / "one"), str(tmp_path / "two"), "--out", str(tmp_path / "r")]) == 2
        assert "--trained-on" in capsys.readouterr().err


def test_nothing_there(tmp_path: Path, capsys) -> None:
    assert main(["report", str(tmp_path), "--out", str(tmp_path / "r")]) == 2
    assert "adaptllm evaluate" in capsys.readouterr().err
    assert main(["report", str(tmp_path / "no"), "--out", str(tmp_path / "r")]) == 2
    assert "does not exist" in capsys.readouterr().err


def test_a_file_of_something_else(tmp_path: Path, capsys) -> None:
    (tmp_path / "a.jsonl").write_text('{"settings": {"data": "x"}}\n')
    assert main(["report", str(tmp_path), "--out", str(tmp_path / "r")]) == 2
    assert "no predictions of this version" in capsys.readouterr().err
    (tmp_path / "a.jsonl").write_text('{"question": "x"}\n')
    assert main(["report", str(tmp_path), "--out", str(tmp_path / "r")]) == 2
    assert "is no journal" in capsys.readouterr().err


def test_a_run_is_read_as_it_was_written(tmp_path: Path) -> None:
    from tests.evaluation.hand_made import all_runs

    for run in all_runs():
        assert Run.read(run.write(tmp_path)) == run


@pytest.mark.usefixtures("llm")
def test_seconds_that_a_kill_cut_are_left_out(data: Path, tmp_path: Path) -> None:  # noqa: F811
    evaluate(data, tmp_path)
    file = tmp_path / SECONDS_FILE
    first = file.read_text().splitlines(keepends=True)[0]
    # A line cut by a kill, with which the resumed run's first line has grown together, and one more cut at the end.
    file.write_text(first + first[:20] + first + first[:10])
    never = Run.read(tmp_path / "never_retrieve.jsonl")
    assert never.seconds is not None
    assert never.seconds.questions == 6
