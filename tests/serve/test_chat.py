"""OpenAI's interface, used with OpenAI's own client."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, OpenAI
from pydantic import Field

from adaptllm_chain.testing import Reply, ScriptedLLM
from tests.serve.scenes import (
    BROKEN,
    FRANCE,
    MILL,
    SECRET,
    client_of,
    events_of,
    make_app,
    make_chain,
    reply,
    send,
    served,
)

KEY = "s3cret"
MODEL = "the model"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served(make_app(model=MODEL, api_key=KEY, batch_wait_ms=1)) as address:
        yield address


@pytest.fixture
def client(address: str) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{address}/v1", api_key=KEY, max_retries=0) as client:
        yield client


def user(text: Any) -> list[Any]:
    return [{"role": "user", "content": text}]


def test_models(client: OpenAI) -> None:
    (model,) = client.models.list().data
    assert (model.id, model.object) == (MODEL, "model")
    assert client.models.retrieve(MODEL) == model
    with pytest.raises(openai.NotFoundError, match="there is no model 'another/one'"):
        client.models.retrieve("another/one")


def test_completion(client: OpenAI) -> None:
    completion = client.chat.completions.create(model=MODEL, messages=user(MILL))
    (choice,) = completion.choices
    assert (choice.message.role, choice.message.content, choice.finish_reason) == (
        "assistant",
        "Ada Holm in 1881",
        "stop",
    )
    assert (completion.model, completion.object) == (MODEL, "chat.completion")
    # The parametric prompt and the one with the context: 20 + 30 tokens read, 2 + 4 written.
    assert completion.usage is not None
    assert completion.usage.model_dump(exclude_none=True) == {
        "prompt_tokens": 50,
        "completion_tokens": 6,
        "total_tokens": 56,
    }
    evidence: Any = completion.adaptllm  # type: ignore[attr-defined]
    assert evidence["route"] == "retrieve"
    assert evidence["context"][0]["marks"] == [[32, 49]]
    assert evidence["ignored"] == []


async def test_asynchronously(address: str) -> None:
    async with AsyncOpenAI(base_url=f"{address}/v1", api_key=KEY, max_retries=0) as client:
        completion = await client.chat.completions.create(model=MODEL, messages=user(FRANCE))
        assert completion.choices[0].message.content == "Paris"
        stream = await client.chat.completions.create(model=MODEL, messages=user(FRANCE), stream=True)
        pieces = [chunk.choices[0].delta.content or "" async for chunk in stream]
    assert "".join(pieces) == "Paris"


def test_stream(client: OpenAI) -> None:
    chunks = list(client.chat.completions.create(model=MODEL, messages=user(MILL), stream=True))
    assert len({chunk.id for chunk in chunks}) == 1
    assert {chunk.object for chunk in chunks} == {"chat.completion.chunk"}
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[0].adaptllm["decision"]["reason"] == "the model asked for retrieval"  # type: ignore[attr-defined]
    assert [chunk.choices[0].delta.content for chunk in chunks[1:-1]] == ["Ada", " Holm", " in", " 1881"]
    assert [chunk.choices[0].finish_reason for chunk in chunks] == [None] * (len(chunks) - 1) + ["stop"]
    assert chunks[-1].adaptllm["context"][0]["title"] == "Lindow"  # type: ignore[attr-defined]


def test_stream_helper(client: OpenAI) -> None:
    """The client's own way of adding chunks up."""
    with client.chat.completions.stream(model=MODEL, messages=user(MILL)) as stream:
        completion = stream.get_final_completion()
    assert completion.choices[0].message.content == "Ada Holm in 1881"


def test_end_of_a_stream() -> None:
    body = {"model": "adaptllm", "messages": user(FRANCE), "stream": True}
    events = events_of(send(make_app(), "POST", "/v1/chat/completions", json=body).text)
    assert events[-1] == (None, "[DONE]")


def test_usage_of_a_stream() -> None:
    """It is told if it is known, and asked for."""

    def counting(prompt: str) -> Reply:
        return Reply("Paris", chunks=("Paris",), info={"prompt_tokens": 3, "completion_tokens": 1})

    bodies = [{"stream_options": {"include_usage": include}} for include in (True, False)]
    found = []
    for chain in (make_chain(ScriptedLLM(script=counting)), make_chain(ScriptedLLM(script=lambda prompt: "Paris"))):
        for more in bodies:
            body = {"model": "adaptllm", "messages": user(FRANCE), "stream": True, **more}
            events = events_of(send(make_app(chain), "POST", "/v1/chat/completions", json=body).text)
            found.append([data["usage"]["total_tokens"] for _, data in events[:-1] if data.get("usage")])
    assert found == [[4], [], [], []]


def test_usage_that_is_not_known() -> None:
    chain = make_chain(ScriptedLLM(script=lambda prompt: "Paris"))
    body = {"model": "adaptllm", "messages": user(FRANCE)}
    assert send(make_app(chain), "POST", "/v1/chat/completions", json=body).json()["usage"] is None


@pytest.mark.parametrize(
    "messages",
    [
        user(FRANCE),
        [{"role": "system", "content": "Be brief."}, *user(MILL), {"role": "assistant", "content": "?"}, *user(FRANCE)],
        [*user(FRANCE), {"role": "assistant", "content": "P"}],
        user([{"type": "text", "text": FRANCE}]),
    ],
)
def test_the_last_message_of_the_user_is_the_question(client: OpenAI, messages: list[Any]) -> None:
    completion = client.chat.completions.create(model=MODEL, messages=messages)
    assert completion.choices[0].message.content == "Paris"


@pytest.mark.parametrize(
    "parameters",
    [
        {"n": 1},
        {"temperature": 0},
        {"temperature": 0.7, "top_p": 0.9, "seed": 1, "user": "me"},
        {"tools": [], "tool_choice": "none", "response_format": {"type": "text"}, "logprobs": False},
        {"stop": None, "max_tokens": None},
        {"stop": ["x" * 100] * 4},
        {"extra_body": {"adaptllm": None}},
    ],
)
def test_parameters_that_make_no_difference(client: OpenAI, parameters: dict[str, Any]) -> None:
    completion = client.chat.completions.create(model=MODEL, messages=user(FRANCE), **parameters)
    assert completion.choices[0].message.content == "Paris"
    said: Any = completion.adaptllm  # type: ignore[attr-defined]
    assert said["ignored"] == sorted({"temperature", "top_p", "seed", "user"} & set(parameters))


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"n": 2}, "n=2 is not supported"),
        ({"n": 0}, "n=0 is not supported"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools="),
        ({"response_format": {"type": "json_object"}}, "response_format="),
        ({"logprobs": True}, "logprobs=True"),
        ({"max_tokens": 5}, "takes no limit"),
        ({"max_completion_tokens": 5}, "takes no limit"),
        ({"max_tokens": 0}, "max_tokens=0"),
        ({"stop": [""]}, "stop=['']"),
        ({"stop": 5}, "stop=5"),
        ({"stop": ["x"] * 5}, "stop=['x', "),
        ({"stop": "x" * 101}, "stop='xxx"),
        ({"messages": []}, "messages=[]"),
        ({"messages": [{"role": "system", "content": "?"}]}, "no message from the user"),
        ({"messages": user("")}, "is empty"),
        ({"messages": user([])}, "the user's last message is []"),
        ({"messages": user([{"type": "image_url", "image_url": {"url": "x"}}])}, "parts of the type 'text'"),
        ({"messages": user("x" * 2001)}, "2001 characters"),
        ({"extra_body": {"adaptllm": {"mode": "sometimes"}}}, "mode='sometimes'"),
        ({"extra_body": {"adaptllm": {"mood": "adaptive"}}}, "adaptllm has no setting 'mood'"),
        ({"extra_body": {"adaptllm": {"threshold": -1}}}, "adaptllm.threshold=-1"),
        ({"extra_body": {"adaptllm": ["adaptive"]}}, "adaptllm=['adaptive']"),
        ({"messages": [*user(FRANCE), {"role": "user", "content": 5}]}, "messages[1].content=5"),
        ({"messages": [{"content": FRANCE}]}, "messages[0] needs role"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_what_is_not_supported_is_said_to_be(
    client: OpenAI, parameters: dict[str, Any], problem: str, *, stream: bool
) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        client.chat.completions.create(**{"model": MODEL, "messages": user(FRANCE), "stream": stream, **parameters})
    assert problem in raised.value.message
    assert raised.value.type == "invalid_request_error"


def test_the_chain_can_be_told_how_to_answer(client: OpenAI) -> None:
    extra = {"adaptllm": {"mode": "always_retrieve"}}
    completion = client.chat.completions.create(model=MODEL, messages=user(FRANCE), extra_body=extra)
    assert completion.choices[0].message.content == "Ada Holm in 1881"


def test_another_model(client: OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="there is no model 'gpt'") as raised:
        client.chat.completions.create(model="gpt", messages=user(FRANCE))
    assert raised.value.code == "model_not_found"


def test_another_key(address: str) -> None:
    with OpenAI(base_url=f"{address}/v1", api_key="wrong", max_retries=0) as client:
        with pytest.raises(openai.AuthenticationError, match="the API key is wrong"):
            client.models.list()
        with pytest.raises(openai.AuthenticationError, match="Authorization: Bearer KEY"):
            client.chat.completions.create(model=MODEL, messages=user(FRANCE))


def test_a_model_that_fails(client: OpenAI, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(openai.InternalServerError, match="the model or the retriever failed") as raised:
        client.chat.completions.create(model=MODEL, messages=user(BROKEN))
    assert raised.value.status_code == 502
    with pytest.raises(openai.APIError, match="the model or the retriever failed"):
        list(client.chat.completions.create(model=MODEL, messages=user(BROKEN), stream=True))
    assert SECRET in caplog.text


@pytest.mark.parametrize("stream", [False, True])
def test_stop(*, stream: bool) -> None:
    """Case L4; the chain's own stops still hold."""
    said = "Paris\nQ: next"
    chain = make_chain(ScriptedLLM(script=lambda prompt: Reply(said, chunks=("Paris\nQ", ": next"))), stop=["next"])
    found = []
    for stop in (None, "\n", ["\n"], [":"]):
        body = {"model": "adaptllm", "messages": user(FRANCE), "stop": stop, "stream": stream}
        response = send(make_app(chain), "POST", "/v1/chat/completions", json=body)
        if stream:
            chunks = [data["choices"][0]["delta"] for _, data in events_of(response.text)[:-1]]
            found.append("".join(chunk.get("content", "") for chunk in chunks))
        else:
            found.append(response.json()["choices"][0]["message"]["content"])
    assert found == ["Paris\nQ:", "Paris", "Paris", "Paris\nQ"]


async def test_answers_that_end_alike_are_batched_whatever_else_they_wish() -> None:
    llm = ScriptedLLM(script=reply)
    app = make_app(make_chain(llm), batch_size=2, batch_wait_ms=600_000)
    wishes: list[dict[str, Any]] = [
        {"stop": "."},
        {},
        {"adaptllm": {"threshold": 0.5, "k": 2}},
        {"stop": ["."], "adaptllm": {"mode": "always_retrieve"}},
    ]
    async with client_of(app) as client:
        body = {"model": "adaptllm", "messages": user(FRANCE)}
        await asyncio.gather(*(client.post("/v1/chat/completions", json={**body, **wish}) for wish in wishes))
    # The first and the last, of which one retrieves: its passages are searched for before anything is asked.
    assert sorted(len(prompts) for prompts in llm.calls) == [2, 2]


class LimitedLLM(ScriptedLLM):
    """A model with a limit that a call can lower, as ``LocalLLM`` is one."""

    max_new_tokens: int = 48
    limits: list[Any] = Field(default_factory=list, exclude=True)

    def _generate(self, prompts: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
        self.limits.append(kwargs.get("max_new_tokens"))
        return super()._generate(prompts, stop, run_manager)


def test_max_tokens() -> None:
    llm = LimitedLLM(script=reply)
    app = make_app(make_chain(llm))
    for more in ({}, {"max_tokens": 5}, {"max_tokens": 48}, {"max_tokens": 9, "max_completion_tokens": 7}):
        body = {"model": "adaptllm", "messages": user(FRANCE), **more}
        assert send(app, "POST", "/v1/chat/completions", json=body).status_code == 200
    # The server's own limit is not lifted.
    assert llm.limits == [None, 5, None, 7]
