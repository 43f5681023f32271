"""What the snippets of the documentation stand on: stand-ins for models that would be loaded or reached, and files."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import Embeddings
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from adaptllm_chain import AdaptiveRetrievalChain, FaissPassageStore
from adaptllm_chain.testing import CountingRetriever, Reply, ScriptedChatModel, ScriptedLLM

FALKIRK = "The Falkirk Wheel was opened in 2002."
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def says(prompt: str) -> Reply:
    """Say what the embedded model says, with the probabilities that it gives."""
    if "was it opened" in prompt:
        return Reply("When was the Falkirk Wheel opened?")
    if "given the context" in prompt or "Passage:" in prompt:
        return Reply("2002")
    if "capital of France" in prompt:
        return Reply("Paris", info={"ret_probability": 0.10, "ret_probability_kind": "exact"})
    return Reply("<RET>", info={"ret_probability": 0.85, "ret_probability_kind": "exact"})


class LetterCounts(Embeddings):
    """How often each letter stands in a text."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        counts = Counter(text.lower())
        return [float(counts[letter]) for letter in LETTERS]


class CallsATool(ScriptedChatModel):
    """A chat model that calls the tool it was given, and then says what it answered."""

    tool: str = ""

    def bind_tools(self, tools: Any, **kwargs: Any) -> CallsATool:
        return self.model_copy(update={"tool": tools[0].name})

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        last = messages[-1]
        call = {"name": self.tool, "args": {"question": str(last.text)}, "id": "1"}
        reply = AIMessage(f"It was opened in {last.text}.") if last.type == "tool" else AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=reply)])


def scripted_chain() -> AdaptiveRetrievalChain:
    return AdaptiveRetrievalChain(llm=ScriptedLLM(script=says), retriever=CountingRetriever(documents=[FALKIRK]))


def client_of_service(chain: AdaptiveRetrievalChain, api_key: str) -> Any:
    """The service, reached without a network."""
    from fastapi.testclient import TestClient

    from adaptllm_chain.serve import ServerSettings, create_app

    return TestClient(create_app(chain, ServerSettings(api_key=api_key)))


def set_stage(page: str, folder: Path, patch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Put stand-ins in place of what a page would load or reach, and make the files that it reads.

    Args:
        page: The text of the page.
        folder: A new folder, which becomes the working directory.
        patch: What puts the stand-ins in place, and takes them away again.

    Returns:
        The names that pages take for granted, and say so: ``llm``, ``retriever``, ``chain`` and the like.
    """
    patch.chdir(folder)
    patch.setenv("ADAPTLLM_API_KEY", "the-key")
    documents = folder / "documents"
    documents.mkdir()
    (documents / "wheel.txt").write_text(FALKIRK, encoding="utf-8")
    (documents / "boiler.md").write_text("# Boiler\n\nAda looks after the boiler.\n", encoding="utf-8")
    FaissPassageStore.from_texts([FALKIRK], LetterCounts()).save(folder / "wikipedia-index")

    chain = scripted_chain()
    llm, found = chain.llm, chain.retriever
    for home, name, stand_in in _stand_ins(llm, chain):
        # What a page does not name need not be imported for it.
        if name.split(".")[0] in page:
            patch.setattr(_owner(home, name), name.split(".")[-1], stand_in)
    names: dict[str, Callable[[], Any]] = {
        "llm": lambda: llm,
        "retriever": lambda: found,
        "chain": lambda: chain,
        "citing_llm": lambda: ScriptedLLM(script=lambda prompt: "The Falkirk Wheel was opened in 2002 [1]."),
        "chat_model": lambda: ScriptedChatModel(script=says),
        "tool_calling_model": lambda: CallsATool(script=says),
        "decision_model": lambda: _decision_model(llm),
        "embed_model": _embed_model,
    }
    return {name: make() for name, make in names.items() if name in page}


def _stand_ins(llm: Any, chain: AdaptiveRetrievalChain) -> list[tuple[str, str, Callable[..., Any]]]:
    def letter_counts(*args: Any, **kwargs: Any) -> LetterCounts:
        return LetterCounts()

    def openai_client(**settings: Any) -> Any:
        from openai import Client  # the same class under its other name

        return Client(**settings, http_client=client_of_service(chain, settings["api_key"]))

    return [
        ("adaptllm_chain.llms", "LocalLLM.from_pretrained", lambda *args, **kwargs: llm),
        ("adaptllm_chain.retrieval.embeddings", "embedded_embeddings", letter_counts),
        ("adaptllm_chain.retrieval", "ContrieverEmbeddings.from_pretrained", letter_counts),
        ("adaptllm_chain.retrieval", "FaissPassageStore.to_gpu", lambda store: store),
        (
            "adaptllm_chain.llms.decision_pipeline",
            "TransformersDecisionModel.from_pretrained",
            lambda *args, **kwargs: _decision_model(llm),
        ),
        ("langchain_openai", "ChatOpenAI", lambda **settings: ScriptedChatModel(script=says)),
        ("openai", "OpenAI", openai_client),
    ]


def _owner(home: str, name: str) -> Any:
    """The module or class whose attribute a dotted name is."""
    owner: Any = importlib.import_module(home)
    for part in name.split(".")[:-1]:
        owner = getattr(owner, part)
    return owner


def _decision_model(llm: Any) -> Any:
    from adaptllm_chain.chain.ret_decision_model import RetDecisionModel

    return RetDecisionModel(llm=llm)


def _embed_model() -> Any:
    from tests.test_llama_index import WordCounts

    return WordCounts()
