"""The passages that responses are sampled with and may cite."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from adaptllm_chain.agree.passages import distinct
from adaptllm_chain.cli.console import note, progress_bar
from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.journal import Journal, fingerprint
from training.agree.chunks import StageClock, in_chunks
from training.agree.queries import Query

# Queries a search; one takes milliseconds, so a kill costs little.
_CHUNK = 64
# What the passages that a search brings depend on; the versions of libraries are not among it.
_OF_MANIFEST = ("embedder", "metric", "embed_title", "files")


def find_passages(
    queries: Sequence[Query], arguments: argparse.Namespace, settings: dict[str, Any], clock: StageClock
) -> list[list[Document]]:
    """Search for the passages of all queries; what an earlier run found is not searched for again.

    Args:
        queries: The queries.
        arguments: ``index`` or ``passages_of``, ``embeddings``, ``device``, ``k`` and ``out``.
        settings: What the passages depend on beside these; these are added to it.
        clock: Counts the seconds.

    Returns:
        For each query up to ``k`` passages, best first, as ``GroundedAnswerChain`` would show them.
    """
    from adaptllm_chain.retrieval.folder import read_manifest

    folder, embedder = _index(arguments)
    manifest = read_manifest(folder)
    settings |= {"index": fingerprint({name: manifest[name] for name in _OF_MANIFEST}), "k": arguments.k}
    with Journal(arguments.out / "passages.jsonl", settings) as journal:
        retriever = None if len(journal) * _CHUNK >= len(queries) else _open(folder, embedder, arguments)

        def search(places: range) -> list[dict[str, Any]]:
            assert retriever is not None
            found = retriever.batch([queries[place].text for place in places], k=arguments.k)
            return [{"passages": [_written(one) for one in distinct(some)[: arguments.k]]} for some in found]

        rows = in_chunks(journal, [query.id for query in queries], _CHUNK, search, clock, "searching")
    return [[_read(passage) for passage in row["passages"]] for row in rows]


def _index(arguments: argparse.Namespace) -> tuple[Path, Embeddings | None]:
    """The index that was named, or one of the passages that question files bring, with its embedder."""
    if bool(arguments.index) == bool(arguments.passages_of):
        raise InvalidInputError(
            "both --index and --passages-of" if arguments.index else "neither --index nor --passages-of",
            expected="one of them: a collection to search in",
            hint="adaptllm index PATH… --out DIR, then --index DIR; or --passages-of FILE with a question file",
        )
    if arguments.index:
        return arguments.index, None
    from adaptllm_chain.cli.embedder_loading import embedder_device, load_embedder
    from adaptllm_chain.cli.indexing import IndexSettings, index_files
    from adaptllm_chain.llms.embedded import EMBEDDED

    out: Path = arguments.out / "index"
    note(f"indexing the passages of {', '.join(arguments.passages_of)} into {out}")
    embedder = load_embedder(arguments.embeddings or EMBEDDED, device=embedder_device(arguments.device))
    with progress_bar("passages") as bar:
        index_files([], out, embedder, IndexSettings(passages_of=tuple(arguments.passages_of)), bar)
    return out, embedder


def _open(folder: Path, embedder: Embeddings | None, arguments: argparse.Namespace) -> Any:
    from adaptllm_chain.cli.chain_loading import open_retriever

    return open_retriever(argparse.Namespace(**vars(arguments) | {"index": folder}), embedder)


def _written(passage: Document) -> dict[str, str]:
    return {"title": str(passage.metadata.get("title") or ""), "text": passage.page_content}


def _read(passage: dict[str, str]) -> Document:
    return Document(page_content=passage["text"], metadata={"title": passage["title"]})
