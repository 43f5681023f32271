"""What real servers said, read by LangChain's own clients: the decisions, in every way of asking."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import pytest
from langchain_core.runnables import Runnable

from tests.chain.scenes import WAYS
from tests.servers.agreement import chain_of
from tests.servers.record import KNOWN, UNKNOWN
from tests.servers.replay import FOLDER, replaying

pytestmark = pytest.mark.skipif(find_spec("langchain_openai") is None, reason="not installed: langchain-openai")

# By hand from the recordings: exp of the log-probability of "<" where the model answered, of the sum of those of "<",
# "RET" and ">" where it asked for retrieval.
PROBABILITIES = {
    "llama_cpp_chat": (0.0891, 0.8281),
    "llama_cpp_completions": (0.0891, 0.8281),
    "vllm_chat": (0.0962, 0.8451),
    "vllm_chat_token_ids": (0.0962, 0.8451),
    "vllm_completions": (0.0962, 0.8451),
}


def client(name: str) -> Runnable[Any, Any]:
    from langchain_openai import ChatOpenAI, OpenAI

    if "chat" in name:
        return ChatOpenAI(**replaying(name)).bind(logprobs=True, top_logprobs=5)
    return OpenAI(logprobs=5, **replaying(name))


def test_every_recording_is_read() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == set(PROBABILITIES)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", PROBABILITIES)
def test_decisions(name: str, way: str) -> None:
    ask: Callable[..., Any] = WAYS[way]
    known, unknown = PROBABILITIES[name]

    direct = ask(chain_of(client(name)), KNOWN)
    assert (direct["answer"], direct["decision"].route) == ("Paris", "direct")
    assert direct["decision"].signal.kind == "first_piece"
    assert direct["ret_probability"] == pytest.approx(known, abs=1e-4)

    retrieved = ask(chain_of(client(name)), UNKNOWN)
    assert (retrieved["answer"], retrieved["decision"].route) == ("2002", "retrieve")
    assert retrieved["decision"].signal.kind == "exact"
    assert retrieved["ret_probability"] == pytest.approx(unknown, abs=1e-4)


@pytest.mark.parametrize("name", PROBABILITIES)
def test_a_threshold_overrules_the_output(name: str) -> None:
    known, _ = PROBABILITIES[name]
    for threshold, route in ((known - 1e-3, "retrieve"), (known + 1e-3, "direct")):
        assert chain_of(client(name), threshold).invoke(KNOWN)["decision"].route == route
