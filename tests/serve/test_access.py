"""Who may ask, how many at a time, and what becomes of those who leave."""

from __future__ import annotations

import asyncio

import pytest

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.serve import ServerSettings
from tests.serve.scenes import (
    FRANCE,
    MILL,
    EndlessLLM,
    HeldLLM,
    RawClient,
    ask,
    client_of,
    make_app,
    make_chain,
    reply,
    send,
)

KEY = "s3cret-key"
OPEN = [("GET", "/health"), ("GET", "/settings"), ("GET", "/"), ("GET", "/page/page.js")]
KEPT = [("POST", "/ask"), ("POST", "/v1/chat/completions"), ("GET", "/v1/models"), ("GET", "/metrics")]


@pytest.mark.parametrize(("method", "path"), KEPT)
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer "},
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Basic {KEY}"},
        {"Authorization": f"Bearer {KEY}x"},
        {"Authorization": f"Bearer {KEY[:-1]}"},
        {"Authorization": b"Bearer \xe9\xff"},
        {"X-Api-Key": KEY},
    ],
)
def test_without_the_key(method: str, path: str, headers: dict[str, str]) -> None:
    response = send(make_app(api_key=KEY), method, path, headers=headers)
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == "Bearer"
    error = response.json()["error"]
    assert (error["type"], error["code"]) == ("authentication_error", "invalid_api_key")
    assert error["expected"] == "the header Authorization: Bearer KEY"
    assert "ADAPTLLM_API_KEY" in error["hint"]
    assert KEY not in response.text


@pytest.mark.parametrize(("method", "path"), OPEN)
def test_what_needs_no_key(method: str, path: str) -> None:
    assert send(make_app(api_key=KEY), method, path).status_code == 200


def test_with_the_key() -> None:
    headers = {"Authorization": f"Bearer {KEY}"}
    response = send(make_app(api_key=KEY), "POST", "/ask", json={"question": FRANCE}, headers=headers)
    assert (response.status_code, response.json()["answer"]) == (200, "Paris")


def test_a_key_that_is_not_asked_for_does_no_harm() -> None:
    assert send(make_app(), "GET", "/v1/models", headers={"Authorization": "Bearer x"}).status_code == 200


@pytest.mark.parametrize("key", ["", " ", "two words", "schlüssel", "line\n"])
def test_a_key_that_cannot_be_sent_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(InvalidInputError) as raised:
        ServerSettings(api_key=key)
    assert not key.strip() or key.strip() not in str(raised.value)


def test_the_key_is_not_shown() -> None:
    assert KEY not in repr(ServerSettings(api_key=KEY))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_concurrency", 0),
        ("max_concurrency", True),
        ("max_question_chars", 1.5),
        ("batch_size", "8"),
        ("parallel_batches", 0),
        ("batch_wait_ms", -1),
        ("batch_wait_ms", float("nan")),
        ("batch_wait_ms", "10"),
        ("body_timeout_s", -1),
        ("body_timeout_s", float("inf")),
    ],
)
def test_settings_that_cannot_be(name: str, value: object) -> None:
    with pytest.raises(InvalidInputError, match=name):
        ServerSettings(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("path", ["/ask", "/v1/chat/completions"])
async def test_too_many_at_a_time(path: str) -> None:
    llm = HeldLLM(script=reply)
    body = (
        {"question": FRANCE}
        if path == "/ask"
        else {"model": "adaptllm", "messages": [{"role": "user", "content": FRANCE}]}
    )
    async with client_of(make_app(make_chain(llm), max_concurrency=1)) as client:
        first = asyncio.create_task(client.post(path, json=body))
        assert await asyncio.to_thread(llm.entered.wait, 30)
        refused = await client.post(path, json=body)
        others = [await client.get("/health"), await client.get("/metrics")]
        llm.let.set()
        assert (await first).status_code == 200
        assert (await client.post(path, json=body)).status_code == 200, "there is room again"
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
    assert (refused.json()["error"]["type"], refused.json()["error"]["code"]) == ("rate_limit_error", "busy")
    assert [response.status_code for response in others] == [200, 200]
    assert "adaptllm_questions_in_flight 1.0" in others[1].text
    assert 'adaptllm_rejected_total{reason="busy"} 1.0' in others[1].text


async def test_a_client_that_leaves_a_stream_ends_the_generation_and_makes_room() -> None:
    llm = EndlessLLM(script={})
    app = make_app(make_chain(llm), max_concurrency=1)
    client = RawClient(app, {"question": FRANCE, "stream": True})
    words = []

    def count(body: bytes) -> None:
        words.append(body)
        if len(words) == 5:
            client.hang_up()

    await client.run(count)
    assert client.sent[0]["status"] == 200
    assert await asyncio.to_thread(llm.ended.wait, 30)
    async with client_of(app) as other:
        assert "adaptllm_questions_in_flight 0.0" in (await other.get("/metrics")).text


async def test_a_client_that_leaves_before_its_batch_is_not_answered() -> None:
    llm = HeldLLM(script=reply)
    app = make_app(make_chain(llm, policy="never_retrieve"), batch_size=2, batch_wait_ms=0)
    first, leaving, second = (RawClient(app, {"question": question}) for question in (FRANCE, MILL, f"{FRANCE}!"))
    tasks = [asyncio.create_task(first.run())]
    assert await asyncio.to_thread(llm.entered.wait, 30)
    # These two wait for the batch that is running.
    gone = asyncio.create_task(leaving.run())
    tasks.append(asyncio.create_task(second.run()))
    leaving.hang_up()
    await gone
    llm.let.set()
    await asyncio.gather(*tasks)
    assert [client.sent[0]["status"] for client in (first, second)] == [200, 200]
    assert [len(prompts) for prompts in llm.calls] == [1, 1]
    assert not any(MILL in prompt for prompts in llm.calls for prompt in prompts)


async def test_a_client_that_leaves_during_its_batch_takes_nothing_from_the_others() -> None:
    llm = HeldLLM(script=reply)
    app = make_app(make_chain(llm), batch_size=2, batch_wait_ms=600_000)
    leaving, staying = RawClient(app, {"question": MILL}), RawClient(app, {"question": FRANCE})
    gone, stays = (asyncio.create_task(client.run()) for client in (leaving, staying))
    assert await asyncio.to_thread(llm.entered.wait, 30)
    leaving.hang_up()
    await gone
    llm.let.set()
    await stays
    assert staying.sent[0]["status"] == 200
    assert b'"answer":"Paris"' in staying.sent[1]["body"]


def test_one_after_the_other_in_loops_of_their_own() -> None:
    """The service keeps nothing that belongs to an event loop."""
    app = make_app()
    assert [ask(app, FRANCE).json()["answer"] for _ in range(3)] == ["Paris"] * 3
