"""The package as a whole: what importing it costs, and that its public names exist."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import adaptllm_chain

CORE = ["errors", "records", "journal", "prompts", "ret", "metrics", "qa_data", "chain", "testing"]
HEAVY = {"torch", "transformers", "peft", "faiss", "openai", "sentence_transformers", "langchain_community", "datasets"}


def modules_after(statement: str) -> set[str]:
    code = f"{statement}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return {name.partition(".")[0] for name in json.loads(done.stdout.splitlines()[-1])}


@pytest.mark.parametrize("room", ["", *CORE, "retrieval", "llms", "cli"])
def test_importing_loads_no_heavy_library(room: str) -> None:
    loaded = modules_after(f"import adaptllm_chain{'.' if room else ''}{room}")
    assert not loaded & HEAVY


def test_public_names_exist() -> None:
    for name in adaptllm_chain.__all__:
        assert getattr(adaptllm_chain, name).__doc__
    assert set(adaptllm_chain.__all__) <= set(dir(adaptllm_chain))
    with pytest.raises(AttributeError, match="Adaptiv"):
        adaptllm_chain.AdaptivRetrievalChain  # noqa: B018
