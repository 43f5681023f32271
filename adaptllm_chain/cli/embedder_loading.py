"""Which embedder a name stands for, on the command line and in the manifest of an index."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from langchain_core.embeddings import Embeddings

from adaptllm_chain.cli.console import stdout_kept_clean
from adaptllm_chain.errors import IndexFolderError
from adaptllm_chain.llms.embedded import EMBEDDED
from adaptllm_chain.minilm import MINILM_NAME

_CONTRIEVER = "contriever"
# Only a model that was made for sentence-transformers has this file.
_SENTENCE_MODEL_FILE = "modules.json"

EmbedderDevice = Literal["cpu", "cuda", "auto"]


def load_embedder(name: str, *, device: EmbedderDevice = "auto", batch_size: int = 32) -> Embeddings:
    """Load an embedder by the name that stands on the command line or in a manifest.

    Args:
        name: ``"embedded"``, ``"contriever"``, a folder, or a name on the hub. Contriever's pooling is used
            for names with ``contriever`` in them and for folders of a plain encoder, sentence-transformers
            for all others.
        device: Where vectors are computed.
        batch_size: Texts a forward pass.

    Returns:
        The embedder.
    """
    from adaptllm_chain.retrieval.embeddings import (
        CONTRIEVER,
        ContrieverEmbeddings,
        SentenceEmbeddings,
        embedded_embeddings,
    )

    with stdout_kept_clean():
        if name in (EMBEDDED, MINILM_NAME):
            return embedded_embeddings(device=device, batch_size=batch_size)
        model = CONTRIEVER if name == _CONTRIEVER else name
        folder = Path(model)
        plain = not (folder / _SENTENCE_MODEL_FILE).is_file() if folder.is_dir() else _CONTRIEVER in model
        kind: Any = ContrieverEmbeddings if plain else SentenceEmbeddings
        embedder = kind.from_pretrained(model, device=device, batch_size=batch_size)
    if folder.is_dir():
        # The manifest keeps this name, and `adaptllm ask` has to find the folder by it.
        embedder.name = str(folder.resolve())
    loaded: Embeddings = embedder
    return loaded


def embedder_name(folder: Path, manifest: Mapping[str, Any]) -> str:
    """Find the embedder of an index by its manifest.

    Args:
        folder: The index.
        manifest: Its manifest.

    Returns:
        A name for ``load_embedder``.

    Raises:
        IndexFolderError: If the index was made in Python with an embedder that has no such name.
    """
    identity = manifest["embedder"]
    name = identity.get("name")
    if "class" in identity or not isinstance(name, str):
        raise IndexFolderError(
            f"{folder} was made with an embedder that the command line cannot load: {dict(identity)}",
            expected="an index that `adaptllm index` made",
            hint="ask it from Python, or name a model with the same weights: --embeddings NAME",
        )
    return name


def embedder_device(device: str) -> EmbedderDevice:
    """Choose a device for the embedder by that of the model.

    Args:
        device: What was given for the model.

    Returns:
        The device; an embedder is small enough for the CPU where it cannot follow the model.
    """
    if device == "auto":
        return "auto"
    return "cuda" if device.startswith("cuda") else "cpu"
