from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import faiss
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document

from adaptllm_chain.errors import IndexFolderError, InvalidInputError, JournalError
from adaptllm_chain.retrieval import FaissPassageStore, build_index
from adaptllm_chain.retrieval.faiss_library import flat_index, write_flat_index
from tests.retrieval.conftest import CountingEmbedding


def source(count: int, changed: int | None = None) -> Iterator[Document]:
    for n in range(count):
        text = f"passage {n}" if n != changed else "something else"
        yield Document(id=f"p{n}", page_content=text, metadata={"title": f"T{n % 5}", "n": n})


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


class StoppedError(Exception):
    pass


def interrupted(out: Path, count: int, chunk: int, after: int, embedding: CountingEmbedding | None = None) -> None:
    """Stop a build after some passages."""

    def stop(done: int) -> None:
        if done >= after:
            raise StoppedError

    with pytest.raises(StoppedError):
        build_index(source(count), embedding or CountingEmbedding(), out, chunk_size=chunk, progress=stop)


def test_a_built_store_equals_one_that_was_filled_and_saved(counting: CountingEmbedding, tmp_path: Path) -> None:
    steps: list[int] = []
    report = build_index(source(25), counting, tmp_path / "built", chunk_size=10, progress=steps.append)
    assert steps == [10, 20, 25]
    assert (report.passages, report.chunks, report.chunks_resumed, report.dimension) == (25, 3, 0, 8)
    assert not report.already_built
    filled = FaissPassageStore.from_documents(list(source(25)), counting)
    assert contents(filled.save(tmp_path / "filled")) == contents(tmp_path / "built")
    loaded = FaissPassageStore.load(tmp_path / "built", counting, check_hashes=True)
    assert loaded.search_batch(["a", "b"], 5) == filled.search_batch(["a", "b"], 5)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["built", "filled"]


def test_the_source_is_read_one_chunk_at_a_time(tmp_path: Path) -> None:
    taken = 0

    class Watching(CountingEmbedding):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            assert len(texts) <= 7
            assert taken == 7 * (len(self.document_calls) + 1)
            return super().embed_documents(texts)

    def counted() -> Iterator[Document]:
        nonlocal taken
        for document in source(70):
            taken += 1
            yield document

    build_index(counted(), Watching(), tmp_path / "out", chunk_size=7)


def test_an_interrupted_build_goes_on_and_ends_with_the_same_bytes(tmp_path: Path) -> None:
    build_index(source(25), CountingEmbedding(), tmp_path / "whole", chunk_size=4)
    interrupted(tmp_path / "broken", 25, 4, after=12)
    assert not (tmp_path / "broken").exists()
    again = CountingEmbedding()
    report = build_index(source(25), again, tmp_path / "broken", chunk_size=4)
    assert report.chunks_resumed == 3
    assert len(again.document_calls) == 4
    assert "3 of 7 chunks from an earlier run" in str(report)
    assert contents(tmp_path / "broken") == contents(tmp_path / "whole")


@given(st.integers(0, 20), st.integers(1, 8), st.integers(1, 20))
@settings(max_examples=15, deadline=None)
def test_wherever_it_stops_the_result_is_the_same(
    tmp_path_factory: pytest.TempPathFactory, count: int, chunk: int, after: int
) -> None:
    folder = tmp_path_factory.mktemp("resume")
    build_index(source(count), CountingEmbedding(), folder / "whole", chunk_size=chunk)
    if count >= after:
        interrupted(folder / "broken", count, chunk, after)
    build_index(source(count), CountingEmbedding(), folder / "broken", chunk_size=chunk)
    assert contents(folder / "broken") == contents(folder / "whole")


def test_other_settings_do_not_resume(counting: CountingEmbedding, tmp_path: Path) -> None:
    interrupted(tmp_path / "out", 25, 4, after=12)
    with pytest.raises(JournalError, match="chunk_size: 4 -> 5"):
        build_index(source(25), counting, tmp_path / "out", chunk_size=5)
    with pytest.raises(JournalError, match="metric"):
        build_index(source(25), counting, tmp_path / "out", chunk_size=4, metric="l2")


def test_another_source_does_not_resume_and_starting_over_does(counting: CountingEmbedding, tmp_path: Path) -> None:
    interrupted(tmp_path / "out", 25, 4, after=12)
    with pytest.raises(JournalError, match="passages 4 to 7"):
        build_index(source(25, changed=6), counting, tmp_path / "out", chunk_size=4)
    with pytest.raises(JournalError, match="ends after 2 of 3"):
        build_index(source(8), counting, tmp_path / "out", chunk_size=4)
    report = build_index(source(8), counting, tmp_path / "out", chunk_size=4, resume=False)
    assert (report.passages, report.chunks_resumed) == (8, 0)


@pytest.mark.parametrize("harm", ["gone", "cut", "empty"])
def test_lost_vectors_are_made_again(counting: CountingEmbedding, tmp_path: Path, harm: str) -> None:
    build_index(source(25), CountingEmbedding(), tmp_path / "whole", chunk_size=4)
    interrupted(tmp_path / "out", 25, 4, after=12)
    path = tmp_path / "out.building" / "vectors-000001.npy"
    if harm == "gone":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-3] if harm == "cut" else b"")
    report = build_index(source(25), counting, tmp_path / "out", chunk_size=4)
    assert report.chunks_resumed == 2
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_a_finished_store_is_left_alone(counting: CountingEmbedding, tmp_path: Path) -> None:
    build_index(source(10), counting, tmp_path / "out", chunk_size=4)
    counting.document_calls.clear()
    report = build_index(source(10), counting, tmp_path / "out", chunk_size=4)
    assert report.already_built
    assert "nothing was done" in str(report)
    assert counting.document_calls == []
    with pytest.raises(IndexFolderError, match="at number 6"):
        build_index(source(10, changed=6), counting, tmp_path / "out")
    with pytest.raises(IndexFolderError, match="at number 10"):
        build_index(source(11), counting, tmp_path / "out")
    with pytest.raises(IndexFolderError, match="holds 10 passages, the source 9"):
        build_index(source(9), counting, tmp_path / "out")
    with pytest.raises(IndexFolderError, match="metric: 'inner_product' -> 'l2'"):
        build_index(source(10), counting, tmp_path / "out", metric="l2")
    with pytest.raises(IndexFolderError, match="another embedder"):
        build_index(source(10), _Other(), tmp_path / "out")
    assert build_index(source(3), counting, tmp_path / "out", resume=False).passages == 3
    assert len(FaissPassageStore.load(tmp_path / "out", counting)) == 3


class _Other(CountingEmbedding):
    pass


def test_a_foreign_folder_is_not_touched(counting: CountingEmbedding, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    for resume in (True, False):
        with pytest.raises(IndexFolderError, match=r"thesis\.txt"):
            build_index(source(3), counting, tmp_path / "mine", resume=resume)


def test_an_empty_source_makes_an_empty_store(counting: CountingEmbedding, tmp_path: Path) -> None:
    report = build_index([], counting, tmp_path / "out")
    assert report.passages == 0
    store = FaissPassageStore.load(tmp_path / "out", counting)
    assert store.similarity_search("q") == []
    store.add_texts(["one"])
    assert len(store.similarity_search("q")) == 1


@pytest.mark.parametrize("ids", [["a", "b", "a"], ["a", "a", "b"], ["0", "a", "b", "c", "d", "0"]])
def test_a_repeated_id_is_refused(counting: CountingEmbedding, tmp_path: Path, ids: list[str]) -> None:
    repeated = next(one for one in ids if ids.count(one) > 1)
    with pytest.raises(InvalidInputError, match=f"'{repeated}' occurs twice"):
        build_index(
            (Document(id=one, page_content=one) for one in ids),
            counting,
            tmp_path / "out",
            chunk_size=len(ids) // 2 + 1,
        )


def test_many_ids_are_told_apart(counting: CountingEmbedding, tmp_path: Path) -> None:
    documents = (Document(page_content="x") for _ in range(500))
    assert build_index(documents, counting, tmp_path / "out", chunk_size=7).passages == 500


@pytest.mark.parametrize("metric", ["inner_product", "l2"])
@pytest.mark.parametrize("count", [0, 1, 5])
def test_a_flat_index_written_in_blocks_has_faisss_own_bytes(tmp_path: Path, metric: str, count: int) -> None:
    vectors = np.random.default_rng(1).normal(size=(count, 6)).astype(np.float32)
    index = flat_index(metric, 6)  # type: ignore[arg-type]
    index.add(vectors)
    faiss.write_index(index, str(tmp_path / "own"))
    write_flat_index(tmp_path / "blocks", metric, 6, count, [vectors[:2], vectors[2:]])  # type: ignore[arg-type]
    assert (tmp_path / "blocks").read_bytes() == (tmp_path / "own").read_bytes()
    with pytest.raises(IndexFolderError):
        write_flat_index(tmp_path / "blocks", metric, 6, count + 1, [vectors])  # type: ignore[arg-type]


KILLED = """
    import sys, time
    from pathlib import Path
    from langchain_core.documents import Document
    from tests.retrieval.conftest import CountingEmbedding
    from adaptllm_chain.retrieval import build_index

    def slow(done):
        print(done, flush=True)
        time.sleep(0.1)

    documents = (Document(id=f"p{n}", page_content=f"text {n}") for n in range(60))
    report = build_index(documents, CountingEmbedding(), Path(sys.argv[1]), chunk_size=4, progress=slow)
    print("resumed", report.chunks_resumed, flush=True)
"""


def test_kill_minus_nine(tmp_path: Path) -> None:
    command = [sys.executable, "-c", textwrap.dedent(KILLED), str(tmp_path / "out")]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if int(line) >= 20:
                process.send_signal(signal.SIGKILL)
                break
    assert process.returncode == -signal.SIGKILL
    assert not (tmp_path / "out").exists()
    # A line that the kill cut short is the journal's to mend; leave one.
    with (tmp_path / "out.building" / "journal.jsonl").open("a") as file:
        file.write('{"chunk": 99, "sha')
    before = time.monotonic()
    documents = [Document(id=f"p{n}", page_content=f"text {n}") for n in range(60)]
    report = build_index(documents, CountingEmbedding(), tmp_path / "out", chunk_size=4)
    assert report.chunks_resumed >= 5
    assert time.monotonic() - before < 30
    build_index(documents, CountingEmbedding(), tmp_path / "whole", chunk_size=4)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_the_manifest_says_what_the_scores_depend_on(counting: CountingEmbedding, tmp_path: Path) -> None:
    build_index(source(5), counting, tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["metric"] == "inner_product"
    assert manifest["normalisation"] == "unknown"
    assert manifest["embedder"]["class"].endswith("CountingEmbedding")
    assert (manifest["count"], manifest["dimension"]) == (5, 8)
    assert manifest["libraries"]["numpy"] == np.__version__
    assert set(manifest["files"]) == {"index.faiss", "passages.jsonl", "passages.offsets.npy"}


def test_wrong_arguments(counting: CountingEmbedding, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="chunk_size"):
        build_index([], counting, tmp_path / "out", chunk_size=0)
    with pytest.raises(InvalidInputError, match="metric"):
        build_index([], counting, tmp_path / "out", metric="cosine")  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())
