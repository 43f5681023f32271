"""An append-only JSON-lines journal, so that killed work resumes with the same bytes."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from adaptllm_chain.errors import JournalError

try:
    import fcntl

    _CAN_LOCK = True
except ImportError:  # Windows has no such lock
    _CAN_LOCK = False


def fingerprint(settings: Mapping[str, Any]) -> str:
    """Hash settings independently of the order of their keys.

    Args:
        settings: JSON-serialisable settings.

    Returns:
        64 hexadecimal digits (SHA-256).
    """
    return hashlib.sha256(json.dumps(settings, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def write_whole(path: Path, text: str) -> None:
    """Write a file so that a kill leaves either what was there or all of the new text.

    Args:
        path: The file.
        text: Its new content.
    """
    temporary = path.with_name(path.name + ".part")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def read_journal(path: str | Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Read a journal whose settings are not known, such as that of a finished run.

    Args:
        path: The file.

    Returns:
        Its settings and its rows. A last line that a kill cut short is left out.

    Raises:
        JournalError: If the file is damaged before its last line, or is no journal.
    """
    file = Path(path)
    content = file.read_bytes()
    header, *rows = _parse(file, content[: content.rfind(b"\n") + 1]) or [{}]
    if not isinstance(header.get("settings"), dict):
        raise JournalError(f"{file} is no journal", expected="a first line with the settings of the run")
    return header["settings"], rows


def _parse(path: Path, content: bytes) -> list[dict[str, Any]]:
    rows = []
    for number, line in enumerate(content.splitlines(), start=1):
        try:
            row, cause = json.loads(line), None
        except (ValueError, RecursionError) as error:
            row, cause = None, error
        if not isinstance(row, dict):
            raise JournalError(
                f"{path}, line {number} is damaged: {line[:80]!r}",
                expected="one JSON object a line",
                hint="delete the file to start over",
            ) from cause
        rows.append(row)
    return rows


class Journal:
    """Rows of finished work, one JSON object a line, each flushed to disk before the next.

    The first line holds the settings of the run. Opening the journal again with other settings
    is refused; a last line that a kill cut short is dropped, so the work it stood for is redone.

    Args:
        path: The file; its folder is made if needed.
        settings: What the rows depend on; JSON-serialisable.

    Raises:
        JournalError: If the file belongs to other settings, is damaged before its last line, or another
            process is writing it.
    """

    def __init__(self, path: str | Path, settings: Mapping[str, Any]) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._settings = json.loads(json.dumps(settings))
        self.rows: list[dict[str, Any]] = []
        self._file = self.path.open("ab")
        try:
            self._lock()
            kept = self._read()
        except BaseException:
            self._file.close()
            raise
        if self._file.tell() != kept:
            self._file.truncate(kept)
        if kept == 0:
            self._write([{"settings": self._settings, "fingerprint": fingerprint(self._settings)}])

    def _lock(self) -> None:
        """Claim the file; the system lets go of it when the process ends, however it ends."""
        if not _CAN_LOCK:
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise JournalError(
                f"another process is writing {self.path}",
                expected="one run a folder",
                hint="wait for it, or choose another output folder",
            ) from error

    def _read(self) -> int:
        """Load complete rows and return the number of bytes they take."""
        content = self.path.read_bytes()
        kept = content.rfind(b"\n") + 1
        parsed = _parse(self.path, content[:kept])
        if parsed:
            self._check_settings(parsed[0])
            self.rows = parsed[1:]
        return kept

    def _check_settings(self, header: Mapping[str, Any]) -> None:
        found = header.get("settings", {})
        if found == self._settings:
            return
        changed = [
            f"{key}: {found.get(key)!r} -> {self._settings.get(key)!r}"
            for key in sorted({*found, *self._settings})
            if found.get(key) != self._settings.get(key)
        ]
        raise JournalError(
            f"{self.path} belongs to a run with other settings ({'; '.join(changed)})",
            expected="the same settings as the run that is resumed",
            hint="choose another output folder, or delete this one to start over",
        )

    def _write(self, rows: list[dict[str, Any]]) -> None:
        self._file.write(b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows))
        self._file.flush()
        os.fsync(self._file.fileno())

    def check_order(self, done: Sequence[str], wanted: Sequence[str]) -> None:
        """Make sure that the finished work is the beginning of the work that is asked for.

        Args:
            done: The identifiers in the journal, in order.
            wanted: Those of this run, in order.

        Raises:
            JournalError: If they are others, or in another order.
        """
        if list(done) != list(wanted[: len(done)]):
            raise JournalError(
                f"{self.path} answers other questions, or these in another order",
                expected="the questions of the run that is resumed",
                hint="choose another output folder",
            )

    def extend(self, rows: list[dict[str, Any]]) -> None:
        """Append rows and wait until they are on disk.

        Args:
            rows: JSON-serialisable rows, in the order of the work.
        """
        self._write(rows)
        self.rows.extend(rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
