"""The journal: torn, damaged, foreign, and written by two at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from adaptllm_chain.errors import JournalError
from adaptllm_chain.journal import Journal, fingerprint, write_whole


def written(path: Path) -> list[bytes]:
    with Journal(path, {"a": 1}) as journal:
        journal.extend([{"x": 1}, {"x": "\u00e9"}])
    return path.read_bytes().splitlines(keepends=True)


def test_torn_at_any_byte_the_whole_rows_stay(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    lines = written(path)
    whole = b"".join(lines)
    for length in range(len(whole) + 1):
        path.write_bytes(whole[:length])
        complete = whole[:length].count(b"\n")
        with Journal(path, {"a": 1}) as journal:
            assert len(journal) == max(0, complete - 1)
            journal.extend([{"x": 1}, {"x": "\u00e9"}][len(journal) :])
        assert path.read_bytes() == whole


@pytest.mark.parametrize(("place", "content"), [(1, b"{broken}\n"), (0, b"1\n"), (1, b"[]\n")])
def test_damage_before_the_last_line_is_refused(tmp_path: Path, place: int, content: bytes) -> None:
    path = tmp_path / "journal.jsonl"
    lines = written(path)
    lines[place] = content
    path.write_bytes(b"".join(lines))
    with pytest.raises(JournalError, match=f"line {place + 1}"):
        Journal(path, {"a": 1})


def test_other_settings_are_refused_and_named(tmp_path: Path) -> None:
    written(tmp_path / "j")
    with pytest.raises(JournalError, match="a: 1 -> 2"):
        Journal(tmp_path / "j", {"a": 2})


def test_two_writers_at_once_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    code = f"from adaptllm_chain.journal import Journal; Journal({str(path)!r}, {{}})"
    with Journal(path, {}):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "another process is writing" in done.stderr
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_fingerprint_heeds_values_and_not_the_order_of_keys() -> None:
    assert fingerprint({"a": 1, "b": [1, 2]}) == fingerprint({"b": [1, 2], "a": 1})
    assert fingerprint({"b": [1, 2]}) != fingerprint({"b": [2, 1]})


def test_a_file_is_written_whole(tmp_path: Path) -> None:
    write_whole(tmp_path / "f", "new")
    assert [path.name for path in tmp_path.iterdir()] == ["f"]
