"""A LangChain vector store over FAISS that is saved without a pickle and searched in batches."""

from __future__ import annotations

import copy
import os
import uuid
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Self

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores.utils import maximal_marginal_relevance

from adaptllm_chain.errors import IndexFolderError, InvalidInputError
from adaptllm_chain.retrieval import faiss_library
from adaptllm_chain.retrieval import folder as store_folder
from adaptllm_chain.retrieval.arrays import (
    FloatMatrix,
    IntArray,
    as_matrix,
    embed_passages,
    embed_queries,
    np,
    queries_embed_like_passages,
    read_array,
    write_array,
)
from adaptllm_chain.retrieval.faiss_library import Metric
from adaptllm_chain.retrieval.identity import Identity, identity_of
from adaptllm_chain.retrieval.passages import PassageRows, as_metadata_list, encode_passage, passage_text
from adaptllm_chain.retrieval.retriever import BatchSearchStore, PassageRetriever, ScoredDocuments


class FaissPassageStore(BatchSearchStore):
    """Passages and their vectors, searched exactly.

    Scores are dot products (higher is better) for ``"inner_product"``, the metric of Contriever, and
    squared Euclidean distances (lower is better) for ``"l2"``.

    Metadata is kept as JSON: what cannot be written as JSON is refused when it is added, and a document
    that was found is a copy, which may be changed freely.

    Args:
        embedding: Any LangChain embedder.
        metric: ``"inner_product"`` or ``"l2"``. For cosine similarity, use an embedder that normalises.
        embed_title: Whether the vector of a passage is that of its title, a space and its text (Contriever's
            way), where ``metadata["title"]`` holds a title; otherwise that of its text alone.
        relevance_score_fn: Turns a score into a relevance in [0, 1]; for other than the default mapping.

    Raises:
        InvalidInputError: If the metric is unknown.
    """

    def __init__(
        self,
        embedding: Embeddings,
        *,
        metric: Metric = "inner_product",
        embed_title: bool = True,
        relevance_score_fn: Callable[[float], float] | None = None,
    ) -> None:
        faiss_library.check_metric(metric)
        self.metric: Metric = metric
        self.embed_title = embed_title
        self._embedding = embedding
        self._relevance_score_fn = relevance_score_fn
        # Made with the first vectors: only they tell the dimension of an embedder that does not name it.
        self._index: Any = None
        self._gpu_resources: Any = None
        self._rows = PassageRows()
        self._like_passages: bool | None = getattr(embedding, "symmetric", None)
        self._read_only = False

    # -- what is in it ------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._rows)

    def __bool__(self) -> bool:
        # An empty store is a store: `if store:` must not ask for its length.
        return True

    @property
    def embeddings(self) -> Embeddings:
        """The embedder of queries and passages."""
        return self._embedding

    @property
    def identity(self) -> Identity:
        """What tells the embedder apart from others; see ``identity_of``."""
        return identity_of(self._embedding)

    @property
    def index(self) -> Any:
        """The faiss index, for its own settings; ``None`` before the first passage."""
        return self._index

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return passages by id.

        Args:
            ids: The ids; unknown ones are left out.

        Returns:
            The passages in the order of ``ids``.
        """
        return [self._rows[row] for row in self._rows.find(ids).values()]

    # -- adding and removing ------------------------------------------------------------------------

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Add passages; one whose id is stored already takes that one's place.

        Args:
            texts: The texts.
            metadatas: One a text; ``"title"`` is the title.
            ids: One a text; an id that is missing or ``None`` is drawn at random.
            **kwargs: None are known.

        Returns:
            The ids.

        Raises:
            InvalidInputError: If the counts differ, metadata is not JSON, or the store was loaded with ``mmap=True``.
        """
        _no_options(kwargs)
        self._check_writable()
        texts = list(texts)
        if ids is not None and len(ids) != len(texts):
            raise InvalidInputError(f"{len(ids)} ids for {len(texts)} texts", expected="one a text")
        names = [one or str(uuid.uuid4()) for one in (ids if ids is not None else [None] * len(texts))]
        documents = [
            Document(page_content=text, metadata=metadata)
            for text, metadata in zip(texts, as_metadata_list(metadatas, len(texts)), strict=True)
        ]
        # Within one call too the last passage of an id is the one that stays.
        newest = list(dict(zip(names, documents, strict=True)).items())
        # All that can fail comes before the first change.
        lines = [encode_passage(document, name) for name, document in newest]
        embedded = [passage_text(document, embed_title=self.embed_title) for _, document in newest]
        vectors = embed_passages(self._embedding, embedded)
        if newest:
            self._insert(vectors, lines, [name for name, _ in newest])
        return names

    def _insert(self, vectors: FloatMatrix, lines: list[bytes], ids: list[str]) -> None:
        if self._index is None:
            self._index = faiss_library.flat_index(self.metric, vectors.shape[1])
        self._check_dimension(vectors)
        self.delete(ids)
        self._index.add(vectors)
        self._rows.append(lines, ids)

    def delete(self, ids: list[str] | None = None, **kwargs: Any) -> bool:
        """Remove passages.

        Args:
            ids: Their ids; unknown ones are passed over. ``None`` removes all passages.
            **kwargs: None are known.

        Returns:
            True.

        Raises:
            InvalidInputError: If the index is of a kind that cannot remove, or was loaded with ``mmap=True``.
        """
        _no_options(kwargs)
        self._check_writable()
        rows = sorted(range(len(self)) if ids is None else self._rows.find(ids).values())
        if rows:
            faiss_library.remove_rows(self._index, rows)
            self._rows.remove(rows)
        return True

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> Self:
        """Make a store of texts.

        Args:
            texts: The texts.
            embedding: The embedder.
            metadatas: One a text; ``"title"`` is the title.
            ids: One a text.
            **kwargs: What the class takes: ``metric``, ``embed_title``, ``relevance_score_fn``.

        Returns:
            The store.
        """
        store = cls(embedding, **kwargs)
        store.add_texts(texts, metadatas, ids=ids)
        return store

    @classmethod
    def from_index(cls, index: Any, documents: Sequence[Document], embedding: Embeddings, **kwargs: Any) -> Self:
        """Put a store around a faiss index of your own: compressed, inverted lists, and so on.

        Args:
            index: A trained faiss index whose row ``i`` is the vector of ``documents[i]``.
            documents: The passages; one without an id is given its row number.
            embedding: The embedder that made the vectors.
            **kwargs: ``embed_title``, ``relevance_score_fn``.

        Returns:
            The store.

        Raises:
            InvalidInputError: If the counts differ, ids repeat, or the metric of the index is none of ours.
        """
        ids = [document.id or str(row) for row, document in enumerate(documents)]
        if index.ntotal != len(documents) or len(set(ids)) != len(ids):
            raise InvalidInputError(
                f"an index of {index.ntotal} vectors for {len(documents)} documents with {len(set(ids))} ids",
                expected="as many vectors, documents and different ids",
            )
        store = cls(embedding, metric=faiss_library.metric_of(index), **kwargs)
        store._index = index
        store._rows.append([encode_passage(document, name) for document, name in zip(documents, ids, strict=True)], ids)
        return store

    # -- searching ----------------------------------------------------------------------------------

    def search_batch(self, queries: Sequence[str], k: int = 4) -> list[ScoredDocuments]:
        """Search for many queries with one call of the embedder and one search.

        An embedder that LangChain knows no batch of queries for is tried once with one query: if it treats
        that as it treats a passage, batches go through ``embed_documents``, else query by query.

        Args:
            queries: The queries.
            k: Passages a query, at most.

        Returns:
            For each query, passages with scores, best first; as many as there are, if fewer than ``k``.

        Raises:
            InvalidInputError: If a query is not text, or ``k`` is below 1.
        """
        _check_k(k)
        for query in queries:
            if not isinstance(query, str):
                raise InvalidInputError(f"a query is {query!r}", expected="text")
        if not queries or not len(self):
            return [[] for _ in queries]
        if len(queries) > 1 and self._like_passages is None:
            self._like_passages = queries_embed_like_passages(self._embedding, queries[0])
        return self._search(embed_queries(self._embedding, queries, like_passages=bool(self._like_passages)), k)

    def _search(self, vectors: FloatMatrix, k: int) -> list[ScoredDocuments]:
        scores, rows = self._nearest(vectors, k)
        return [
            [
                (self._rows[int(row)], float(score))
                for score, row in zip(found_scores, found_rows, strict=True)
                if row >= 0
            ]
            for found_scores, found_rows in zip(scores, rows, strict=True)
        ]

    def _nearest(self, vectors: FloatMatrix, k: int) -> tuple[FloatMatrix, IntArray]:
        self._check_dimension(vectors)
        scores, rows = self._index.search(vectors, min(k, len(self)))
        return scores, rows

    def similarity_search_with_score(self, query: str, k: int = 4, **kwargs: Any) -> list[tuple[Document, float]]:
        """Return passages and their scores, best first.

        Args:
            query: The query.
            k: Passages, at most.
            **kwargs: None are known.

        Returns:
            Passages with scores: dot products, or squared distances for ``"l2"``.
        """
        _no_options(kwargs)
        return self.search_batch([query], k)[0]

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """Return passages, best first.

        Args:
            query: The query.
            k: Passages, at most.
            **kwargs: None are known.

        Returns:
            The passages.
        """
        return [document for document, _ in self.similarity_search_with_score(query, k, **kwargs)]

    def similarity_search_with_score_by_vector(
        self, embedding: list[float], k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """Return passages and their scores for a vector, best first.

        Args:
            embedding: The vector of a query.
            k: Passages, at most.
            **kwargs: None are known.

        Returns:
            Passages with scores.
        """
        _no_options(kwargs)
        _check_k(k)
        vectors = as_matrix([embedding], rows=1, source="the caller")
        return self._search(vectors, k)[0] if len(self) else []

    def similarity_search_by_vector(self, embedding: list[float], k: int = 4, **kwargs: Any) -> list[Document]:
        """Return passages for a vector, best first.

        Args:
            embedding: The vector of a query.
            k: Passages, at most.
            **kwargs: None are known.

        Returns:
            The passages.
        """
        return [document for document, _ in self.similarity_search_with_score_by_vector(embedding, k, **kwargs)]

    def max_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """Return passages that are relevant and unlike each other.

        Args:
            query: The query.
            k: Passages, at most.
            fetch_k: How many of the best passages to choose from.
            lambda_mult: From 0, as unlike each other as possible, to 1, as relevant as possible.
            **kwargs: None are known.

        Returns:
            The passages, in the order of their choice.
        """
        vector = self._embedding.embed_query(query) if len(self) else []
        return self.max_marginal_relevance_search_by_vector(vector, k, fetch_k, lambda_mult, **kwargs)

    def max_marginal_relevance_search_by_vector(
        self, embedding: list[float], k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """Return passages that are relevant to a vector and unlike each other.

        Args:
            embedding: The vector of a query.
            k: Passages, at most.
            fetch_k: How many of the best passages to choose from.
            lambda_mult: From 0, as unlike each other as possible, to 1, as relevant as possible.
            **kwargs: None are known.

        Returns:
            The passages, in the order of their choice.
        """
        _no_options(kwargs)
        _check_k(k)
        if not len(self):
            return []
        query = as_matrix([embedding], rows=1, source="the caller")
        rows = [int(row) for row in self._nearest(query, max(k, fetch_k))[1][0] if row >= 0]
        vectors = faiss_library.vectors_of(self._index, rows)
        chosen = maximal_marginal_relevance(query[0], vectors, lambda_mult=lambda_mult, k=k)
        return [self._rows[rows[place]] for place in chosen]

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        """Map scores to [0, 1] so that better passages are more relevant, whatever the length of the vectors.

        LangChain's own function for inner products turns the order round.
        """
        if self._relevance_score_fn is not None:
            return self._relevance_score_fn
        if self.metric == "l2":
            return _relevance_of_distance
        return _relevance_of_cosine if self.identity.get("normalisation") == "l2" else _relevance_of_dot_product

    def as_retriever(self, **kwargs: Any) -> PassageRetriever:
        """Make a retriever whose batches are searched as one.

        Args:
            **kwargs: Fields of ``PassageRetriever``: ``k``, ``with_scores``, and LangChain's ``search_type``,
                ``search_kwargs``, ``tags``, ``metadata``.

        Returns:
            The retriever.
        """
        tags = kwargs.pop("tags", None) or self._get_retriever_tags()
        return PassageRetriever(vectorstore=self, tags=tags, **kwargs)

    # -- moving -------------------------------------------------------------------------------------

    def to_gpu(self, device: int = 0) -> Self:
        """Move the index to a GPU; passages and embedder stay where they are.

        Args:
            device: The number of the GPU.

        Returns:
            This store.

        Raises:
            InvalidInputError: If the store is empty.
            UnsupportedHardwareError: If faiss is a build for the CPU, or there is no such GPU.
        """
        if self._index is None:
            raise InvalidInputError("an empty store has no index to move", expected="passages, added before")
        self._index, self._gpu_resources = faiss_library.to_gpu(faiss_library.on_cpu(self._index), device)
        # The copy on the GPU is its own, whatever the file it came from.
        self._read_only = False
        return self

    def to_cpu(self) -> Self:
        """Move the index back to the CPU.

        Returns:
            This store.
        """
        if self._index is not None:
            self._index = faiss_library.on_cpu(self._index)
        self._gpu_resources = None
        return self

    def save(self, folder: str | Path) -> Path:
        """Write the store to a folder, without a pickle; the folder is there whole or not at all.

        Args:
            folder: A new or empty folder, or one with a store, which is replaced.

        Returns:
            The folder.

        Raises:
            IndexFolderError: If something else is there.
        """
        folder = Path(folder).absolute()
        staging = folder.with_name(f".{folder.name}.saving-{os.getpid()}")
        with store_folder.replaced_folder(folder, staging) as partial:
            index = self._index
            if index is None:
                # A file needs a dimension; an embedder that names none has it asked of its first vector.
                index = faiss_library.flat_index(self.metric, int(self.identity.get("dimension") or 1))
            faiss_library.write_index(index, partial / store_folder.INDEX_FILE)
            offsets = self._rows.write(partial / store_folder.PASSAGES_FILE)
            write_array(partial / store_folder.OFFSETS_FILE, offsets)
            store_folder.write_manifest(
                partial,
                manifest_entries(
                    self.identity,
                    metric=self.metric,
                    dimension=index.d,
                    count=len(self),
                    embed_title=self.embed_title,
                    index_type=type(faiss_library.on_cpu(index)).__name__,
                ),
            )
        return folder

    @classmethod
    def load(
        cls,
        folder: str | Path,
        embedding: Embeddings,
        *,
        mmap: bool = False,
        check_hashes: bool = False,
        relevance_score_fn: Callable[[float], float] | None = None,
    ) -> Self:
        """Read a store that ``save`` or ``build_index`` wrote. No pickle is ever read.

        Args:
            folder: The folder.
            embedding: The embedder that made the vectors.
            mmap: Whether to leave the vectors on disk until a search touches them; such a store is read-only.
                Passages stay on disk in any case.
            check_hashes: Whether to read all files and compare their SHA-256, not their sizes alone.
            relevance_score_fn: As for the class.

        Returns:
            The store.

        Raises:
            IndexFolderError: If this is no store, it is damaged, or another embedder made it.
        """
        folder = Path(folder)
        manifest = store_folder.read_manifest(folder, check_hashes=check_hashes)
        store_folder.check_embedder(folder, manifest["embedder"], identity_of(embedding))
        store = cls(
            embedding,
            metric=manifest["metric"],
            embed_title=manifest["embed_title"],
            relevance_score_fn=relevance_score_fn,
        )
        index = faiss_library.read_index(folder / store_folder.INDEX_FILE, mmap=mmap)
        offsets = _read_offsets(folder, mmap=mmap)
        _check_counts(folder, manifest, index, offsets)
        store._rows = PassageRows.open(folder / store_folder.PASSAGES_FILE, offsets)
        store._index = index if manifest["count"] else None
        store._read_only = mmap
        return store

    def _check_writable(self) -> None:
        if self._read_only:
            # Adding to a mapped index ends the whole process, in faiss 1.15.
            raise InvalidInputError(
                "this store was loaded with mmap=True, so its index is read-only",
                expected="a store that is in memory",
                hint="FaissPassageStore.load(folder, embedding, mmap=False)",
            )

    def _check_dimension(self, vectors: FloatMatrix) -> None:
        if vectors.shape[1] != self._index.d:
            raise InvalidInputError(
                f"a vector of {vectors.shape[1]} numbers was passed to a store of {self._index.d}",
                expected=f"vectors of {self._index.d} numbers",
                hint="use the embedder that made the store",
            )


def manifest_entries(
    identity: Identity, *, metric: Metric, dimension: int, count: int, embed_title: bool, index_type: str
) -> dict[str, Any]:
    """List what a manifest says of a store, apart from its files.

    Args:
        identity: Of the embedder.
        metric: The metric of the index.
        dimension: Numbers a vector.
        count: How many passages there are.
        embed_title: Whether titles are part of what was embedded.
        index_type: The class of the faiss index.

    Returns:
        JSON-serialisable entries.
    """
    return {
        "metric": metric,
        "normalisation": identity.get("normalisation", "unknown"),
        "embedder": copy.deepcopy(identity),
        "embed_title": embed_title,
        "dimension": dimension,
        "count": count,
        "index_type": index_type,
    }


def _read_offsets(folder: Path, *, mmap: bool) -> IntArray:
    path = folder / store_folder.OFFSETS_FILE
    try:
        offsets = read_array(path, mmap=mmap)
    except (ValueError, OSError) as error:
        raise IndexFolderError(f"{path} cannot be read: {error}", expected="an array of whole numbers") from error
    size = (folder / store_folder.PASSAGES_FILE).stat().st_size
    if offsets.ndim != 1 or offsets.dtype != np.int64 or not len(offsets) or offsets[0] != 0 or offsets[-1] != size:
        raise IndexFolderError(
            f"{path} does not belong to {store_folder.PASSAGES_FILE}",
            expected=f"int64 offsets from 0 to {size}",
            hint="copy the folder again, or build it again",
        )
    return offsets


def _check_counts(folder: Path, manifest: dict[str, Any], index: Any, offsets: IntArray) -> None:
    found = {"passages": len(offsets) - 1, "vectors": int(index.ntotal)}
    if set(found.values()) != {manifest["count"]}:
        raise IndexFolderError(
            f"{folder} holds {found['passages']} passages and {found['vectors']} vectors",
            expected=f"{manifest['count']} of both, as the manifest says",
            hint="copy the folder again, or build it again",
        )
    metric = faiss_library.metric_of(index)
    if index.d != manifest["dimension"] or metric != manifest["metric"]:
        raise IndexFolderError(
            f"{folder} holds an index of {index.d} dimensions for {metric}",
            expected=f"{manifest['dimension']} dimensions for {manifest['metric']}, as the manifest says",
            hint="copy the folder again, or build it again",
        )


def _check_k(k: int) -> None:
    if not isinstance(k, int) or k < 1:
        raise InvalidInputError(f"k is {k!r}", expected="a whole number of 1 or more")


def _no_options(kwargs: dict[str, Any]) -> None:
    """Refuse what would be ignored in silence, a filter above all."""
    if kwargs:
        raise InvalidInputError(
            f"unknown option {next(iter(kwargs))!r}", expected="no further options: this store has no filters"
        )


def _relevance_of_cosine(score: float) -> float:
    return min(1.0, max(0.0, (1.0 + score) / 2.0))


def _relevance_of_dot_product(score: float) -> float:
    """Without a bound on the score: 0.5 for 0, towards 1 and 0 at both ends."""
    return (1.0 + score / (1.0 + abs(score))) / 2.0


def _relevance_of_distance(squared: float) -> float:
    return 1.0 / (1.0 + max(0.0, squared))
