"""Building a store of any size: in chunks, from a generator, and on from where a kill stopped it."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from adaptllm_chain.errors import IndexFolderError, InvalidInputError, JournalError
from adaptllm_chain.journal import Journal
from adaptllm_chain.retrieval import faiss_library
from adaptllm_chain.retrieval import folder as store_folder
from adaptllm_chain.retrieval.arrays import FloatMatrix, IntArray, embed_passages, np, read_array, write_array
from adaptllm_chain.retrieval.faiss_library import Metric
from adaptllm_chain.retrieval.identity import Identity, identity_of
from adaptllm_chain.retrieval.passages import encode_passage, passage_text
from adaptllm_chain.retrieval.store import manifest_entries

# About 30 MB of vectors of 768 numbers, and a minute of work on a small GPU.
CHUNK_SIZE = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexReport:
    """What a call of ``build_index`` did.

    Attributes:
        folder: The store.
        passages: How many passages it holds.
        dimension: Numbers a vector.
        chunks: How many chunks it was made of.
        chunks_resumed: How many of them an earlier run had embedded already.
        already_built: Whether the store was there already, of the same passages, so that nothing was done.
    """

    folder: Path
    passages: int
    dimension: int
    chunks: int
    chunks_resumed: int
    already_built: bool = False

    def __str__(self) -> str:
        if self.already_built:
            return f"{self.folder} holds these {self.passages} passages already; nothing was done"
        resumed = f", {self.chunks_resumed} of {self.chunks} chunks from an earlier run" if self.chunks_resumed else ""
        return f"{self.folder} holds {self.passages} passages{resumed}"


@dataclass(frozen=True, slots=True)
class _Chunk:
    """One piece of the source.

    Attributes:
        number: From 0.
        first: The row of its first passage.
        documents: The passages.
        lines: The passages as they are stored.
        digest: SHA-256 of them.
    """

    number: int
    first: int
    documents: list[Document]
    lines: list[bytes]
    digest: str


def build_index(
    documents: Iterable[Document],
    embedding: Embeddings,
    out_dir: str | Path,
    *,
    chunk_size: int = CHUNK_SIZE,
    metric: Metric = "inner_product",
    embed_title: bool = True,
    resume: bool = True,
    progress: Callable[[int], None] | None = None,
) -> IndexReport:
    """Embed passages and write the store, with memory for one chunk at a time.

    Unfinished work lies in ``<out_dir>.building``: a journal, and the vectors of each chunk. A run that was
    killed goes on from there, given the same passages and settings, and ends with the same bytes as a run that
    was not. Beside one chunk, 16 bytes a passage stay in memory.

    Args:
        documents: Passages, in the same order in every run; one without an id is given its row number.
        embedding: Any LangChain embedder.
        out_dir: Where the store goes: a new or empty folder.
        chunk_size: Passages a chunk: what a kill can cost.
        metric: ``"inner_product"`` or ``"l2"``.
        embed_title: Whether the title is embedded in front of the text; see ``FaissPassageStore``.
        resume: Whether to go on from unfinished work. ``False`` starts over, and replaces a finished store.
        progress: Called with the number of passages done, after each chunk.

    Returns:
        What was done.

    Raises:
        InvalidInputError: If an argument is unknown, or two passages have one id.
        JournalError: If unfinished work belongs to other settings or other passages.
        IndexFolderError: If ``out_dir`` holds a store of other passages or settings, or something else.
    """
    faiss_library.check_metric(metric)
    if chunk_size < 1:
        raise InvalidInputError(f"chunk_size is {chunk_size!r}", expected="a whole number of 1 or more")
    out = Path(out_dir).absolute()
    store_folder.check_may_replace(out)
    work = out.with_name(f"{out.name}.building")
    identity = identity_of(embedding)
    settings = {"embedder": identity, "metric": metric, "embed_title": embed_title, "chunk_size": chunk_size}
    if not resume:
        shutil.rmtree(work, ignore_errors=True)
    elif (out / store_folder.MANIFEST_FILE).is_file():
        report = _check_finished(documents, out, settings)
        shutil.rmtree(work, ignore_errors=True)
        return report
    with Journal(work / "journal.jsonl", settings) as journal:
        report = _Build(embedding, work, journal, embed_title=embed_title, progress=progress).run(
            _chunks(documents, chunk_size), out, identity, metric
        )
    shutil.rmtree(work, ignore_errors=True)
    return report


def _chunks(documents: Iterable[Document], size: int) -> Iterator[_Chunk]:
    """Cut the source into chunks of encoded passages, and refuse a repeated id."""
    source = iter(documents)
    seen = _SeenIds()
    number = first = 0
    while batch := list(islice(source, size)):
        ids = [document.id or str(first + place) for place, document in enumerate(batch)]
        seen.add(ids)
        lines = [encode_passage(document, name) for document, name in zip(batch, ids, strict=True)]
        yield _Chunk(number, first, batch, lines, hashlib.sha256(b"".join(lines)).hexdigest())
        number, first = number + 1, first + len(batch)


class _SeenIds:
    """Finds repeated ids with eight bytes an id: a hash each, kept in order."""

    def __init__(self) -> None:
        self._hashes = np.zeros(0, dtype=np.uint64)

    def add(self, ids: list[str]) -> None:
        digests = (hashlib.blake2b(one.encode(), digest_size=8).digest() for one in ids)
        new = np.frombuffer(b"".join(digests), dtype=np.uint64)
        places = np.searchsorted(self._hashes, new)
        known = np.append(self._hashes, np.uint64(0))[places] == new
        known &= places < len(self._hashes)
        order = np.argsort(new, kind="stable")
        known[order[1:]] |= new[order[1:]] == new[order[:-1]]
        if known.any():
            raise InvalidInputError(
                f"the passage id {ids[int(np.argmax(known))]!r} occurs twice",
                expected="one id a passage",
                hint="leave the ids out, or put the name of the source in front of them",
            )
        self._hashes = np.insert(self._hashes, places[order], new[order])


class _Build:
    """One run over the source: embeds the chunks that are not in the journal, then writes the store.

    Args:
        embedding: The embedder.
        work: The folder of unfinished work.
        journal: Its journal, open.
        embed_title: Whether titles are embedded.
        progress: Called after each chunk.
    """

    def __init__(
        self,
        embedding: Embeddings,
        work: Path,
        journal: Journal,
        *,
        embed_title: bool,
        progress: Callable[[int], None] | None,
    ) -> None:
        self._embedding = embedding
        self._work = work
        self._journal = journal
        self._done = list(journal.rows)
        self._embed_title = embed_title
        self._progress = progress
        self._resumed = 0

    def run(self, chunks: Iterator[_Chunk], out: Path, identity: Identity, metric: Metric) -> IndexReport:
        # The passages are written anew in every run: the source is read anyway, to see that it is the same.
        passages = self._work / store_folder.PASSAGES_FILE
        sizes: list[IntArray] = []
        dimension = int(identity.get("dimension") or 0)
        count = 0
        with passages.open("wb") as file:
            for chunk in chunks:
                dimension = self._finish(chunk, dimension)
                file.writelines(chunk.lines)
                sizes.append(np.fromiter(map(len, chunk.lines), dtype=np.int64, count=len(chunk.lines)))
                count = chunk.first + len(chunk.lines)
                if self._progress is not None:
                    self._progress(count)
        if len(self._done) > len(sizes):
            raise self._other_source(f"ends after {len(sizes)} of {len(self._done)} chunks")
        self._write(passages, sizes, out, metric, dimension or 1, count, identity)
        return IndexReport(
            folder=out, passages=count, dimension=dimension, chunks=len(sizes), chunks_resumed=self._resumed
        )

    def _finish(self, chunk: _Chunk, dimension: int) -> int:
        """See that a chunk's vectors are on disk, and return their dimension."""
        row: dict[str, Any] | None = self._done[chunk.number] if chunk.number < len(self._done) else None
        if row is not None and row.get("sha256") != chunk.digest:
            raise self._other_source(f"differs in passages {chunk.first} to {chunk.first + len(chunk.lines) - 1}")
        if row is not None and self._is_whole(chunk, int(row["dimension"])):
            self._resumed += 1
            return int(row["dimension"])
        texts = [passage_text(document, embed_title=self._embed_title) for document in chunk.documents]
        vectors = embed_passages(self._embedding, texts)
        if dimension and vectors.shape[1] != dimension:
            raise InvalidInputError(
                f"the embedder returned vectors of {vectors.shape[1]} numbers after vectors of {dimension}",
                expected="one length for all",
            )
        write_array(self._vectors_path(chunk.number), vectors)
        if row is None:
            self._journal.extend([{"chunk": chunk.number, "sha256": chunk.digest, "dimension": vectors.shape[1]}])
        return int(vectors.shape[1])

    def _is_whole(self, chunk: _Chunk, dimension: int) -> bool:
        """Whether the vectors of a finished chunk are still there; if not, they are made again."""
        try:
            return read_array(self._vectors_path(chunk.number), mmap=True).shape == (len(chunk.lines), dimension)
        except (OSError, ValueError):
            return False

    def _vectors_path(self, number: int) -> Path:
        return self._work / f"vectors-{number:06d}.npy"

    def _blocks(self, chunks: int) -> Iterator[FloatMatrix]:
        return (read_array(self._vectors_path(number)) for number in range(chunks))

    def _write(
        self,
        passages: Path,
        sizes: list[IntArray],
        out: Path,
        metric: Metric,
        dimension: int,
        count: int,
        identity: Identity,
    ) -> None:
        with store_folder.replaced_folder(out, self._work / "finished") as partial:
            faiss_library.write_flat_index(
                partial / store_folder.INDEX_FILE, metric, dimension, count, self._blocks(len(sizes))
            )
            passages.replace(partial / store_folder.PASSAGES_FILE)
            offsets = np.cumsum(np.concatenate([np.zeros(1, dtype=np.int64), *sizes]), dtype=np.int64)
            write_array(partial / store_folder.OFFSETS_FILE, offsets)
            index_type = type(faiss_library.flat_index(metric, dimension)).__name__
            about = manifest_entries(
                identity,
                metric=metric,
                dimension=dimension,
                count=count,
                embed_title=self._embed_title,
                index_type=index_type,
            )
            store_folder.write_manifest(partial, about)

    def _other_source(self, what: str) -> JournalError:
        return JournalError(
            f"the source {what} from that of the unfinished work in {self._work}",
            expected="the same passages in the same order",
            hint="resume=False to start over, or choose another out_dir",
        )


def _check_finished(documents: Iterable[Document], out: Path, settings: dict[str, Any]) -> IndexReport:
    """Compare a finished store with what was asked for, passage by passage, without embedding anything."""
    manifest = store_folder.read_manifest(out)
    store_folder.check_embedder(out, manifest["embedder"], settings["embedder"])
    other = [
        f"{key}: {manifest[key]!r} -> {settings[key]!r}"
        for key in ("metric", "embed_title")
        if manifest[key] != settings[key]
    ]
    if other:
        raise _other_store(out, f"was built with other settings ({'; '.join(other)})")
    count = chunks = 0
    with (out / store_folder.PASSAGES_FILE).open("rb") as file:
        for chunk in _chunks(documents, settings["chunk_size"]):
            chunks += 1
            for line in chunk.lines:
                if file.readline() != line:
                    raise _other_store(out, f"holds another passage than the source at number {count}")
                count += 1
        if file.readline():
            raise _other_store(out, f"holds {manifest['count']} passages, the source {count}")
    return IndexReport(
        folder=out, passages=count, dimension=manifest["dimension"], chunks=chunks, chunks_resumed=0, already_built=True
    )


def _other_store(out: Path, what: str) -> IndexFolderError:
    return IndexFolderError(
        f"{out} is finished, but {what}",
        expected="the same passages and settings, or a new folder",
        hint="resume=False to replace it, or choose another out_dir",
    )
