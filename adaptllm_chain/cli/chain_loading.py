"""Building the chain that the options ask for; what can be wrong is found before anything is loaded."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings

from adaptllm_chain.chain import AdaptiveRetrievalChain
from adaptllm_chain.cli import embedder_loading, model_loading
from adaptllm_chain.cli.bundled import ensure_bundled_index
from adaptllm_chain.cli.console import note
from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.llms.embedded import EMBEDDED
from adaptllm_chain.ret import Adaptive, AlwaysRetrieve, NeverRetrieve, Policy, PopularityThreshold
from adaptllm_chain.retrieval.folder import read_manifest


def choose_policy(arguments: argparse.Namespace) -> Policy | None:
    """Turn the options of the decision into a policy.

    Args:
        arguments: ``mode``, ``threshold`` and ``popularity``.

    Returns:
        The policy; ``None`` for the adaptive one with what was saved beside the adapter.

    Raises:
        InvalidInputError: If the options do not go together.
    """
    mode, threshold = arguments.mode, arguments.threshold
    number = threshold if isinstance(threshold, float) else None
    if arguments.popularity is not None and mode != "popularity":
        raise InvalidInputError(
            f"--popularity says nothing to --mode {mode}",
            expected="--popularity with --mode popularity alone",
            hint="--mode popularity --threshold T",
        )
    if mode == "popularity":
        if number is None:
            raise InvalidInputError(
                "--mode popularity needs a threshold",
                expected="the popularity from which the model answers from memory",
                hint="--threshold 1000",
            )
        return PopularityThreshold(threshold=number)
    if mode == "adaptive":
        return _adaptive(arguments)
    if number is not None:
        raise InvalidInputError(
            f"--threshold {number:g} says nothing to --mode {mode}",
            expected="--threshold with --mode adaptive or popularity",
            hint=f"--mode {mode} alone, or --mode adaptive --threshold {number:g}",
        )
    return NeverRetrieve() if mode == "never_retrieve" else AlwaysRetrieve()


def _adaptive(arguments: argparse.Namespace) -> Policy | None:
    threshold = arguments.threshold
    if threshold is None:
        return None
    if threshold == "none":
        return Adaptive()
    if threshold > 1:
        raise InvalidInputError(
            f"--threshold {threshold:g} is no probability", expected="a number from 0 to 1", hint="--threshold 0.5"
        )
    return Adaptive(threshold=threshold)


def open_chain(arguments: argparse.Namespace, embedder: Embeddings | None = None) -> AdaptiveRetrievalChain:
    """Load what the options name and put it together.

    Args:
        arguments: The options of ``adaptllm ask``.
        embedder: The embedder of the index, if it is loaded already.

    Returns:
        The chain.
    """
    policy = choose_policy(arguments)
    model_loading.check_adapter(arguments)
    retriever = None
    if policy is None or policy.may_retrieve:
        retriever = open_retriever(arguments, embedder)
    elif arguments.index is not None:
        note(f"--mode {arguments.mode}: the index is not used")
    llm = model_loading.load_llm(arguments)
    return AdaptiveRetrievalChain(llm=llm, retriever=retriever, policy=policy, on_empty=arguments.on_empty)


def open_retriever(arguments: argparse.Namespace, embedder: Embeddings | None = None) -> Any:
    """Open the index that the options name, or that of the bundled corpus.

    Args:
        arguments: ``index``, ``embeddings``, ``device`` and ``k``.
        embedder: The embedder of the index, if it is loaded already.

    Returns:
        A retriever that puts scores into the metadata of what it finds.
    """
    from adaptllm_chain.retrieval import FaissPassageStore

    folder: Path | None = arguments.index
    name = arguments.embeddings or EMBEDDED
    if folder is not None:
        # Read before the embedder is loaded: a mistyped folder should not take half a minute to find.
        manifest = read_manifest(folder)
        name = arguments.embeddings or embedder_loading.embedder_name(folder, manifest)
    if embedder is None:
        note(f"loading the embedder {name}")
        device = embedder_loading.embedder_device(arguments.device)
        embedder = embedder_loading.load_embedder(name, device=device)
    if folder is None:
        folder = ensure_bundled_index(embedder)
    # Mapped: an index that is larger than memory can be asked, and a small one opens at once.
    store = FaissPassageStore.load(folder, embedder, mmap=True)
    return store.as_retriever(k=arguments.k, with_scores=True)
