"""Passages as lines of JSON that are read one at a time: no collection has to become Python objects."""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from langchain_core.documents import Document

from adaptllm_chain.errors import IndexFolderError, InvalidInputError
from adaptllm_chain.retrieval.arrays import IntArray, np

_COPY_BYTES = 1 << 20


def passage_text(document: Document, *, embed_title: bool) -> str:
    """Spell a passage as it is embedded.

    Args:
        document: The passage.
        embed_title: Whether to put the title and a space in front, as Contriever's
            ``generate_passage_embeddings.py`` does for Wikipedia.

    Returns:
        The text to embed.
    """
    title = document.metadata.get("title")
    if embed_title and isinstance(title, str) and title:
        return f"{title} {document.page_content}"
    return document.page_content


def encode_passage(document: Document, passage_id: str) -> bytes:
    """Write a passage as one line.

    Args:
        document: The passage.
        passage_id: Its id in the store.

    Returns:
        UTF-8 with a line break at its end.

    Raises:
        InvalidInputError: If the metadata cannot be written as JSON.
    """
    metadata = dict(document.metadata)
    title = metadata.pop("title") if isinstance(metadata.get("title"), str) else None
    row = {"id": passage_id, "title": title, "text": document.page_content, "metadata": metadata}
    try:
        return json.dumps(row, ensure_ascii=False).encode() + b"\n"
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"the metadata of passage {passage_id!r} cannot be stored: {error}",
            expected="text, numbers, booleans, lists and dictionaries (the store is JSON, never a pickle)",
            hint="str(value) for dates, paths and the like",
        ) from error


def decode_passage(line: bytes) -> Document:
    """Read a passage back.

    Args:
        line: What ``encode_passage`` wrote.

    Returns:
        A new document: changing it does not change the store.

    Raises:
        IndexFolderError: If the line is damaged.
    """
    try:
        row = json.loads(line)
        metadata = dict(row["metadata"])
        if row["title"] is not None:
            metadata = {"title": row["title"], **metadata}
        return Document(id=row["id"], page_content=row["text"], metadata=metadata)
    except (ValueError, KeyError, TypeError) as error:
        raise IndexFolderError(
            f"a passage is damaged: {line[:80]!r}", expected="a line as this library writes it", hint="build it again"
        ) from error


class PassageRows:
    """Passages by row number: the rows of a file that stays on disk, then rows in memory.

    Eight bytes a row stay in memory beside what was added since the file was read.

    Args:
        stored: The passages file, mapped into memory; empty for a new store.
        offsets: Where each line starts, and where the last one ends; shape ``[rows + 1]``.
    """

    def __init__(self, stored: bytes | mmap.mmap = b"", offsets: IntArray | None = None) -> None:
        bounds = np.zeros(1, dtype=np.int64) if offsets is None else offsets
        self._stored = stored
        self._stored_bytes = int(bounds[-1])
        self._added = bytearray()
        self._starts: IntArray = bounds[:-1]
        self._ends: IntArray = bounds[1:]
        self._row_of_id: dict[str, int] | None = None

    @classmethod
    def open(cls, path: Path, offsets: IntArray) -> PassageRows:
        """Map a passages file.

        Args:
            path: The file.
            offsets: Where each line starts, and where the last one ends; shape ``[rows + 1]``.

        Returns:
            Its rows.
        """
        if path.stat().st_size == 0:  # which cannot be mapped
            return cls(b"", offsets)
        with path.open("rb") as file:
            return cls(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), offsets)

    def __len__(self) -> int:
        return len(self._starts)

    def line(self, row: int) -> bytes:
        """Return the stored line of a row.

        Args:
            row: From 0.

        Returns:
            The bytes that ``encode_passage`` made.
        """
        start, end = int(self._starts[row]), int(self._ends[row])
        if start < self._stored_bytes:
            return self._stored[start:end]
        return bytes(self._added[start - self._stored_bytes : end - self._stored_bytes])

    def __getitem__(self, row: int) -> Document:
        return decode_passage(self.line(row))

    def lines(self) -> Iterator[bytes]:
        """Yield all lines in the order of the rows."""
        return (self.line(row) for row in range(len(self)))

    def find(self, ids: Iterable[str]) -> dict[str, int]:
        """Look rows up by id; the first call reads every row once.

        Args:
            ids: The ids; unknown ones are left out of the result.

        Returns:
            Row numbers by id.
        """
        if self._row_of_id is None:
            self._row_of_id = {json.loads(line)["id"]: row for row, line in enumerate(self.lines())}
        known = self._row_of_id
        return {one: known[one] for one in ids if one in known}

    def append(self, lines: Sequence[bytes], ids: Sequence[str]) -> None:
        """Add rows at the end.

        Args:
            lines: What ``encode_passage`` made of them.
            ids: Their ids, in the same order; none of them stored yet.
        """
        if self._row_of_id is not None:
            self._row_of_id.update((one, len(self) + place) for place, one in enumerate(ids))
        first = self._stored_bytes + len(self._added)
        ends = first + np.cumsum([len(line) for line in lines], dtype=np.int64)
        starts = np.concatenate([np.array([first], dtype=np.int64), ends[:-1]])
        self._added += b"".join(lines)
        self._starts = np.concatenate([self._starts, starts[: len(lines)]])
        self._ends = np.concatenate([self._ends, ends])

    def remove(self, rows: Sequence[int]) -> None:
        """Remove rows; those behind them move up, as they do in a flat FAISS index.

        Args:
            rows: Row numbers.
        """
        self._starts = np.delete(self._starts, list(rows))
        self._ends = np.delete(self._ends, list(rows))
        self._row_of_id = None

    def write(self, path: Path) -> IntArray:
        """Write all rows to a file, one after the other.

        Args:
            path: The file.

        Returns:
            Where each line starts, and where the last one ends; shape ``[rows + 1]``.
        """
        with path.open("wb", buffering=_COPY_BYTES) as file:
            file.writelines(self.lines())
        sizes = np.asarray(self._ends) - np.asarray(self._starts)
        return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes, dtype=np.int64)])


def as_metadata_list(metadatas: Sequence[dict[str, Any]] | None, count: int) -> list[dict[str, Any]]:
    """Give every text its metadata.

    Args:
        metadatas: One a text, or ``None``.
        count: How many texts there are.

    Returns:
        One mapping a text.

    Raises:
        InvalidInputError: If the counts differ.
    """
    if metadatas is None:
        return [{} for _ in range(count)]
    if len(metadatas) != count:
        raise InvalidInputError(f"{len(metadatas)} metadatas for {count} texts", expected="one a text")
    return list(metadatas)
