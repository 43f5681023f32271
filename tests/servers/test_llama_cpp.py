"""The chain around llama.cpp's OpenAI-compatible server, with the embedded model and the shipped adapter as GGUF.

Where its environment is missing this is skipped; ``make servers`` makes it and runs this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from langchain_core.runnables import Runnable, RunnableLambda

from adaptllm_chain.llms.embedded import EMBEDDED, gguf_file
from adaptllm_chain.publishing.gguf import export_gguf, export_gguf_adapter
from adaptllm_chain.publishing.llama_cpp import LlamaCpp
from tests.servers.agreement import check_decisions, check_thresholds, check_ways
from tests.servers.clients import chat, completions
from tests.servers.environments import needs, python_of
from tests.servers.process import Server, llama_cpp
from tests.servers.record import KNOWN, UNKNOWN, smollm2_chat

pytestmark = [pytest.mark.embedded, needs("llamacpp")]

# llama.cpp multiplies the 4-bit weights with activations of 8 bits, LocalLLM the same weights with those of 32. The
# largest difference that was measured is .06, and P of the first piece stands in for that of the whole marker.
TOLERANCE = 0.1


@pytest.fixture(scope="module", params=["adapter over its base", "merged"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    python, base = python_of("llamacpp"), gguf_file(EMBEDDED)
    assert python is not None
    assert base is not None
    folder = tmp_path_factory.mktemp("gguf")
    converter = LlamaCpp.find(python.parents[1] / "llama.cpp")
    if request.param == "merged":
        server = llama_cpp(python, export_gguf(EMBEDDED, folder / "merged", converter), folder / "log")
    else:
        lora = export_gguf_adapter(EMBEDDED, folder / "adapter", converter)
        server = llama_cpp(python, base, folder / "log", lora=lora)
    try:
        server.start()
        yield server
    finally:
        server.kill()


# By default this server makes every token of the prompt less probable, "<" of "<RET>" among them.
FAITHFUL = {"repeat_penalty": 1.0}


def chat_llm(url: str) -> Runnable[Any, Any]:
    # Nor does it know max_completion_tokens, which is what ChatOpenAI makes of max_tokens.
    return chat(url, "served", extra_body={"max_tokens": 16, **FAITHFUL})


def completions_llm(url: str) -> Runnable[Any, Any]:
    # It takes one prompt a request.
    llm = completions(url, "served", batch_size=1)
    return RunnableLambda(smollm2_chat) | llm.bind(extra_body=FAITHFUL)


@pytest.fixture(params=[chat_llm, completions_llm], ids=["chat", "completions"])
def make_llm(request: pytest.FixtureRequest, server: Server) -> Callable[[], Runnable[Any, Any]]:
    return partial(request.param, server.url)


def test_it_decides_as_the_model_loaded_here(make_llm: Any, local: list[Any]) -> None:
    check_decisions(make_llm(), local, TOLERANCE)


@pytest.mark.parametrize(("question", "answer"), [(KNOWN, "Paris"), (UNKNOWN, "2002")])
def test_every_way_of_asking_gives_the_same(make_llm: Any, question: str, answer: str) -> None:
    # What is cached of a prompt is computed in other portions.
    check_ways(make_llm, question, answer, same=1e-2)


def test_a_higher_threshold_never_retrieves_more(make_llm: Any) -> None:
    check_thresholds(make_llm())
