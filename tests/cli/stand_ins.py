"""A model and an embedder without weights, put where the command line loads the real ones.

``python -m tests.cli.stand_ins ask …`` runs the command line with them, in a process of its own.
"""

from __future__ import annotations

import os
import sys
import time
import zlib
from typing import Any

from langchain_core.embeddings import Embeddings

from adaptllm_chain.testing import Reply, ScriptedLLM

_SIZE = 256
KNOWN = {"capital of France": "Paris", "wrote Hamlet": "William Shakespeare"}


class WordEmbedder(Embeddings):
    """Vectors in which each word of five letters or more has its place; passages that share words are near."""

    def __init__(self) -> None:
        self.identity = {"name": "words", "normalisation": "none", "dimension": _SIZE}

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        time.sleep(float(os.environ.get("STAND_IN_SECONDS", "0")))
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        vector = [0.0] * _SIZE
        for word in {word.strip(".,?:!").lower() for word in text.split()}:
            if len(word) > 4:
                vector[zlib.crc32(word.encode()) % _SIZE] += 1.0
        return vector


def reply(prompt: str) -> Reply:
    """Know two answers; ask for retrieval otherwise; repeat the end of a passage."""
    if "given the context" in prompt:
        return Reply("according to: " + prompt.split("C: ")[1][-30:])
    if "too long" in prompt:
        raise ValueError("the prompt is too long")
    if "very slowly" in prompt:
        time.sleep(60)
    answer = next((answer for part, answer in KNOWN.items() if part in prompt), None)
    if answer is not None:
        return Reply(answer, info={"ret_probability": 0.05, "ret_probability_kind": "exact"})
    if "need help" in prompt:
        return Reply("<RET>", chunks=("<R", "ET>"), info={"ret_probability": 0.9, "ret_probability_kind": "exact"})
    return Reply("a guess")


def stand_in(patch: Any) -> ScriptedLLM:
    """Put the stand-ins in place.

    Args:
        patch: Sets an attribute, as ``monkeypatch.setattr`` does.

    Returns:
        The model that will be loaded.
    """
    from adaptllm_chain.cli import embedder_loading, model_loading

    llm = ScriptedLLM(script=reply)
    patch(model_loading, "load_llm", lambda arguments: llm)
    patch(model_loading, "check_adapter", lambda arguments: None)
    patch(embedder_loading, "load_embedder", lambda name, **options: WordEmbedder())
    return llm


if __name__ == "__main__":
    from adaptllm_chain.cli import main

    stand_in(setattr)
    sys.exit(main())
