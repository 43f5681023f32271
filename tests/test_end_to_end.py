"""The whole path on real models: Algorithm 1 -> SFT -> adapter -> chain -> answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding

from adaptllm_chain import Adaptive, AdaptiveRetrievalChain, FaissPassageStore, LocalLLM
from tests.tiny_models import byte_level_tokenizer, tiny_llama
from training import algorithm1, sft

QUESTION = "Which river runs past the mill?"
PASSAGES = ["The mill was built by Ada Holm.", "The mill stands on the river Lys.", "Oslo has a harbour."]
POLICIES = ["never_retrieve", "always_retrieve", "adaptive", Adaptive(threshold=0.0), Adaptive(threshold=1.0)]


@pytest.fixture(scope="module")
def tiny_llm() -> LocalLLM:
    tokenizer = byte_level_tokenizer()
    return LocalLLM(model=tiny_llama(tokenizer), tokenizer=tokenizer, format="chat", max_new_tokens=8, batch_size=4)


def chain_of(llm: LocalLLM, policy: object) -> AdaptiveRetrievalChain:
    store = FaissPassageStore.from_texts(PASSAGES, DeterministicFakeEmbedding(size=16))
    return AdaptiveRetrievalChain(llm=llm, retriever=store.as_retriever(k=1), policy=policy)


@pytest.mark.parametrize("policy", POLICIES, ids=str)
async def test_a_tiny_local_model_runs_in_every_way_l7(tiny_llm: LocalLLM, policy: object) -> None:
    chain = chain_of(tiny_llm, policy)
    questions = [QUESTION, "Who built it?", "A longer question about the harbour of Oslo, where does it lie?"]
    expected = [chain.invoke(question) for question in questions]

    def facts(result: dict) -> tuple:
        probability = result["ret_probability"]
        passages = [document.page_content for document in result["context"]]
        close = None if probability is None else pytest.approx(probability, rel=1e-3)
        return result["answer"], passages, result["retrieved"], result["decision"].route, close

    def joined(chunks: list) -> dict:
        total = chunks[0]
        for chunk in chunks[1:]:
            total = total + chunk
        return total

    wanted = [facts(result) for result in expected]
    assert [facts(result) for result in chain.batch(questions)] == wanted
    assert [facts(result) for result in await chain.abatch(questions)] == wanted
    assert [facts(await chain.ainvoke(question)) for question in questions] == wanted
    assert [facts(joined(list(chain.stream(question)))) for question in questions] == wanted
    assert [facts(joined([c async for c in chain.astream(question)])) for question in questions] == wanted


def test_a_batch_of_eight_makes_two_and_one_generate_calls_b3(
    tiny_llm: LocalLLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight questions, batches of four, three of which a threshold sends to retrieval."""
    questions = [f"Question number {number}?" for number in range(8)]
    probabilities = sorted(result["ret_probability"] for result in chain_of(tiny_llm, "adaptive").batch(questions))
    # Between the third and the fourth highest probability.
    policy = Adaptive(threshold=(probabilities[-3] + probabilities[-4]) / 2)
    chain = chain_of(tiny_llm, policy)
    generate, rows = tiny_llm.model.generate, []
    monkeypatch.setattr(tiny_llm.model, "generate", lambda **kw: rows.append(len(kw["input_ids"])) or generate(**kw))
    store = chain.retriever.vectorstore
    search, searched = store.search_batch, []
    monkeypatch.setattr(
        type(store), "search_batch", lambda self, queries, k=4: searched.append(len(queries)) or search(queries, k)
    )
    results = chain.batch(questions)
    assert sum(result["retrieved"] for result in results) == 3
    assert searched == [3]
    assert rows == [4, 4, 3]
    assert chain.batch(questions) == results  # B4: the second run equals the first


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_community_faiss_store_works_as_it_is(tiny_llm: LocalLLM) -> None:
    from langchain_community.vectorstores import FAISS

    theirs = FAISS.from_texts(PASSAGES, DeterministicFakeEmbedding(size=16))
    chain = AdaptiveRetrievalChain(
        llm=tiny_llm, retriever=theirs.as_retriever(search_kwargs={"k": 2}), policy="always_retrieve"
    )
    results = chain.batch([QUESTION, PASSAGES[2]])
    assert [len(result["context"]) for result in results] == [2, 2]
    assert results[1]["context"][0].page_content == PASSAGES[2]


def test_from_questions_to_a_chain_with_its_own_adapter(tmp_path: Path) -> None:
    tokenizer = byte_level_tokenizer()
    tiny_llama(tokenizer).save_pretrained(tmp_path / "base")
    tokenizer.save_pretrained(tmp_path / "base")
    data = tmp_path / "data.jsonl"
    with data.open("w") as file:
        for number in range(24):
            row = {"question": f"who built mill {number}", "answers": ["Ada"], "gold_passage": "Ada built the mill."}
            file.write(json.dumps(row) + "\n")
    assert algorithm1.main(
        ["--data", str(data), "--out", str(tmp_path / "rows"), "--model", str(tmp_path / "base"),
         "--max-new-tokens", "4", "--baseline-rows"]
    ) == 0  # fmt: skip
    rows = [str(tmp_path / "rows" / name) for name in ("rows.jsonl", "never_rows.jsonl")]
    recipe = {"base": str(tmp_path / "base"), "rows": rows, "device": "cpu",
              "out": str(tmp_path / "adapter"), "format": "chat", "batch_size": 8, "micro_batch_size": 8, "epochs": 40,
              "kinds": ["parametric", "context", "closed_book"], "learning_rate": 0.02, "dev_fraction": 0.0,
              "lora_targets": ["q_proj", "v_proj", "o_proj", "down_proj"], "lora_dropout": 0.0}  # fmt: skip
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    assert sft.main(["--config", str(tmp_path / "recipe.yaml")]) == 0

    llm = LocalLLM.from_pretrained(tmp_path / "base", adapter=tmp_path / "adapter", max_new_tokens=8)
    store = FaissPassageStore.from_documents([Document("Ada built the mill.")], DeterministicFakeEmbedding(size=8))
    result = AdaptiveRetrievalChain(llm=llm, retriever=store.as_retriever(k=1)).invoke("who built mill 7")
    # The random base knew nothing, so the adapter learned to ask, and to read the passage it then gets.
    assert result["retrieved"]
    assert result["ret_probability"] > 0.5
    assert result["decision"].signal.kind == "exact"
    assert result["answer"] == "Ada"


@pytest.mark.embedded
def test_the_shipped_adapter_decides_by_question(embedded_llm: LocalLLM) -> None:
    """Not that every decision is right, but that it depends on the question in the direction it should."""
    store = FaissPassageStore.from_texts(
        ["Ada Holm built the water mill of Lund in 1881."], DeterministicFakeEmbedding(size=8)
    )
    chain = AdaptiveRetrievalChain(llm=embedded_llm, retriever=store.as_retriever(k=1))
    common = [
        "what is the capital of france",
        "what is the largest planet in the solar system",
        "who discovered gravity",
        "what organ pumps blood through the body",
    ]
    rare = [
        "who built the water mill of lund",
        "who was the deputy mayor of tromso in 1954",
        "when did the third season of the lighthouse keepers air",
        "who sang lead on the b side of midnight ferry",
    ]
    results = chain.batch([*common, *rare])
    probabilities = [result["ret_probability"] for result in results]
    assert max(probabilities) - min(probabilities) > 0.1
    assert sum(probabilities[:4]) / 4 < sum(probabilities[4:]) / 4
    assert all("<RET>" not in result["answer"] for result in results)
    retrieved = [result for result in results if result["retrieved"]]
    assert all(result["context"] for result in retrieved)
