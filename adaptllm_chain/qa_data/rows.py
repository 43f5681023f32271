"""A row as it stands on disk, before anything is known about its columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One record of a file, or the reason why there is none at that place.

    Attributes:
        where: Where it stands, as a human looks for it: ``"line 3"``, ``"row 2 (key '17')"``.
        default_id: The identifier to use when the record has none: its key, else its number.
        data: The record's fields, as parsed; never changed by a reader.
        problem: Why the record could not be parsed; ``None`` when it could.
    """

    where: str
    default_id: str
    data: Mapping[str, Any] = field(default_factory=dict)
    problem: str | None = None


class RowProblem(Exception):  # noqa: N818 - not an error yet: the reader decides whether to raise or to skip
    """What is wrong with one row; becomes a ``DataFileError`` or a skipped row.

    Args:
        problem: What is missing or unusable, without the file and the row.
    """


class UnanswerableRow(RowProblem):
    """The row is well formed, but its source says that it has no answer (SQuAD v2)."""


class RowSource(Protocol):
    """Cuts a file into rows, one at a time."""

    def __call__(self, path: Path, /) -> Iterator[Row]:
        """Cut one file into rows.

        Args:
            path: The file, plain or gzip.

        Returns:
            The rows in the order of the file.
        """
        ...


def as_row(value: object, *, where: str, default_id: str) -> Row:
    """Make a row of a parsed value.

    Args:
        value: What was parsed.
        where: Where it stands, for messages.
        default_id: The identifier to fall back on.

    Returns:
        The row; one with a ``problem`` when the value is not an object with fields.
    """
    if isinstance(value, Mapping):
        return Row(where=where, default_id=default_id, data=value)
    problem = f"the record is a {type(value).__name__}, not an object with fields"
    return Row(where=where, default_id=default_id, problem=problem)
