"""The chain around vLLM on the CPU: the embedded model as its base, the shipped adapter as plain LoRA over it.

Where its environment is missing this is skipped; ``make servers-vllm`` makes it and runs this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from langchain_core.runnables import Runnable, RunnableLambda

from adaptllm_chain.llms.embedded import embedded_adapter
from adaptllm_chain.llms.loading import load_model
from adaptllm_chain.publishing.adapter_files import read_adapter
from adaptllm_chain.publishing.vllm import serve_command
from tests.servers.agreement import QUESTIONS, chain_of, check_decisions, check_thresholds, check_ways
from tests.servers.clients import chat, completions
from tests.servers.environments import needs, python_of
from tests.servers.process import Server, vllm
from tests.servers.record import KNOWN, UNKNOWN, smollm2_chat

pytestmark = [pytest.mark.embedded, needs("vllm")]

# Both compute in float32; P of the first piece stands in for that of the whole marker.
TOLERANCE = 0.05
# "<" in the vocabulary of SmolLM2, with which it begins the marker.
FIRST_PIECE = 44


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    python = python_of("vllm")
    assert python is not None
    folder = tmp_path_factory.mktemp("vllm")
    base = load_model("embedded")
    base.model.save_pretrained(folder / "base")
    base.tokenizer.save_pretrained(folder / "base")
    files = read_adapter(embedded_adapter(), str(folder / "base"))
    server = vllm(python, serve_command(files, "smollm2-nq"), folder / "log")
    try:
        server.start()
        yield server
    finally:
        server.kill()


def chat_llm(url: str) -> Runnable[Any, Any]:
    return chat(url, "smollm2-nq", max_tokens=16)


def chat_llm_that_lists_the_marker(url: str) -> Runnable[Any, Any]:
    return chat(url, "smollm2-nq", max_tokens=16, extra_body={"logprob_token_ids": [FIRST_PIECE]})


def completions_llm(url: str) -> Runnable[Any, Any]:
    return RunnableLambda(smollm2_chat) | completions(url, "smollm2-nq")


@pytest.fixture(
    params=[chat_llm, chat_llm_that_lists_the_marker, completions_llm], ids=["chat", "token ids", "completions"]
)
def make_llm(request: pytest.FixtureRequest, server: Server) -> Callable[[], Runnable[Any, Any]]:
    return partial(request.param, server.url)


def test_it_decides_as_the_model_loaded_here(make_llm: Any, local: list[Any]) -> None:
    check_decisions(make_llm(), local, TOLERANCE)


@pytest.mark.parametrize(("question", "answer"), [(KNOWN, "Paris"), (UNKNOWN, "2002")])
def test_every_way_of_asking_gives_the_same(make_llm: Any, question: str, answer: str) -> None:
    check_ways(make_llm, question, answer, same=1e-2)


def test_a_higher_threshold_never_retrieves_more(make_llm: Any) -> None:
    check_thresholds(make_llm())


def test_the_markers_first_piece_is_listed_whatever_its_rank(server: Server) -> None:
    results = chain_of(chat_llm_that_lists_the_marker(server.url)).batch(QUESTIONS)
    assert {result["decision"].signal.kind for result in results} <= {"exact", "first_piece"}
