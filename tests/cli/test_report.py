"""``adaptllm report``: from predictions to files, twice the same, and what may not stand together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from adaptllm_chain.cli import main
from adaptllm_chain.evaluation import SECONDS_FILE, Run
from adaptllm_chain.evaluation.runs import slug
from tests.cli.test_evaluate import data, llm  # noqa: F401 - fixtures
from tests.evaluation.hand_made import all_runs


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


def test_a_run_is_read_as_it_was_written_but_for_its_identifiers(tmp_path: Path) -> None:
    for run in all_runs():
        file = run.write(tmp_path)
        again = Run.read(file)
        assert [row.model_copy(update={"id": ""}) for row in again.judgements] == [
            row.model_copy(update={"id": ""}) for row in run.judgements
        ]
        assert len({row.id for row in again.judgements}) == len(run.judgements)
        assert again.model_copy(update={"judgements": run.judgements}) == run
        before = file.read_bytes()
        assert again.write(tmp_path).read_bytes() == before, "what is hashed once is not hashed again"


def test_questions_that_are_their_own_identifiers_are_not_published(tmp_path: Path) -> None:
    run = all_runs()[0]
    rows = tuple(row.model_copy(update={"id": f"Who built mill {row.id}?"}) for row in run.judgements)
    assert "mill " not in run.model_copy(update={"judgements": rows}).write(tmp_path).read_text().partition("\n")[2]


@pytest.mark.parametrize(
    ("one", "two"), [("NQ dev", "SQuAD dev"), ("中文", "日本"), ("a" * 200, "a" * 201), ("a.v1", "a.v2"), (".", "..")]
)
def test_names_that_differ_have_files_that_differ(one: str, two: str) -> None:
    assert slug(one) != slug(two)
    assert all(name.strip("-") and len(name) < 100 and name.isascii() for name in (slug(one), slug(two)))


@pytest.mark.usefixtures("llm")
def test_seconds_that_a_kill_cut_are_left_out(data: Path, tmp_path: Path) -> None:  # noqa: F811
    evaluate(data, tmp_path)
    file = tmp_path / SECONDS_FILE
    line = next(line for line in file.read_text().splitlines() if "never_retrieve" in line)
    file.write_text(f"\n{line[:20]}\n{line}\n5\n[1]\n{{}}\n{line[:9]}")
    never = Run.read(tmp_path / "never_retrieve.jsonl")
    assert never.seconds is not None
    assert never.seconds.questions == 6


@pytest.mark.usefixtures("llm")
def test_seconds_of_a_mode_that_used_anothers_answers_are_not_told(data: Path, tmp_path: Path) -> None:  # noqa: F811
    evaluate(data, tmp_path / "shared", "--batch-size", "1")
    evaluate(data, tmp_path / "each", "--batch-size", "1", "--time-each-mode")
    assert Run.read(tmp_path / "shared" / "adaptive.jsonl").seconds is None
    each = Run.read(tmp_path / "each" / "adaptive.jsonl")
    assert each.seconds is not None
    assert (each.seconds.questions, each.cost.shared) == (6, 0)
    assert each.cost.model_calls == Run.read(tmp_path / "shared" / "adaptive.jsonl").cost.model_calls == 10


@pytest.mark.usefixtures("llm")
class TestFolders:
    def test_a_second_report_of_what_holds_a_first_one(self, data: Path, tmp_path: Path) -> None:  # noqa: F811
        evaluate(data, tmp_path / "run")
        command = ["report", str(tmp_path / "run"), "--out"]
        assert main([*command, str(tmp_path / "run" / "report")]) == 0
        assert main([*command, str(tmp_path / "elsewhere")]) == 0
        assert files_of(tmp_path / "run" / "report") == files_of(tmp_path / "elsewhere")
        report = str(tmp_path / "elsewhere")
        assert main(["report", report, "--out", report]) == 0
        assert files_of(tmp_path / "run" / "report") == files_of(tmp_path / "elsewhere")

    def test_an_index_below_is_not_read(self, data: Path, tmp_path: Path) -> None:  # noqa: F811
        evaluate(data, tmp_path / "run")
        (tmp_path / "run" / "index").mkdir()
        (tmp_path / "run" / "index" / "manifest.json").write_text("{}")
        (tmp_path / "run" / "index" / "passages.jsonl").write_text('{"text": "x"}\n')
        assert main(["report", str(tmp_path / "run"), "--out", str(tmp_path / "r")]) == 0

    def test_an_earlier_report_in_its_place_is_replaced_and_files_of_others_stay(
        self,
        data: Path,  # noqa: F811
        tmp_path: Path,
    ) -> None:
        evaluate(data, tmp_path / "one")
        evaluate(data, tmp_path / "two", "--trained-on", "another")
        for name in ("one", "two"):
            assert main(["report", str(tmp_path / name), "--out", str(tmp_path / "r")]) == 0
            (tmp_path / "r" / "figures" / "my-own.png").write_bytes(b"mine")
        assert main(["report", str(tmp_path / "two"), "--out", str(tmp_path / "fresh")]) == 0
        assert files_of(tmp_path / "r") == files_of(tmp_path / "fresh") | {"figures/my-own.png": b"mine"}

    def test_the_order_of_folders_does_not_matter(self, data: Path, tmp_path: Path) -> None:  # noqa: F811
        evaluate(data, tmp_path / "a", "--trained-on", "zebra")
        evaluate(data, tmp_path / "b", "--trained-on", "adder")
        folders = [str(tmp_path / "a"), str(tmp_path / "b")]
        assert main(["report", *folders, "--out", str(tmp_path / "one")]) == 0
        assert main(["report", *folders[::-1], "--out", str(tmp_path / "two")]) == 0
        assert files_of(tmp_path / "one") == files_of(tmp_path / "two")

    def test_modes_with_other_settings_are_not_compared(self, data: Path, tmp_path: Path, capsys) -> None:  # noqa: F811
        evaluate(data, tmp_path, "--modes", "never_retrieve", "--max-new-tokens", "1")
        evaluate(data, tmp_path, "--modes", "adaptive", "--max-new-tokens", "50")
        assert main(["report", str(tmp_path), "--out", str(tmp_path / "r")]) == 2
        assert "other lengths of answers" in capsys.readouterr().err

    def test_one_name_for_modes_with_adapters_of_their_own(self, data: Path, tmp_path: Path) -> None:  # noqa: F811
        evaluate(data, tmp_path / "run", "--never-adapter", str(tmp_path / "never"), "--adapter", str(tmp_path))
        assert main(["report", str(tmp_path / "run"), "--out", str(tmp_path / "r")]) == 0
        assert next(iter(cells(tmp_path / "r", "table-3"))).startswith(f"{tmp_path.name} on popqa")

    @pytest.mark.parametrize("adapter", [".", ".."])
    def test_an_adapter_named_by_a_dot(self, data: Path, tmp_path: Path, adapter: str) -> None:  # noqa: F811
        evaluate(data, tmp_path / "run", "--adapter", adapter)
        assert Run.read(tmp_path / "run" / "adaptive.jsonl").trained_on
