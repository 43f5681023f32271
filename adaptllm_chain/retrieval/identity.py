"""Which embedder made a vector: written beside the vectors, compared before they are searched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.embeddings import Embeddings

Identity = dict[str, Any]

# Where LangChain's partner packages keep the model's name.
_NAME_FIELDS = ("model_name", "model", "model_id", "deployment", "repo_id")


def identity_of(embedding: Embeddings) -> Identity:
    """Describe an embedder by what changes its vectors.

    Args:
        embedding: Any LangChain embedder; one with an ``identity`` mapping is taken at its word.

    Returns:
        JSON-serialisable; keys ``name``, ``pooling``, ``normalisation``, ``dimension`` where known,
        and whatever else tells two embedders apart.
    """
    own = getattr(embedding, "identity", None)
    if isinstance(own, Mapping):
        return dict(own)
    names = (getattr(embedding, field, None) for field in _NAME_FIELDS)
    name = next((value for value in names if isinstance(value, str)), None)
    # Without its module: one class of LangChain's has lived in several packages.
    return {"class": type(embedding).__name__, "name": name, "normalisation": "unknown"}


def identity_differences(stored: Mapping[str, Any], given: Mapping[str, Any]) -> list[str]:
    """List what differs between two embedders.

    Args:
        stored: The embedder that made the vectors.
        given: The embedder that is to search them.

    Returns:
        One ``key: stored -> given`` a difference; empty when both give the same vectors. Two models with
        equal weights are the same, wherever they were loaded from.
    """
    same_weights = stored.get("weights") is not None and stored.get("weights") == given.get("weights")
    ignored = {"name"} if same_weights else set()
    keys = sorted({*stored, *given} - ignored)
    return [f"{key}: {stored.get(key)!r} -> {given.get(key)!r}" for key in keys if stored.get(key) != given.get(key)]
