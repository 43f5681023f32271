"""Retrieval: embedders, the passage store, and what fills it.

Names are imported when they are first used: importing this package loads no heavy library.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from adaptllm_chain.retrieval.embeddings import ContrieverEmbeddings, SentenceEmbeddings, embedded_embeddings
    from adaptllm_chain.retrieval.given import GivenPassagesRetriever
    from adaptllm_chain.retrieval.indexing import IndexReport, build_index
    from adaptllm_chain.retrieval.readers import SkippedFile, read_passages_source
    from adaptllm_chain.retrieval.retriever import PassageRetriever
    from adaptllm_chain.retrieval.splitting import split_into_passages
    from adaptllm_chain.retrieval.store import FaissPassageStore

__all__ = [
    "ContrieverEmbeddings",
    "FaissPassageStore",
    "GivenPassagesRetriever",
    "IndexReport",
    "PassageRetriever",
    "SentenceEmbeddings",
    "SkippedFile",
    "build_index",
    "embedded_embeddings",
    "read_passages_source",
    "split_into_passages",
]

_MODULES = {
    "ContrieverEmbeddings": "embeddings",
    "FaissPassageStore": "store",
    "GivenPassagesRetriever": "given",
    "IndexReport": "indexing",
    "PassageRetriever": "retriever",
    "SentenceEmbeddings": "embeddings",
    "SkippedFile": "readers",
    "build_index": "indexing",
    "embedded_embeddings": "embeddings",
    "read_passages_source": "readers",
    "split_into_passages": "splitting",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
