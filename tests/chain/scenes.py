"""Ways to run a chain, and models and outputs to run it with."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableLambda

from adaptllm_chain.chain import AdaptiveRetrievalChain
from adaptllm_chain.testing import CountingRetriever, Reply, Script, ScriptedChatModel, ScriptedLLM, say

PASSAGES = [
    Document(page_content="Paris is the capital of France.", metadata={"title": "Paris"}),
    Document(page_content="Rome is not."),
]


def added(chunks: list[Any]) -> dict[str, Any]:
    total = chunks[0]
    for chunk in chunks[1:]:
        total = total + chunk
    return dict(total)


async def _astreamed(chain: Runnable[Any, Any], value: Any, **kwargs: Any) -> list[Any]:
    return [chunk async for chunk in chain.astream(value, **kwargs)]


# Every way of asking one question; each returns the result.
WAYS: dict[str, Callable[..., dict[str, Any]]] = {
    "invoke": lambda chain, value, **kwargs: chain.invoke(value, **kwargs),
    "batch": lambda chain, value, **kwargs: chain.batch([value], **kwargs)[0],
    "stream": lambda chain, value, **kwargs: added(list(chain.stream(value, **kwargs))),
    "ainvoke": lambda chain, value, **kwargs: asyncio.run(chain.ainvoke(value, **kwargs)),
    "abatch": lambda chain, value, **kwargs: asyncio.run(chain.abatch([value], **kwargs))[0],
    "astream": lambda chain, value, **kwargs: added(asyncio.run(_astreamed(chain, value, **kwargs))),
}


def all_ways(chain: Any, value: Any, **kwargs: Any) -> list[Any]:
    """Run a chain in all ways: the results, or the errors' types and texts."""
    results: list[Any] = []
    for way in WAYS.values():
        try:
            results.append(way(chain, value, **kwargs))
        except Exception as error:
            results.append((type(error), str(error)))
    return results


def as_function(script: Script) -> Runnable[Any, Any]:
    return RunnableLambda(lambda prompt: say(script, prompt).text)


# Every kind of model that a chain may be given.
MODELS: dict[str, Callable[[Script], Runnable[Any, Any]]] = {
    "llm": lambda script: ScriptedLLM(script=script),
    "chat": lambda script: ScriptedChatModel(script=script),
    "runnable": as_function,
    "retrying llm": lambda script: ScriptedLLM(script=script).with_retry(stop_after_attempt=1),
    "bound chat": lambda script: ScriptedChatModel(script=script).bind(extra=1),
    "bound llm": lambda script: ScriptedLLM(script=script).bind(extra=1).with_config(tags=["bound"]),
}


def script(
    first: str | Reply, *, context: str | Reply = "From the passage.", memory: str | Reply = "By heart."
) -> Script:
    """Say one thing to each of the three prompts."""
    return {"If you need help": first, "given the context C": context, "Answer the question Q. Q:": memory}


def make(
    said: Script | str | Reply = "<RET>", found: Any = PASSAGES, model: str = "llm", **settings: Any
) -> AdaptiveRetrievalChain:
    if isinstance(said, str | Reply):
        said = script(said)
    return AdaptiveRetrievalChain(llm=MODELS[model](said), retriever=CountingRetriever(documents=found), **settings)


def summary(result: Mapping[str, Any]) -> tuple[str, str, bool, int]:
    return result["answer"], result["decision"].route, result["retrieved"], len(result["context"])
