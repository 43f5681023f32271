"""Tiny real models and collections for the tests of the retrieval room."""

from __future__ import annotations

from pathlib import Path

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings

WORDS = ["river", "stone", "lamp", "wheel", "salt", "moon", "copper", "tower", "bread", "glass", "north", "seven"]


class CountingEmbedding(Embeddings):
    """Deterministic vectors, and a record of the calls."""

    def __init__(self, size: int = 8) -> None:
        self.inner = DeterministicFakeEmbedding(size=size)
        self.document_calls: list[list[str]] = []
        self.query_calls: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.document_calls.append(list(texts))
        return self.inner.embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        self.query_calls.append(text)
        return self.inner.embed_query(text)


@pytest.fixture
def counting() -> CountingEmbedding:
    return CountingEmbedding()


@pytest.fixture
def passages() -> list[Document]:
    return [
        Document(id=f"p{n}", page_content=f"The {word} number {n}", metadata={"title": word, "n": n})
        for n, word in enumerate(WORDS)
    ]


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a BERT of two layers and a vocabulary of a few words."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder = tmp_path_factory.mktemp("models") / "tiny-bert"
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "a", "number", "foo", "bar", "##s", *WORDS]
    torch.manual_seed(7)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=48,
    )
    BertModel(config).save_pretrained(folder)
    BertTokenizerFast(vocab={word: place for place, word in enumerate(vocabulary)}).save_pretrained(folder)
    return folder
