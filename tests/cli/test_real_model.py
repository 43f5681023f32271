"""The whole way with real, tiny models: files to index to answers, both saved in folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from adaptllm_chain.cli import embedder_loading
from tests.cli.conftest import Run
from tests.tiny_models import byte_level_tokenizer, tiny_llama


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "llama"
    tokenizer = byte_level_tokenizer()
    tiny_llama(tokenizer).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def encoder_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder = tmp_path_factory.mktemp("models") / "encoder"
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "mill", "lamp", "was", "built", "in", "at"]
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    BertModel(config).save_pretrained(folder)
    BertTokenizerFast(vocab={word: place for place, word in enumerate(vocabulary)}).save_pretrained(folder)
    return folder


def test_end_to_end(run: Run, articles: Path, model_folder: Path, encoder_folder: Path, tmp_path: Path) -> None:
    index = tmp_path / "index"
    ran = run("index", articles, "--out", index, "--embeddings", encoder_folder, "--device", "cpu")
    assert ran.code == 0
    # The index says which embedder it needs.
    common = ["ask", "--index", index, "--model", model_folder, "--device", "cpu", "--json", "--max-new-tokens", 4]
    ran = run(*common, "Who built the mill?", "When was the lamp lit?", "--threshold", "0")
    assert ran.code == 0
    assert [row["retrieved"] for row in ran.rows] == [True, True]
    assert all(0 < row["ret_probability"] < 1 for row in ran.rows)
    assert all(row["decision"]["signal"]["kind"] == "exact" for row in ran.rows)
    assert all(row["context"][0]["text"] for row in ran.rows)
    alone = run(*common, "Who built the mill?", "--threshold", "0").rows[0]
    assert alone["answer"] == ran.rows[0]["answer"]
    never = run(*common, "Who built the mill?", "--mode", "never_retrieve")
    assert (never.code, never.rows[0]["retrieved"], never.rows[0]["context"]) == (0, False, [])


def test_a_prompt_that_is_too_long_fails_alone(run: Run, model_folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "q.txt"
    file.write_text("Who built the mill?\n" + "why " * 800 + "\nWho?\n")
    common = ("--mode", "never_retrieve", "--max-new-tokens", 3, "--device", "cpu", "--json")
    ran = run("ask", "--file", file, "--model", model_folder, *common)
    assert ran.code == 1
    assert [row["input"] for row in ran.rows] == ["Who built the mill?", "Who?"]
    assert "line 2: the prompt has" in ran.err


def test_quantising_without_a_gpu(run: Run, model_folder: Path) -> None:
    ran = run("ask", "q", "--model", model_folder, "--mode", "never_retrieve", "--load-in", "8bit", "--device", "cpu")
    assert ran.code == 2
    assert "NVIDIA GPU" in ran.err


def test_no_such_model(run: Run) -> None:
    ran = run("ask", "q", "--model", "/no/such/model", "--mode", "never_retrieve")
    assert ran.code == 2
    assert "/no/such/model" in ran.err


def test_names_of_embedders(encoder_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from adaptllm_chain.retrieval import embeddings

    seen = []

    class Loaded:
        name = ""

    for kind in ("ContrieverEmbeddings", "SentenceEmbeddings"):
        monkeypatch.setattr(
            getattr(embeddings, kind),
            "from_pretrained",
            lambda model, kind=kind, **_: seen.append((kind, model)) or Loaded(),
        )
    monkeypatch.setattr(embeddings, "embedded_embeddings", lambda **_: seen.append("embedded"))
    (tmp_path / "modules.json").write_text("[]")
    loaded = [
        embedder_loading.load_embedder(name)
        for name in (
            *("embedded", "all-MiniLM-L6-v2", "contriever", "facebook/contriever", "org/sentence-model"),
            *(str(encoder_folder), str(tmp_path)),
        )
    ]
    assert seen == [
        *("embedded", "embedded"),
        ("ContrieverEmbeddings", "facebook/contriever-msmarco"),
        ("ContrieverEmbeddings", "facebook/contriever"),
        ("SentenceEmbeddings", "org/sentence-model"),
        ("ContrieverEmbeddings", str(encoder_folder)),
        ("SentenceEmbeddings", str(tmp_path)),
    ]
    assert loaded[-1].name == str(tmp_path.resolve())
