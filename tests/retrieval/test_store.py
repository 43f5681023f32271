from __future__ import annotations

import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.vectorstores import VectorStore
from langchain_tests.integration_tests import VectorStoreIntegrationTests

from adaptllm_chain.errors import IndexFolderError, InvalidInputError, UnsupportedHardwareError
from adaptllm_chain.retrieval import FaissPassageStore
from tests.retrieval.conftest import CountingEmbedding


class TestStandard(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self) -> VectorStore:
        return FaissPassageStore(self.get_embeddings())


class TestStandardL2(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self) -> VectorStore:
        return FaissPassageStore(self.get_embeddings(), metric="l2")


class TestStandardLoaded(VectorStoreIntegrationTests):
    """A store that came from disk, empty, is as good as a new one."""

    @pytest.fixture
    def vectorstore(self, tmp_path: Path) -> VectorStore:
        FaissPassageStore(self.get_embeddings()).save(tmp_path / "store")
        return FaissPassageStore.load(tmp_path / "store", self.get_embeddings())


@pytest.fixture
def embedding() -> DeterministicFakeEmbedding:
    return DeterministicFakeEmbedding(size=8)


@pytest.fixture
def store(embedding: Embeddings, passages: list[Document]) -> FaissPassageStore:
    return FaissPassageStore.from_documents(passages, embedding)


@pytest.fixture
def saved(store: FaissPassageStore, tmp_path: Path) -> Path:
    return store.save(tmp_path / "store")


# -- scores -----------------------------------------------------------------------------------------


def test_scores_are_dot_products_of_title_and_text(embedding: Embeddings, passages: list[Document]) -> None:
    store = FaissPassageStore.from_documents(passages, embedding)
    texts = [f"{passage.metadata['title']} {passage.page_content}" for passage in passages]
    expected = np.asarray(embedding.embed_documents(texts)) @ np.asarray(embedding.embed_query("which lamp?"))
    found = store.similarity_search_with_score("which lamp?", k=5)
    best = np.argsort(-expected)[:5]
    assert [document.id for document, _ in found] == [passages[row].id for row in best]
    np.testing.assert_allclose([score for _, score in found], expected[best], rtol=1e-5)


def test_l2_scores_are_squared_distances_best_first(embedding: Embeddings, passages: list[Document]) -> None:
    store = FaissPassageStore.from_documents(passages, embedding, metric="l2", embed_title=False)
    vectors = np.asarray(embedding.embed_documents([passage.page_content for passage in passages]))
    expected = ((vectors - np.asarray(embedding.embed_query("q"))) ** 2).sum(axis=1)
    np.testing.assert_allclose(
        [score for _, score in store.similarity_search_with_score("q", k=3)], np.sort(expected)[:3], rtol=1e-5
    )


@pytest.mark.parametrize("metric", ["inner_product", "l2"])
def test_relevance_follows_the_order_of_the_scores(
    embedding: Embeddings, passages: list[Document], metric: Any
) -> None:
    store = FaissPassageStore.from_documents(passages, embedding, metric=metric)
    found = store.similarity_search_with_relevance_scores("q", k=12)  # a warning would be an error here
    relevances = [relevance for _, relevance in found]
    assert len(relevances) == 12
    assert relevances == sorted(relevances, reverse=True)
    assert relevances[0] > relevances[-1]
    kept = store.as_retriever(
        search_type="similarity_score_threshold", search_kwargs={"score_threshold": relevances[2], "k": 12}
    ).invoke("q")
    assert [document.id for document in kept] == [document.id for document, _ in found[:3]]


def test_relevance_of_a_normalising_embedder_is_half_of_one_plus_cosine(passages: list[Document]) -> None:
    class Normal(DeterministicFakeEmbedding):
        @property
        def identity(self) -> dict[str, Any]:
            return {"name": "normal", "normalisation": "l2", "dimension": self.size}

        def embed_query(self, text: str) -> list[float]:
            vector = np.asarray(super().embed_query(text))
            return (vector / np.linalg.norm(vector)).tolist()

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [self.embed_query(text) for text in texts]

    store = FaissPassageStore.from_documents(passages, Normal(size=8), embed_title=False)
    (_, relevance), *_ = store.similarity_search_with_relevance_scores(passages[3].page_content, k=1)
    assert relevance == pytest.approx(1.0)


def test_search_in_an_empty_store_finds_nothing_and_embeds_nothing(counting: CountingEmbedding) -> None:
    store = FaissPassageStore(counting)
    assert store.search_batch(["a", "b"], 3) == [[], []]
    assert store.similarity_search_by_vector([0.0] * 8) == []
    assert store.max_marginal_relevance_search("a") == []
    assert not counting.document_calls
    assert not counting.query_calls


def test_more_than_there_is(store: FaissPassageStore) -> None:
    assert len(store.similarity_search("q", k=500)) == 12


def test_marginal_relevance_avoids_the_double(embedding: Embeddings) -> None:
    store = FaissPassageStore.from_texts(["same", "same", "other"], embedding, ids=["1", "2", "3"])
    found = store.max_marginal_relevance_search("same", k=2, lambda_mult=0.2)
    assert {document.page_content for document in found} == {"same", "other"}


def test_a_batch_equals_single_searches(store: FaissPassageStore) -> None:
    queries = [f"query {n}" for n in range(30)]  # above faiss's threshold for BLAS
    for query, found in zip(queries, store.search_batch(queries, 4), strict=True):
        alone = store.similarity_search_with_score(query, 4)
        assert [document for document, _ in found] == [document for document, _ in alone]
        np.testing.assert_allclose([score for _, score in found], [score for _, score in alone], rtol=1e-5)


def test_an_embedder_with_a_prefix_for_queries_keeps_it_in_batches(passages: list[Document]) -> None:
    class Prefixing(CountingEmbedding):
        def embed_query(self, text: str) -> list[float]:
            return super().embed_query(f"query: {text}")

    store = FaissPassageStore.from_documents(passages, Prefixing())
    alone = [store.similarity_search(query, 3) for query in ("x", "y", "z")]
    assert [[document for document, _ in found] for found in store.search_batch(["x", "y", "z"], 3)] == alone


def test_found_documents_are_copies(store: FaissPassageStore) -> None:
    found = store.similarity_search("q", k=1)[0]
    found.metadata["score"] = 1
    found.metadata["title"] = "changed"
    assert store.similarity_search("q", k=1)[0].metadata["title"] != "changed"


# -- adding -----------------------------------------------------------------------------------------


def test_ids_repeated_in_one_call_keep_the_last(embedding: Embeddings) -> None:
    store = FaissPassageStore(embedding)
    assert store.add_texts(["old", "b", "new"], ids=["1", "2", "1"]) == ["1", "2", "1"]
    assert len(store) == 2
    assert [document.page_content for document in store.get_by_ids(["1", "2"])] == ["new", "b"]


def test_rows_and_vectors_stay_aligned_through_changes(saved: Path, embedding: Embeddings) -> None:
    store = FaissPassageStore.load(saved, embedding)
    store.delete(["p3", "p0", "unknown"])
    store.add_texts(["brand new", "the lamp again"], [{}, {"title": "lamp"}], ids=["n1", "p2"])
    store.delete(["p11"])
    store.add_texts(["last"], ids=["n2"])
    assert len(store) == 11
    for document in store.get_by_ids(["n1", "n2", "p1", "p2", "p10"]):
        title = document.metadata.get("title")
        vector = embedding.embed_query(f"{title} {document.page_content}" if title else document.page_content)
        scores = {found.id: score for found, score in store.similarity_search_with_score_by_vector(vector, k=11)}
        assert scores[document.id] == pytest.approx(np.dot(vector, vector), rel=1e-5)
    store.delete()
    assert len(store) == 0
    assert store.similarity_search("q") == []


def test_what_cannot_be_stored_is_refused_before_anything_changes(
    store: FaissPassageStore, counting: CountingEmbedding
) -> None:
    with pytest.raises(InvalidInputError, match="JSON, never a pickle"):
        store.add_texts(["a", "b"], [{}, {"path": Path()}], ids=["p0", "p1"])
    with pytest.raises(InvalidInputError, match="2 ids for 1 texts"):
        store.add_texts(["a"], ids=["1", "2"])
    with pytest.raises(InvalidInputError, match="1 metadatas for 2 texts"):
        store.add_texts(["a", "b"], [{}])
    assert len(store) == 12
    assert store.get_by_ids(["p0"])[0].page_content == "The river number 0"


def test_wrong_arguments(store: FaissPassageStore, embedding: Embeddings) -> None:
    with pytest.raises(InvalidInputError, match="cosine"):
        FaissPassageStore(embedding, metric="cosine")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="filter"):
        store.similarity_search("q", filter={"n": 1})
    with pytest.raises(InvalidInputError, match="k is 0"):
        store.similarity_search("q", k=0)
    with pytest.raises(InvalidInputError, match="3 numbers"):
        store.similarity_search_by_vector([1.0, 2.0, 3.0])
    with pytest.raises(InvalidInputError, match="expected: text"):
        store.search_batch(["a", None])  # type: ignore[list-item]


def test_an_embedder_that_returns_nonsense_is_named(embedding: Embeddings) -> None:
    class Broken(DeterministicFakeEmbedding):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [[float("nan")] * 8 for _ in texts]

    class Short(DeterministicFakeEmbedding):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [[1.0] * 8]

    with pytest.raises(InvalidInputError, match="Broken returned values that are not finite"):
        FaissPassageStore.from_texts(["a"], Broken(size=8))
    with pytest.raises(InvalidInputError, match="for 2 texts"):
        FaissPassageStore.from_texts(["a", "b"], Short(size=8))


# -- saving and loading -----------------------------------------------------------------------------


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("metric", ["inner_product", "l2"])
def test_a_loaded_store_finds_the_same_with_the_same_scores(
    embedding: Embeddings, passages: list[Document], tmp_path: Path, metric: Any, mmap: bool
) -> None:
    store = FaissPassageStore.from_documents(passages, embedding, metric=metric)
    store.add_texts(["Žlutý kůň\n\n😀"], [{"deep": {"list": [1, 2.5, None, True]}, "title": "Ž"}], ids=["ž"])
    folder = store.save(tmp_path / "store")
    assert sorted(file.name for file in folder.iterdir()) == [
        "index.faiss",
        "manifest.json",
        "passages.jsonl",
        "passages.offsets.npy",
    ]
    loaded = FaissPassageStore.load(folder, embedding, mmap=mmap, check_hashes=True)
    queries = ["one", "two", "three"]
    assert loaded.search_batch(queries, 13) == store.search_batch(queries, 13)
    assert loaded.get_by_ids(["ž", "p4"]) == store.get_by_ids(["ž", "p4"])
    assert loaded.metric == metric


def test_saving_twice_gives_the_same_bytes(store: FaissPassageStore, saved: Path, tmp_path: Path) -> None:
    again = FaissPassageStore.load(saved, store.embeddings).save(tmp_path / "again")
    for file in saved.iterdir():
        assert (again / file.name).read_bytes() == file.read_bytes()


def test_a_store_can_be_saved_over_the_folder_it_is_read_from(saved: Path, embedding: Embeddings) -> None:
    store = FaissPassageStore.load(saved, embedding)
    store.delete(["p0"])
    store.save(saved)
    assert len(FaissPassageStore.load(saved, embedding)) == 11
    assert len(store.similarity_search("q", k=20)) == 11
    assert [file.name for file in saved.parent.iterdir()] == ["store"]


def test_nothing_else_is_overwritten(store: FaissPassageStore, saved: Path, tmp_path: Path) -> None:
    (saved / "notes.txt").write_text("mine")
    with pytest.raises(IndexFolderError, match=r"notes\.txt"):
        store.save(saved)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(IndexFolderError, match="choose another folder"):
        store.save(tmp_path / "file")


def test_a_failed_save_leaves_the_old_store(
    store: FaissPassageStore, saved: Path, monkeypatch: pytest.MonkeyPatch, embedding: Embeddings
) -> None:
    store.delete(["p0"])

    def fail(*_: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("adaptllm_chain.retrieval.store.write_array", fail)
    with pytest.raises(OSError, match="disk full"):
        store.save(saved)
    assert len(FaissPassageStore.load(saved, embedding)) == 12
    assert [file.name for file in saved.parent.iterdir()] == ["store"]


def test_another_embedder_is_refused(saved: Path, counting: CountingEmbedding) -> None:
    with pytest.raises(IndexFolderError, match="was made with another embedder"):
        FaissPassageStore.load(saved, counting)


@pytest.mark.parametrize("name", ["index.faiss", "passages.jsonl", "passages.offsets.npy", "manifest.json"])
@pytest.mark.parametrize("harm", ["cut", "gone", "empty", "grown"])
def test_damaged_folders_are_refused(saved: Path, embedding: Embeddings, name: str, harm: str) -> None:
    path = saved / name
    if harm == "gone":
        path.unlink()
    else:
        content = path.read_bytes()
        path.write_bytes({"cut": content[:-7], "empty": b"", "grown": content + b"more"}[harm])
    with pytest.raises(IndexFolderError):
        FaissPassageStore.load(saved, embedding)


def _forge_sizes(folder: Path) -> None:
    """Make the manifest agree with the files, so that the checks behind it are reached."""
    import json

    manifest = json.loads((folder / "manifest.json").read_text())
    for name, entry in manifest["files"].items():
        entry["bytes"] = (folder / name).stat().st_size
    (folder / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize("name", ["index.faiss", "passages.jsonl", "passages.offsets.npy"])
def test_damage_behind_a_fitting_size_is_found(saved: Path, embedding: Embeddings, name: str) -> None:
    path = saved / name
    path.write_bytes(path.read_bytes()[:-7])
    _forge_sizes(saved)
    with pytest.raises(IndexFolderError):
        FaissPassageStore.load(saved, embedding)


def test_a_wrong_count_is_refused(saved: Path, embedding: Embeddings, tmp_path: Path) -> None:
    other = FaissPassageStore.from_texts(["only one"], embedding).save(tmp_path / "other")
    shutil.copy(other / "index.faiss", saved / "index.faiss")
    _forge_sizes(saved)
    with pytest.raises(IndexFolderError, match="12 passages and 1 vectors"):
        FaissPassageStore.load(saved, embedding)


def test_a_changed_byte_is_found_when_hashes_are_checked(saved: Path, embedding: Embeddings) -> None:
    content = bytearray((saved / "index.faiss").read_bytes())
    content[-1] ^= 1
    (saved / "index.faiss").write_bytes(content)
    with pytest.raises(IndexFolderError, match="was changed"):
        FaissPassageStore.load(saved, embedding, check_hashes=True)


class Trap:
    """Makes a folder when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


def test_no_pickle_is_ever_read(saved: Path, embedding: Embeddings, tmp_path: Path) -> None:
    sprung = tmp_path / "sprung"
    trap = pickle.dumps(Trap(sprung))
    (saved / "index.pkl").write_bytes(trap)
    FaissPassageStore.load(saved, embedding)  # beside a good store it is nothing
    # An array file with objects in it is a pickle too.
    np.save(tmp_path / "objects.npy", np.array([Trap(sprung)], dtype=object), allow_pickle=True)
    shutil.copy(tmp_path / "objects.npy", saved / "passages.offsets.npy")
    _forge_sizes(saved)
    with pytest.raises(IndexFolderError):
        FaissPassageStore.load(saved, embedding)
    for name in ("passages.jsonl", "passages.offsets.npy", "index.faiss", "manifest.json"):
        (saved / name).write_bytes(trap)
    with pytest.raises(IndexFolderError):
        FaissPassageStore.load(saved, embedding)
    # What langchain-community writes: index.faiss and index.pkl.
    community = tmp_path / "community"
    community.mkdir()
    shutil.copy(tmp_path / "objects.npy", community / "index.faiss")
    (community / "index.pkl").write_bytes(trap)
    with pytest.raises(IndexFolderError, match="is not read"):
        FaissPassageStore.load(community, embedding)
    assert not sprung.exists()
    pickle.loads(trap)
    assert sprung.exists()  # the trap works


def test_a_mapped_store_is_read_only(saved: Path, embedding: Embeddings) -> None:
    store = FaissPassageStore.load(saved, embedding, mmap=True)
    with pytest.raises(InvalidInputError, match="mmap=False"):
        store.add_texts(["more"])
    with pytest.raises(InvalidInputError, match="mmap=False"):
        store.delete(["p1"])


# -- other indexes, and GPUs -------------------------------------------------------------------------


def test_an_index_of_another_kind(embedding: Embeddings, passages: list[Document], tmp_path: Path) -> None:
    vectors = np.asarray(embedding.embed_documents([p.page_content for p in passages]), dtype=np.float32)
    index = faiss.index_factory(8, "IVF1,Flat", faiss.METRIC_INNER_PRODUCT)
    index.train(vectors)
    index.add(vectors)
    store = FaissPassageStore.from_index(index, passages, embedding, embed_title=False)
    loaded = FaissPassageStore.load(store.save(tmp_path / "ivf"), embedding)
    assert loaded.search_batch(["a", "b"], 3) == store.search_batch(["a", "b"], 3)
    with pytest.raises(InvalidInputError, match="IndexIVFFlat"):
        store.delete(["p1"])
    with pytest.raises(InvalidInputError, match="make_direct_map"):
        store.max_marginal_relevance_search("a")
    with pytest.raises(InvalidInputError, match="as many vectors"):
        FaissPassageStore.from_index(index, passages[:3], embedding)


def test_the_cpu_build_says_what_to_install(store: FaissPassageStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(faiss, "StandardGpuResources", raising=False)
    with pytest.raises(UnsupportedHardwareError, match="pip uninstall -y faiss-cpu"):
        store.to_gpu()
    store.to_cpu()
    assert len(store.similarity_search("q", k=3)) == 3


class FakeGpuIndex:
    """Searches like the index it was made of, and can no more be written than a real one."""

    def __init__(self, index: Any) -> None:
        self.cpu = index
        self.d, self.ntotal = index.d, index.ntotal

    def search(self, vectors: Any, k: int) -> Any:
        return self.cpu.search(vectors, k)


@pytest.fixture
def fake_gpu(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    calls: list[str] = []

    def to_gpu(resources: Any, device: int, index: Any) -> FakeGpuIndex:
        calls.append(f"to_gpu {device}")
        return FakeGpuIndex(index)

    def to_cpu(index: FakeGpuIndex) -> Any:
        calls.append("to_cpu")
        return index.cpu

    monkeypatch.setattr(faiss, "StandardGpuResources", object, raising=False)
    monkeypatch.setattr(faiss, "get_num_gpus", lambda: 1, raising=False)
    monkeypatch.setattr(faiss, "GpuIndex", FakeGpuIndex, raising=False)
    monkeypatch.setattr(faiss, "index_cpu_to_gpu", to_gpu, raising=False)
    monkeypatch.setattr(faiss, "index_gpu_to_cpu", to_cpu, raising=False)
    return calls


def test_an_index_on_a_gpu_is_converted_before_it_is_saved(
    store: FaissPassageStore, embedding: Embeddings, tmp_path: Path, fake_gpu: list[str]
) -> None:
    before = store.search_batch(["a"], 3)
    assert store.to_gpu() is store
    assert store.search_batch(["a"], 3) == before
    folder = store.save(tmp_path / "from-gpu")
    assert "to_cpu" in fake_gpu
    assert isinstance(store.index, FakeGpuIndex)  # the store itself stays where it is
    assert FaissPassageStore.load(folder, embedding).search_batch(["a"], 3) == before
    with pytest.raises(InvalidInputError, match="to_cpu"):
        store.delete(["p1"])
    store.to_cpu().delete(["p1"])
    with pytest.raises(UnsupportedHardwareError, match="GPU 3"):
        store.to_gpu(3)
