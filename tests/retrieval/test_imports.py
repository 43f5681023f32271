from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

import adaptllm_chain.retrieval as room

HEAVY = ("torch", "transformers", "faiss", "sentence_transformers", "pypdf", "bs4", "langchain_text_splitters")


def run(code: str) -> str:
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False, timeout=60
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_importing_the_room_and_its_store_loads_nothing_heavy() -> None:
    code = f"""
        import sys
        import adaptllm_chain.retrieval
        assert "numpy" not in sys.modules
        from adaptllm_chain.retrieval import *
        print([name for name in {HEAVY!r} if name in sys.modules])
    """
    assert run(code) == "[]"


def test_missing_packages_name_their_extra() -> None:
    code = f"""
        import sys
        for name in {HEAVY!r}: sys.modules[name] = None
        from adaptllm_chain import retrieval
        from adaptllm_chain.errors import MissingExtraError
        from langchain_core.documents import Document
        from langchain_core.embeddings import DeterministicFakeEmbedding
        import tempfile, pathlib
        folder = pathlib.Path(tempfile.mkdtemp())
        (folder / "a.html").write_text("x")
        (folder / "a.pdf").write_text("x")
        for use in (
            lambda: retrieval.FaissPassageStore.from_texts(["a"], DeterministicFakeEmbedding(size=2)),
            lambda: retrieval.ContrieverEmbeddings.from_pretrained("x"),
            lambda: retrieval.SentenceEmbeddings.from_pretrained("x", device="cpu"),
            lambda: list(retrieval.read_passages_source(folder / "a.html")),
            lambda: list(retrieval.read_passages_source(folder / "a.pdf")),
            lambda: list(retrieval.split_into_passages([])),
        ):
            try:
                use()
            except MissingExtraError as error:
                print(error.hint.split("[")[1].split("]")[0], end=" ")
    """
    assert run(code) == "cpu embeddings embeddings files files files"


def test_all_names_exist_and_others_do_not() -> None:
    for name in room.__all__:
        assert getattr(room, name).__name__ == name
    assert set(room.__all__) == set(dir(room))
    with pytest.raises(AttributeError, match="nothing_like_this"):
        _ = room.nothing_like_this
