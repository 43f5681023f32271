"""The chain around ``transformers serve``, which reports no log-probabilities whatever it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from adaptllm_chain import AdaptiveRetrievalChain, LocalLLM
from adaptllm_chain.errors import MissingLogprobsError
from adaptllm_chain.ret import Adaptive
from adaptllm_chain.testing import CountingRetriever
from tests.chain.scenes import WAYS, summary
from tests.servers.clients import chat, completions
from tests.servers.process import Server, transformers_serve
from tests.servers.taught import KNOWN, PASSAGE, UNKNOWN, write_taught

MISSING = [name for name in ("langchain_openai", "fastapi", "uvicorn") if find_spec(name) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)} (pip install -e '.[test]')")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_taught(tmp_path_factory.mktemp("taught") / "model")


@pytest.fixture(scope="module")
def server(model: Path) -> Iterator[Server]:
    server = transformers_serve(model, model.with_name("log"))
    try:
        server.start()
        yield server
    finally:
        server.kill()


def chain_of(llm: Any, **settings: Any) -> AdaptiveRetrievalChain:
    return AdaptiveRetrievalChain(llm=llm, retriever=CountingRetriever(documents=[PASSAGE]), **settings)


def served(server: Server, model: Path) -> Any:
    return chat(server.url, str(model), max_tokens=16)


def test_every_way_of_asking_decides_and_answers_as_the_model_loaded_here(server: Server, model: Path) -> None:
    local = chain_of(LocalLLM.from_pretrained(model, max_new_tokens=16))
    expected = [summary(local.invoke(question)) for question in (KNOWN, UNKNOWN)]
    assert expected == [("Paris it is.", "direct", False, 0), ("Ada Holm, 1881", "retrieve", True, 1)]
    for way, ask in WAYS.items():
        before = server.asked()
        results = [ask(chain_of(served(server, model)), question) for question in (KNOWN, UNKNOWN)]
        assert list(map(summary, results)) == expected, way
        assert server.asked() - before == 3, way  # one for the answer from memory, two for the other
        for result in results:
            assert result["ret_probability"] is None
            assert result["decision"].rule == "token"


def test_an_answer_comes_in_pieces_without_any_of_the_marker(server: Server, model: Path) -> None:
    for question in (KNOWN, UNKNOWN):
        chunks = list(chain_of(served(server, model)).stream(question))
        pieces = [chunk["answer"] for chunk in chunks if "answer" in chunk]
        assert len(pieces) > 1
        assert not any(part in piece for piece in pieces for part in ("<", "RET", ">"))


@pytest.mark.parametrize("way", WAYS)
def test_a_threshold_is_refused_with_the_way_out(server: Server, model: Path, way: str) -> None:
    chain = chain_of(served(server, model), policy=Adaptive(threshold=0.5))
    with pytest.raises(MissingLogprobsError) as caught:
        WAYS[way](chain, KNOWN)
    assert "policy=Adaptive()" in str(caught.value)
    assert chain.retriever.queries == []


def test_the_marker_comes_out_of_the_completions_too(server: Server, model: Path) -> None:
    from langchain_core.runnables import RunnableLambda
    from transformers import AutoTokenizer

    from adaptllm_chain.prompts import frame

    tokenizer = AutoTokenizer.from_pretrained(model)

    def framed(prompt: str) -> str:
        return frame(
            "chat",
            prompt,
            lambda messages: str(tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)),
        ).text

    # This server takes no list of prompts, which the client sends unless it streams.
    llm = completions(server.url, str(model), streaming=True, batch_size=1)
    chain = chain_of(RunnableLambda(framed) | llm)
    assert [summary(chain.invoke(question))[:2] for question in (KNOWN, UNKNOWN)] == [
        ("Paris it is.", "direct"),
        ("Ada Holm, 1881", "retrieve"),
    ]
