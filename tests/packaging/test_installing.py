"""The wheel in a new environment, for each extra alone: it imports and runs what the extra brings.

Downloads gigabytes, so it runs under ``make wheel`` only, which sets ``ADAPTLLM_DIST``.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.packaging.project import PROJECT, USERS_EXTRAS

DIST = os.environ.get("ADAPTLLM_DIST")
needs_dist = pytest.mark.skipif(DIST is None, reason="downloads gigabytes: make wheel")

_CHAIN = """
from adaptllm_chain import AdaptiveRetrievalChain
from adaptllm_chain.testing import CountingRetriever, ScriptedLLM
script = {"If you need help": "<RET>", "given the context": "2002"}
chain = AdaptiveRetrievalChain(llm=ScriptedLLM(script=script), retriever=CountingRetriever(documents=["In 2002."]))
assert chain.invoke("When?")["answer"] == "2002"
"""
# What each extra makes possible, and nothing that another extra would be needed for.
PROOFS = {
    "": _CHAIN + "from importlib.util import find_spec\nassert not any(map(find_spec, ('torch', 'faiss', 'numpy')))",
    "local": "from adaptllm_chain import LocalLLM\nimport adaptllm_chain.publishing.merging, gguf, sentencepiece",
    "embeddings": "from adaptllm_chain.retrieval.embeddings import ContrieverEmbeddings\nimport sentence_transformers",
    "cpu": """
from langchain_core.embeddings import DeterministicFakeEmbedding
from adaptllm_chain import FaissPassageStore
store = FaissPassageStore.from_texts(["one", "two"], DeterministicFakeEmbedding(size=8))
assert store.as_retriever(k=1).invoke("one")[0].page_content == "one"
store.save("index")
""",
    "files": """
from pathlib import Path
from adaptllm_chain.retrieval import read_passages_source, split_into_passages
Path("page.html").write_text("<title>T</title><p>" + "word " * 300)
assert len(list(split_into_passages(read_passages_source("page.html")))) > 1
import pypdf
""",
    "train": "import trl, datasets, peft, yaml, matplotlib\nfrom adaptllm_chain import LocalLLM",
    "langchain": "from langchain.agents import create_agent",
    "community": "from langchain_community.vectorstores import FAISS",
    "report": "import adaptllm_chain.reporting.pages, adaptllm_chain.reporting.drawing",
    "serve": _CHAIN + "from adaptllm_chain.serve import create_app\ncreate_app(chain)",
    "llama-index": """
from adaptllm_chain.llama_index import AdaptiveQueryEngine
"""
    + _CHAIN
    + """
assert str(AdaptiveQueryEngine(chain).query("When?")) == "2002"
""",
    "docs": "import mkdocs, material, mkdocstrings_handlers.python",
    "all-cpu": "from adaptllm_chain import AdaptiveRetrievalChain, ContrieverEmbeddings, FaissPassageStore, LocalLLM",
}
# Imported nowhere without a GPU: pip says whether it could be installed.
DRY = {"gpu"}


def test_every_extra_has_a_proof() -> None:
    assert {*PROOFS, *DRY} == {"", *USERS_EXTRAS}
    for extra, code in PROOFS.items():
        compile(code, extra or "core", "exec")


@pytest.fixture
def python(tmp_path: Path) -> Iterator[Path]:
    """The interpreter of a new environment, which is removed afterwards: torch is large."""
    folder = tmp_path / "venv"
    venv.create(folder, with_pip=True)
    yield folder / "bin" / "python"
    shutil.rmtree(folder)


def install(python: Path, extra: str, *options: str) -> None:
    (wheel,) = Path(DIST or "").glob(f"*-{PROJECT['version']}-*.whl")
    wanted = f"{wheel}[{extra}]" if extra else str(wheel)
    constraints = ["-c", str(ROOT / "package" / "constraints.txt")]
    arguments = shlex.split(os.environ.get("ADAPTLLM_PIP_ARGS", ""))
    pip = [python, "-m", "pip", "install", "--quiet", *constraints, *arguments, *options, wanted]
    subprocess.run(pip, check=True)


@needs_dist
@pytest.mark.parametrize("extra", PROOFS, ids=lambda extra: extra or "core")
def test_installing(extra: str, python: Path, tmp_path: Path) -> None:
    install(python, extra)
    # Neither our environment nor our clone may help.
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    subprocess.run([python, "-I", "-c", PROOFS[extra]], check=True, cwd=tmp_path, env=clean)
    subprocess.run([python, "-m", "pip", "check"], check=True, cwd=tmp_path, env=clean)
    shown = subprocess.run(
        [python.with_name("adaptllm"), "--version"], check=True, cwd=tmp_path, env=clean, capture_output=True, text=True
    )
    assert shown.stdout == f"adaptllm {PROJECT['version']}\n"


@needs_dist
@pytest.mark.parametrize("extra", sorted(DRY))
def test_what_needs_a_gpu_could_be_installed(extra: str, python: Path) -> None:
    install(python, extra, "--dry-run")
