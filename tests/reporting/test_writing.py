"""Files: all there, whole, and the same every time."""

from __future__ import annotations

from pathlib import Path

import pytest

from adaptllm_chain import reporting
from adaptllm_chain.reporting import Report, Section, render_json, write_report
from tests.reporting import sample

SMALL = Report(
    title="small",
    sections=(Section(id="s", title="s", tables=(sample.table(),), charts=(sample.bars(), sample.popularity())),),
)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_two_writes_are_the_same_bytes(tmp_path: Path) -> None:
    written = write_report(SMALL, tmp_path / "one" / "new")
    again = Report.model_validate_json(render_json(SMALL))
    write_report(again, str(tmp_path / "two"))
    one, two = contents(tmp_path / "one" / "new"), contents(tmp_path / "two")
    assert one == two
    pictures = {f"figures/{name}.{kind}" for name in ("bars", "popularity") for kind in ("png", "svg")}
    assert set(one) == {"report.html", "report.md", "report.json"} | pictures
    assert sorted(written) == sorted(tmp_path / "one" / "new" / name for name in one)
    assert one["report.json"].decode() == render_json(SMALL)
    # What was there is replaced.
    write_report(SMALL.model_copy(update={"title": "other"}), tmp_path / "two")
    assert b"<h1>other</h1>" in contents(tmp_path / "two")["report.html"]


def test_a_kill_leaves_the_old_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_report(SMALL, tmp_path)
    before = contents(tmp_path)

    def torn(path: Path, content: bytes) -> int:
        with path.open("wb") as file:
            file.write(content[:10])
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "write_bytes", torn)
    with pytest.raises(KeyboardInterrupt):
        write_report(SMALL, tmp_path)
    after = contents(tmp_path)
    assert {name: after[name] for name in before} == before


def test_public_names_exist() -> None:
    assert set(reporting.__all__) == set(dir(reporting))
    for name in reporting.__all__:
        assert getattr(reporting, name).__doc__
    with pytest.raises(AttributeError, match="drow"):
        reporting.drow  # noqa: B018
