"""The package as a whole: what importing it costs, and that its public names exist."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module

import pytest

import adaptllm_chain
from tests.conftest import ROOT

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


ROOMS = sorted(path.parent.name for path in (ROOT / "adaptllm_chain").glob("*/__init__.py"))


@pytest.mark.parametrize("room", ROOMS)
def test_what_a_room_names_is_there_and_described(room: str) -> None:
    module = import_module(f"adaptllm_chain.{room}")
    assert module.__doc__
    names = getattr(module, "__all__", [])
    assert sorted(set(names)) == sorted(names)
    assert not [name for name in names if getattr(module, name) is None]


# What a user would do first, by the package that is missing for it, and the extra that brings it.
_FIRST_STEPS = {
    "numpy": ("import adaptllm_chain.retrieval.arrays", "cpu"),
    "faiss": ("from adaptllm_chain import FaissPassageStore as Store; Store.from_texts(['a'], embedding)", "cpu"),
    "langchain_text_splitters": (
        "from adaptllm_chain.retrieval import split_into_passages as split; list(split([document]))",
        "files",
    ),
    "torch": ("import adaptllm_chain.llms.local", "local"),
    "jinja2": ("import adaptllm_chain.reporting.pages", "report"),
    "matplotlib": ("import adaptllm_chain.reporting.drawing", "report"),
    "fastapi": ("import adaptllm_chain.serve", "serve"),
    "llama_index": ("import adaptllm_chain.llama_index", "llama-index"),
}
_WITHOUT = """
import json, sys
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from adaptllm_chain.errors import MissingExtraError
embedding, document = DeterministicFakeEmbedding(size=2), Document("word " * 300)
hints = {}
for package, (step, _) in json.loads(sys.argv[1]).items():
    loaded = set(sys.modules)
    sys.modules[package] = None
    try:
        exec(step)
    except MissingExtraError as error:
        hints[package] = error.hint
    # The next step finds the package again, and meets modules of ours that are not yet loaded.
    for name in {name for name in sys.modules if name.startswith("adaptllm_chain")} - loaded | {package}:
        del sys.modules[name]
print(json.dumps(hints))
"""


def test_a_missing_package_gives_the_pip_command() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT, json.dumps(_FIRST_STEPS)], check=True, capture_output=True, text=True
    )
    expected = {package: f"pip install 'adaptllm-chain[{extra}]'" for package, (_, extra) in _FIRST_STEPS.items()}
    assert json.loads(done.stdout) == expected
