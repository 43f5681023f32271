"""The one owner of numpy in this room: matrices of vectors, and embeddings turned into them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings

from adaptllm_chain.errors import InvalidInputError, missing_extra

try:
    import numpy as np
    import numpy.typing as npt
except ImportError as error:
    raise missing_extra("numpy", "cpu") from error

__all__ = [
    "FloatMatrix",
    "IntArray",
    "as_matrix",
    "embed_passages",
    "embed_queries",
    "np",
    "queries_embed_like_passages",
    "read_array",
    "write_array",
]

FloatMatrix = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]

# Remote embedders repeat themselves to about five digits; a prefix before a query moves far more.
_SAME_DIRECTION = 0.9999


def as_matrix(vectors: Any, *, rows: int, source: str) -> FloatMatrix:
    """Check what an embedder returned and lay it out for FAISS.

    Args:
        vectors: A sequence of vectors, or an array.
        rows: How many vectors there must be.
        source: Who returned them, for the error.

    Returns:
        float32, C-contiguous, shape ``[rows, dimension]``; ``[0, 0]`` when ``rows`` is 0 and no array was given.

    Raises:
        InvalidInputError: If the count is wrong, the lengths differ, or a value is not finite.
    """
    try:
        matrix = np.ascontiguousarray(vectors, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"{source} returned vectors that form no matrix: {error}", expected="lists of numbers, all of one length"
        ) from error
    if rows == 0 and matrix.size == 0:
        return matrix if matrix.ndim == 2 else np.zeros((0, 0), dtype=np.float32)
    if matrix.ndim != 2 or matrix.shape[0] != rows:
        raise InvalidInputError(
            f"{source} returned an array of shape {matrix.shape} for {rows} texts", expected="one vector a text"
        )
    if not np.isfinite(matrix).all():
        raise InvalidInputError(
            f"{source} returned values that are not finite", expected="finite numbers", hint="use a wider dtype"
        )
    return matrix


def embed_passages(embedding: Embeddings, texts: Sequence[str]) -> FloatMatrix:
    """Embed passages in one call, without a detour over lists where the embedder can do without.

    Args:
        embedding: Any LangChain embedder; one with ``embed_matrix(texts)`` is asked for arrays.
        texts: The passages.

    Returns:
        float32, shape ``[len(texts), dimension]``.
    """
    embed_matrix = getattr(embedding, "embed_matrix", None)
    vectors = embed_matrix(list(texts)) if callable(embed_matrix) else embedding.embed_documents(list(texts))
    return as_matrix(vectors, rows=len(texts), source=type(embedding).__name__)


def embed_queries(embedding: Embeddings, queries: Sequence[str], *, like_passages: bool) -> FloatMatrix:
    """Embed queries: in one call where they are embedded like passages, otherwise one by one.

    Args:
        embedding: Any LangChain embedder; one with ``embed_query_matrix(queries)`` is asked for arrays.
        queries: The queries.
        like_passages: Whether this embedder gives a query the vector it gives the same text as a
            passage; see ``queries_embed_like_passages``.

    Returns:
        float32, shape ``[len(queries), dimension]``.
    """
    embed_matrix = getattr(embedding, "embed_query_matrix", None)
    if callable(embed_matrix):
        vectors: Any = embed_matrix(list(queries))
    elif len(queries) == 1 or not like_passages:
        vectors = [embedding.embed_query(query) for query in queries]
    else:
        return embed_passages(embedding, queries)
    return as_matrix(vectors, rows=len(queries), source=type(embedding).__name__)


def queries_embed_like_passages(embedding: Embeddings, probe: str) -> bool:
    """Find out whether an embedder treats a query like a passage, by embedding one text both ways.

    LangChain has no batch call for queries, and some embedders put an instruction before a query.
    Sending their queries through ``embed_documents`` would search with the wrong vectors.

    Args:
        embedding: The embedder.
        probe: A text to try; a real query.

    Returns:
        Whether the two vectors point in the same direction.
    """
    one = np.asarray(embedding.embed_query(probe), dtype=np.float64)
    other = np.asarray(embedding.embed_documents([probe])[0], dtype=np.float64)
    if one.shape != other.shape:
        return False
    scale = float(np.linalg.norm(one) * np.linalg.norm(other))
    return scale == 0.0 or float(one @ other) >= _SAME_DIRECTION * scale


def write_array(path: Path, array: npt.NDArray[Any]) -> None:
    """Write an array as ``.npy`` so that a reader sees all of it or nothing.

    Args:
        path: The file; its folder exists.
        array: Numbers only.
    """
    partial = path.with_name(f"{path.name}.tmp")
    with partial.open("wb") as file:
        np.save(file, array, allow_pickle=False)
        # On disk before its name is: a journal may count on it from here on.
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def read_array(path: Path, *, mmap: bool = False) -> npt.NDArray[Any]:
    """Read a ``.npy`` file; one that holds Python objects is refused, for those are pickles.

    Args:
        path: The file.
        mmap: Whether to leave the numbers on disk until they are used.

    Returns:
        The array.

    Raises:
        ValueError: If it is damaged or holds objects.
        OSError: If it cannot be read.
    """
    try:
        array: npt.NDArray[Any] = np.load(path, mmap_mode="r" if mmap else None, allow_pickle=False)
    except (OSError, ValueError):
        raise
    except Exception as error:  # numpy parses the header as Python, and lets a TokenError through
        raise ValueError(str(error)) from error
    return array
