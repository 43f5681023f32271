from __future__ import annotations

from pathlib import Path

import pytest

from adaptllm_chain.errors import DataFileError
from adaptllm_chain.retrieval import SkippedFile, read_passages_source


def test_what_is_broken_in_a_folder_is_skipped_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"caf\xe9")
    (tmp_path / "b.pdf").write_bytes(b"no pdf")
    (tmp_path / "c.html").write_text(" \n")
    (tmp_path / "d.jsonl").write_text('{"text": "one"}\n{broken\n')
    (tmp_path / "e.txt").write_text("words")
    elsewhere = tmp_path.parent / f"{tmp_path.name}-elsewhere"
    elsewhere.mkdir()
    (tmp_path / "f").symlink_to(elsewhere)
    skipped: list[SkippedFile] = []
    found = list(read_passages_source(tmp_path, skipped=skipped))
    assert [document.page_content for document in found] == ["one", "words"]
    reasons = {file.path.name: file.reason for file in skipped}
    assert set(reasons) == {"a.txt", "b.pdf", "c.html", "d.jsonl", "f"}
    assert reasons["c.html"] == "no text"
    assert "utf-8" in reasons["a.txt"]
    assert "read in part" in reasons["d.jsonl"]
    assert "link to a folder" in reasons["f"]


def test_ids_of_two_tables_do_not_meet(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("id,text\n1,one\n2,two\n")
    ids = [document.id for document in read_passages_source(tmp_path)]
    assert ids[:2] == ["1", "2"]
    assert len(set(ids)) == 4


@pytest.mark.parametrize(
    "line", ['{"id": [1], "text": "x"}', '{"id": "\\ud800", "text": "x"}', '{"text": ' + "[" * 100_000]
)
def test_odd_rows_are_errors_of_ours(tmp_path: Path, line: str) -> None:
    (tmp_path / "p.jsonl").write_text(line + "\n")
    with pytest.raises(DataFileError, match="line 1"):
        list(read_passages_source(tmp_path / "p.jsonl"))
