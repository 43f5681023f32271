"""From files to an index, with progress."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from adaptllm_chain.errors import DataFileError

if TYPE_CHECKING:
    from adaptllm_chain.retrieval import IndexReport, SkippedFile

# Large enough for the embedder to sort its texts by length, small enough for a bar that moves.
_TEXTS_A_STEP = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSettings:
    """How an index is made.

    Attributes:
        metric: ``"inner_product"`` or ``"l2"``.
        words: The most words of a passage.
        chunk_size: Passages a chunk: what a kill can cost.
        columns: Which column or key of a row holds what.
        encoding: Of text files.
        resume: Whether to go on from unfinished work.
        passages_of: Question files whose passages are indexed too, as they are.
    """

    metric: Any = "inner_product"
    words: int = 100
    chunk_size: int = 1000
    columns: dict[str, str] = field(default_factory=dict)
    encoding: str = "utf-8"
    resume: bool = True
    passages_of: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Indexed:
    """What was indexed.

    Attributes:
        report: What ``build_index`` did.
        files: How many files gave passages.
        skipped: Those that gave none.
    """

    report: IndexReport
    files: int
    skipped: list[SkippedFile]


class SteppingEmbedder(Embeddings):
    """An embedder that moves a progress bar on while it works.

    Args:
        inner: The embedder.
        bar: The bar.
    """

    def __init__(self, inner: Embeddings, bar: Any) -> None:
        from adaptllm_chain.retrieval.identity import identity_of

        self._inner = inner
        self._bar = bar
        self._step = max(_TEXTS_A_STEP, int(getattr(inner, "batch_size", 0)))
        self.identity = identity_of(inner)

    def embed_matrix(self, texts: Sequence[str]) -> Any:
        """Embed passages step by step.

        Args:
            texts: The passages.

        Returns:
            An array with one row a passage.
        """
        from adaptllm_chain.retrieval.arrays import embed_passages, np

        steps = []
        for start in range(0, len(texts), self._step):
            step = texts[start : start + self._step]
            steps.append(embed_passages(self._inner, step))
            self._bar.update(len(step))
        return np.concatenate(steps) if steps else embed_passages(self._inner, [])

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed passages.

        Args:
            texts: The passages.

        Returns:
            One vector a passage.
        """
        vectors: list[list[float]] = self.embed_matrix(texts).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """Embed a query.

        Args:
            text: The query.

        Returns:
            Its vector.
        """
        return self._inner.embed_query(text)


def index_files(paths: Sequence[Path], out: Path, embedder: Embeddings, settings: IndexSettings, bar: Any) -> Indexed:
    """Read files, split them into passages, embed these, and write the store.

    Args:
        paths: Files and folders.
        out: The folder of the store.
        embedder: The embedder.
        settings: How.
        bar: A progress bar; it counts passages.

    Returns:
        What was done.

    Raises:
        DataFileError: If there is no passage in any of the files.
    """
    from adaptllm_chain.retrieval import build_index, read_passages_source, split_into_passages

    skipped: list[SkippedFile] = []
    sources: set[str] = set()
    documents = read_passages_source(paths, columns=settings.columns, encoding=settings.encoding, skipped=skipped)
    documents = chain(documents, _question_passages(settings.passages_of))
    passages = split_into_passages(_noting_sources(documents, sources, bar), words=settings.words)
    first = next(passages, None)
    if first is None:
        reasons = "".join(f"\n    {file.path}: {file.reason}" for file in skipped[:5])
        raise DataFileError(
            f"there is nothing to index in {', '.join(map(str, [*paths, *settings.passages_of]))}{reasons}",
            expected="files of text: .txt, .md, .html, .pdf, .jsonl, .csv, .tsv; question files with passages",
        )

    def count(done: int) -> None:
        # Chunks of an earlier run are not embedded again, and have not moved the bar.
        bar.update(done - bar.n)

    report = build_index(
        chain([first], passages),
        SteppingEmbedder(embedder, bar),
        out,
        chunk_size=settings.chunk_size,
        metric=settings.metric,
        resume=settings.resume,
        progress=count,
    )
    return Indexed(report, len(sources), skipped)


def _question_passages(sources: Sequence[str]) -> Iterator[Document]:
    """Read the passages of question files, each once; they are passages already and are not split."""
    from adaptllm_chain.qa_data import passages_of, read_questions
    from adaptllm_chain.retrieval.readers import WHOLE_PASSAGE

    origins = {"source": ", ".join(sources), WHOLE_PASSAGE: True}
    for passage in passages_of(question for source in sources for question in read_questions(source)):
        yield Document(passage.page_content, metadata={**passage.metadata, **origins})


def _noting_sources(documents: Iterable[Document], sources: set[str], bar: Any) -> Iterator[Document]:
    for document in documents:
        source = str(document.metadata.get("source"))
        if source not in sources:
            sources.add(source)
            bar.set_postfix_str(f"file {len(sources)}: {Path(source).name}", refresh=False)
        yield document
