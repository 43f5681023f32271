"""LangChain's clients of OpenAI's protocol, as a user makes them."""

from __future__ import annotations

from typing import Any

from langchain_core.runnables import Runnable

COMMON = {"api_key": "none", "temperature": 0, "max_retries": 0}


def own_connections() -> dict[str, Any]:
    """Connections that end with each reply: those that langchain-openai keeps are of no use in the next event loop."""
    import httpx2

    settings = {"timeout": 300, "limits": httpx2.Limits(max_keepalive_connections=0)}
    return {"http_client": httpx2.Client(**settings), "http_async_client": httpx2.AsyncClient(**settings)}


def chat(url: str, model: str, **bound: Any) -> Runnable[Any, Any]:
    """A chat model that is asked for five log-probabilities a position."""
    from langchain_openai import ChatOpenAI

    llm = ChatOpenAI(base_url=url, model=model, **COMMON, **own_connections())
    return llm.bind(logprobs=True, top_logprobs=5, **bound)


def completions(url: str, model: str, **settings: Any) -> Runnable[Any, Any]:
    """An LLM that is asked for five log-probabilities a position."""
    from langchain_openai import OpenAI

    return OpenAI(base_url=url, model=model, max_tokens=16, logprobs=5, **COMMON, **own_connections(), **settings)
