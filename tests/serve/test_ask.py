from __future__ import annotations

import asyncio
import json
import math
from typing import Any

import numpy as np
import pytest
from fastapi import FastAPI
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document

from adaptllm_chain.serve import create_app
from adaptllm_chain.serve.results import passage_rows
from adaptllm_chain.testing import Reply, ScriptedChatModel, ScriptedLLM
from tests.serve.scenes import (
    BROKEN,
    FRANCE,
    MILL,
    SECRET,
    ask,
    client_of,
    events_of,
    make_app,
    make_chain,
    reply,
    send,
)

MODEL = {"model": "the model", "adapter": "the adapter"}


def test_health() -> None:
    response = send(make_app(**MODEL, api_key="k"), "GET", "/health")
    assert (response.status_code, response.json()) == (200, {"status": "ok", **MODEL})


def test_settings() -> None:
    app = make_app(**MODEL, api_key="k", passages=7, max_question_chars=99)
    assert send(app, "GET", "/settings").json() == {
        **MODEL,
        "mode": "adaptive",
        "modes": ["adaptive", "never_retrieve", "always_retrieve"],
        "threshold": None,
        "k": 1,
        "max_k": 50,
        "needs_key": True,
        "max_question_chars": 99,
        "passages": 7,
    }


def test_defaults() -> None:
    response = send(create_app(make_chain()), "GET", "/settings").json()
    assert (response["model"], response["adapter"], response["needs_key"]) == ("adaptllm", None, False)


def test_from_memory() -> None:
    row = ask(make_app(), FRANCE).json()
    assert row.pop("seconds") >= 0
    assert row == {
        "question": FRANCE,
        "answer": "Paris",
        "route": "direct",
        "retrieved": False,
        "ret_probability": 0.05,
        "decision": {
            "rule": "token",
            "reason": "the model answered",
            "threshold": None,
            "signal_kind": "exact",
            "signal_probability": 0.05,
        },
        "context": [],
    }


def test_with_retrieval() -> None:
    row = ask(make_app(), MILL).json()
    assert (row["route"], row["retrieved"], row["ret_probability"]) == ("retrieve", True, 0.9)
    assert row["answer"] == "Ada Holm in 1881"
    (passage,) = row["context"]
    assert passage.pop("marks") == [[32, 49]]
    assert passage["text"][32:49] == "Ada Holm, in 1881"
    assert passage == {
        "title": "Lindow",
        "text": "The mill at Lindow was built by Ada Holm, in 1881.",
        "score": 1.5,
        "id": "mill-1",
    }


def test_passages_as_retrievers_bring_them() -> None:
    rows = passage_rows(
        [
            Document(page_content="a", metadata={"score": np.float32(0.5)}),
            Document(page_content="b", metadata={"score": math.nan, "title": None}),
            Document(page_content="c", metadata={"score": "high", "title": 7}),
        ]
    )
    assert [(row["title"], row["score"], row["id"]) for row in rows] == [
        ("", 0.5, None),
        ("", None, None),
        ("7", None, None),
    ]


@pytest.mark.parametrize(
    ("id", "source", "told"),
    [
        ("/home/ada/notes/mill.md", "/home/ada/notes/mill.md", "mill.md"),
        ("/home/ada/notes/mill.md#2", "/home/ada/notes/mill.md", "mill.md#2"),
        ("/home/ada/rows.jsonl:id=/a/b", "/home/ada/rows.jsonl", "rows.jsonl:id=/a/b"),
        ("/mill.md", "/mill.md", "mill.md"),
        ("notes/mill.md#2", "notes/mill.md", "notes/mill.md#2"),
        ("mill-1", "/home/ada/rows.jsonl", "mill-1"),
        ("https://example.org/mill", "https://example.org/mill", "https://example.org/mill"),
        (None, "/home/ada/notes/mill.md", None),
    ],
)
def test_where_the_operator_keeps_files_is_not_told(id: str | None, source: str, told: str | None) -> None:
    passage = Document(id=id, page_content="a", metadata={"source": source})
    assert [row["id"] for row in passage_rows([passage])] == [told]


def test_texts_that_utf8_does_not_know() -> None:
    chain = make_chain(
        ScriptedLLM(script=lambda prompt: "half \ud83d"), policy="always_retrieve", found=["a \udc00 half"]
    )
    row = ask(make_app(chain), "?").json()
    assert (row["answer"], row["context"][0]["text"]) == ("half ?", "a ? half")
    assert row["context"][0]["marks"] == [[4, 8]]


@pytest.mark.parametrize(
    ("wishes", "retrieved", "rule"),
    [
        ({}, [False, True], "token"),
        ({"mode": None, "k": None}, [False, True], "token"),
        ({"mode": "never_retrieve"}, [False, False], "never"),
        ({"mode": "always_retrieve"}, [True, True], "always"),
        ({"mode": "always_retrieve", "threshold": None}, [True, True], "always"),
        ({"threshold": 0.95}, [False, False], "probability"),
        ({"threshold": 0.5}, [False, True], "probability"),
        ({"threshold": 0}, [True, True], "probability"),
        ({"threshold": None}, [False, True], "token"),
    ],
)
@pytest.mark.parametrize("server", [{}, {"policy": "never_retrieve"}], ids=["adaptive", "never"])
def test_a_request_may_choose(server: dict[str, Any], wishes: dict[str, Any], retrieved: list[bool], rule: str) -> None:
    app = make_app(make_chain(**server))
    if server and wishes.get("mode") is None:
        wishes = {**wishes, "mode": "adaptive"}
    rows = [ask(app, question, **wishes).json() for question in (FRANCE, MILL)]
    assert [row["retrieved"] for row in rows] == retrieved
    assert {row["decision"]["rule"] for row in rows} == {rule}


@pytest.mark.parametrize("stream", [False, True])
def test_a_bound_is_told_as_one(*, stream: bool) -> None:
    """What the model lists leaves 0.1 for all other words: <RET> has at most that, and P(<RET>) itself is not known."""
    listed = {"content": [{"token": "Paris", "logprob": math.log(0.9), "top_logprobs": [
        {"token": "Paris", "logprob": math.log(0.9)}, {"token": "London", "logprob": math.log(0.02)}]}]}  # fmt: skip
    chain = make_chain(ScriptedLLM(script=lambda prompt: Reply("Paris", info={"logprobs": listed})))
    response = ask(make_app(chain), FRANCE, stream=stream)
    for row in [data for name, data in events_of(response.text) if name != "token"] if stream else [response.json()]:
        if isinstance(row, list):  # the passages
            continue
        assert row["ret_probability"] is None
        assert row["decision"]["signal_kind"] == "upper_bound"
        assert row["decision"]["signal_probability"] == pytest.approx(0.02)


def test_k() -> None:
    app = make_app(make_chain(found=["one", "two", "three"]), max_k=2)
    assert [len(ask(app, MILL, k=k).json()["context"]) for k in (None, 1, 2)] == [1, 1, 2]
    response = ask(app, MILL, k=3)
    assert (response.status_code, response.json()["error"]["expected"]) == (422, "a whole number from 1 to 2")


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({}, "the body needs question"),
        ({"question": None}, "question=None"),
        ({"question": {"question": FRANCE}}, "question={'question': "),
        ({"question": 5}, "question=5"),
        ({"question": ["a"]}, "question=['a']"),
        ({"question": ""}, "is empty"),
        ({"question": " \n\t"}, "is empty"),
        ({"question": "?", "mode": "sometimes"}, "mode='sometimes'"),
        ({"question": "?", "mode": "popularity"}, "mode='popularity'"),
        ({"question": "?", "threshold": "0.5"}, "threshold='0.5'"),
        ({"question": "?", "threshold": True}, "threshold=True"),
        ({"question": "?", "threshold": -0.1}, "threshold=-0.1"),
        ({"question": "?", "threshold": 1.1}, "threshold=1.1"),
        ({"question": "?", "threshold": 0.5, "mode": "never_retrieve"}, "says nothing to the mode never_retrieve"),
        ({"question": "?", "k": 0}, "k=0"),
        ({"question": "?", "k": 1.5}, "k=1.5"),
        ({"question": "?", "k": 10**30}, "k=1"),
        ({"question": "?", "stream": "yes"}, "stream='yes'"),
        ({"question": "?", "temprature": 1}, "the body has no setting 'temprature'"),
        ([], "the body is a JSON list"),
        ("text", "the body is a JSON str"),
    ],
)
def test_bodies_of_another_form(body: Any, problem: str) -> None:
    response = send(make_app(), "POST", "/ask", json=body)
    assert response.status_code == 422
    error = response.json()["error"]
    assert problem in error["message"]
    assert error["expected"]
    assert (error["type"], error["code"], error["param"]) == ("invalid_request_error", "invalid_request", None)


@pytest.mark.parametrize(
    ("content", "problem", "code"),
    [
        (b"", "not JSON", "not_json"),
        (b"{", "not JSON", "not_json"),
        (b'{"question": "?", "threshold": NaN}', "NaN is no number", "not_json"),
        (b'{"question": "?", "threshold": -Infinity}', "-Infinity is no number", "not_json"),
        (b'{"question": "\xff"}', "not UTF-8", "not_utf8"),
        (b'{"question": "\\ud800"}', "surrogate", "not_unicode"),
        (b'{"question": "?", "\\udfff": 1}', "surrogate", "not_unicode"),
        (b"[" * 100_000, "nested too deeply", "not_json"),
        (b'{"k": ' + b"9" * 5000 + b"}", "not JSON", "not_json"),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_bodies_that_cannot_be_read(content: bytes, problem: str, code: str) -> None:
    response = send(make_app(), "POST", "/ask", content=content, headers={"Content-Type": "application/json"})
    assert response.status_code == 400
    assert problem in response.json()["error"]["message"]
    assert response.json()["error"]["code"] == code


def test_no_name_of_the_inside_is_told() -> None:
    response = send(make_app(), "POST", "/ask", json={"question": "?", "k": 0})
    error = response.json()["error"]
    assert (error["message"], error["expected"], error["hint"]) == ("k=0", "greater than or equal to 1", '"k": 1')


def test_of_two_equal_keys_the_last_counts() -> None:
    content = b'{"question": "", "question": "What is the capital of France?"}'
    response = send(make_app(), "POST", "/ask", content=content, headers={"Content-Type": "application/json"})
    assert response.json()["answer"] == "Paris"


@pytest.mark.parametrize(("encoding", "status"), [("gzip", 415), ("br, gzip", 415), ("identity", 200)])
def test_packed_bodies_are_not_unpacked(encoding: str, status: int) -> None:
    headers = {"Content-Type": "application/json", "Content-Encoding": encoding}
    response = send(make_app(), "POST", "/ask", content=json.dumps({"question": FRANCE}), headers=headers)
    assert response.status_code == status
    if status != 200:
        assert response.json()["error"]["code"] == "wrong_content_encoding"


async def test_a_body_that_stalls_gives_its_place_up() -> None:
    async def stalling() -> Any:
        yield b'{"question": '
        await asyncio.Event().wait()

    async with client_of(make_app(max_concurrency=1, body_timeout_s=0.01)) as client:
        headers = {"Content-Type": "application/json"}
        stalled = await client.post("/ask", content=stalling(), headers=headers)
        assert (stalled.status_code, stalled.json()["error"]["code"]) == (408, "body_too_slow")
        assert stalled.headers["connection"] == "close"
        metrics = (await client.get("/metrics")).text
    assert "adaptllm_questions_in_flight 0.0" in metrics
    assert 'adaptllm_rejected_total{reason="body_too_slow"} 1.0' in metrics


def test_a_number_too_large_for_a_float() -> None:
    content = b'{"question": "?", "threshold": 1e999}'
    response = send(make_app(), "POST", "/ask", content=content, headers={"Content-Type": "application/json"})
    assert response.status_code == 422


@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded", "application/jsonx"])
def test_only_json_is_read(kind: str | None) -> None:
    """A page of another site cannot send JSON without being allowed to, and so cannot ask."""
    headers = {} if kind is None else {"Content-Type": kind}
    response = send(make_app(), "POST", "/ask", content=json.dumps({"question": FRANCE}), headers=headers)
    assert response.status_code == 415
    assert "Content-Type: application/json" in response.json()["error"]["expected"]


def test_json_with_a_charset_and_a_byte_order_mark() -> None:
    content = b"\xef\xbb\xbf" + json.dumps({"question": FRANCE}).encode()
    headers = {"Content-Type": "Application/JSON; charset=utf-8"}
    assert send(make_app(), "POST", "/ask", content=content, headers=headers).json()["answer"] == "Paris"


def test_limits_of_size() -> None:
    app = make_app(max_question_chars=5, max_body_bytes=100)
    assert ask(app, "12345").status_code == 200
    response = ask(app, "123456")
    assert (response.status_code, response.json()["error"]["code"]) == (422, "question_too_long")
    assert response.json()["error"]["message"] == "the question has 6 characters"
    assert ask(app, "é" * 5).status_code == 200, "characters, not bytes"
    response = ask(app, "1" * 100)
    assert (response.status_code, response.json()["error"]["expected"]) == (413, "at most 100 bytes")


def test_a_body_that_does_not_say_how_long_it_is() -> None:
    async def endless() -> Any:
        while True:
            yield b" " * 50

    response = send(
        make_app(max_body_bytes=100), "POST", "/ask", content=endless(), headers={"Content-Type": "application/json"}
    )
    assert response.status_code == 413


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/nothing", 404), ("GET", "/ask", 405), ("POST", "/ask/", 404), ("OPTIONS", "/ask", 405)],
)
def test_no_such_route(method: str, path: str, status: int) -> None:
    response = send(make_app(), method, path)
    assert response.status_code == status
    assert "POST /ask" in response.json()["error"]["expected"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_model_that_fails_says_nothing_of_the_inside(*, stream: bool, caplog: pytest.LogCaptureFixture) -> None:
    response = ask(make_app(), BROKEN, stream=stream)
    if stream:
        ((name, data),) = events_of(response.text)
        assert (response.status_code, name) == (200, "error")
    else:
        assert response.status_code == 502
        data = response.json()
    assert data["error"]["message"] == "the model or the retriever failed"
    assert (data["error"]["type"], data["error"]["code"]) == ("server_error", "model_failed")
    assert SECRET not in response.text
    assert SECRET in caplog.text, "the operator reads why"


def test_a_mistake_of_the_server_says_nothing_of_the_inside(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(answered: object) -> None:
        raise RuntimeError(SECRET)

    monkeypatch.setattr("adaptllm_chain.serve.native.answer_row", broken)
    response = ask(make_app(), FRANCE)
    assert (response.status_code, response.json()["error"]["code"]) == (500, "server_failed")
    assert SECRET not in response.text
    assert SECRET in caplog.text


@pytest.mark.parametrize("stream", [False, True])
def test_what_the_chain_says_of_the_question_is_told(*, stream: bool) -> None:
    app = make_app(make_chain(found=[], on_empty="raise"))
    response = ask(app, MILL, stream=stream)
    error = (events_of(response.text)[-1][1] if stream else response.json())["error"]
    assert "the search brought nothing" in error["message"]
    assert response.status_code == (200 if stream else 422)


def test_a_threshold_needs_log_probabilities() -> None:
    response = ask(make_app(make_chain(ScriptedLLM(script=lambda prompt: "Paris"))), FRANCE, threshold=0.5)
    assert response.status_code == 422
    assert "reports no log-probabilities" in response.json()["error"]["message"]


class TestStream:
    def test_order(self) -> None:
        response = ask(make_app(), MILL, stream=True)
        assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
        names, data = zip(*events_of(response.text), strict=True)
        assert names == ("decision", "context", "token", "token", "token", "token", "done")
        assert data[0] == {
            "retrieved": True,
            "ret_probability": 0.9,
            "decision": data[-1]["decision"],
        }
        assert data[1] == [{key: data[-1]["context"][0][key] for key in ("title", "text", "score", "id")}]

    @pytest.mark.parametrize("model", [ScriptedLLM, ScriptedChatModel])
    @pytest.mark.parametrize("found", [["Ada Holm built it."], []])
    @settings(max_examples=8, deadline=None)
    @given(chunks=st.lists(st.sampled_from(["Ada", " Holm", "<R", "ET>", "\n", "<RET>", ""]), min_size=1, max_size=5))
    def test_parity(self, model: Any, found: list[str], chunks: list[str]) -> None:
        """Streamed or not, alone or in a batch, the same is answered; and the pieces are the answer."""
        said = Reply("".join(chunks), chunks=tuple(chunks), info={"ret_probability": 0.4})
        chain = make_chain(model(script=lambda prompt: said), found=found)
        app = make_app(chain)
        whole = ask(app, MILL).json()
        events = events_of(ask(app, MILL, stream=True).text)
        names = [name for name, _ in events]
        done = events[-1][1]
        assert whole.pop("seconds") >= 0
        assert done.pop("seconds") >= 0
        assert done == whole
        assert names == ["decision", "context", *["token"] * (len(names) - 3), "done"]
        assert "".join(data["text"] for name, data in events if name == "token") == whole["answer"]
        assert all(data["text"] for name, data in events if name == "token")

    def test_bad_requests_have_a_status(self) -> None:
        assert ask(make_app(), "", stream=True).status_code == 422

    def test_a_line_break_in_the_answer_does_not_break_the_event(self) -> None:
        chain = make_chain(ScriptedLLM(script=lambda prompt: "a\n\nevent: done\r\nb"))
        events = events_of(ask(make_app(chain), FRANCE, stream=True).text)
        assert events[-1][0] == "done"
        assert events[-1][1]["answer"] == "a\n\nevent: done\r\nb"


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
KEYS = st.sampled_from(["question", "mode", "threshold", "k", "stream", "popularity", "else"])
GOOD = {"question": st.just(FRANCE), "mode": st.just("adaptive"), "threshold": st.floats(0, 1), "k": st.integers(1, 3)}


@pytest.fixture(scope="module")
def app() -> FastAPI:
    return make_app()


@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_no_body_is_an_error_of_the_server(app: FastAPI, data: st.DataObject) -> None:
    keys = data.draw(st.sets(KEYS, max_size=4))
    body = {key: data.draw(GOOD.get(key, JSON_VALUES) if data.draw(st.booleans()) else JSON_VALUES) for key in keys}
    response = send(
        app, "POST", "/ask", content=json.dumps(body).encode(), headers={"Content-Type": "application/json"}
    )
    assert response.status_code in (200, 400, 422)
    if response.status_code != 200:
        assert response.json()["error"]["message"]


@settings(max_examples=20, deadline=None)
@given(content=st.binary(max_size=30))
def test_no_bytes_are_an_error_of_the_server(app: FastAPI, content: bytes) -> None:
    response = send(app, "POST", "/ask", content=content, headers={"Content-Type": "application/json"})
    assert response.status_code in (400, 422)


async def test_eight_questions_are_one_batch() -> None:
    llm = ScriptedLLM(script=reply)
    chain = make_chain(llm)
    async with client_of(make_app(chain, batch_size=8, batch_wait_ms=600_000)) as client:
        questions = [f"{MILL} {number}" for number in range(8)]
        responses = await asyncio.gather(*(client.post("/ask", json={"question": question}) for question in questions))
    assert [response.json()["question"] for response in responses] == questions
    assert {response.json()["answer"] for response in responses} == {"Ada Holm in 1881"}
    assert [len(prompts) for prompts in llm.calls] == [8, 8]
    assert "If you need help" in llm.calls[0][0]
    assert "given the context" in llm.calls[1][0]
    assert chain.retriever.batches == [8]  # type: ignore[union-attr]


async def test_eight_questions_with_thresholds_of_their_own_are_one_batch() -> None:
    """Of all, P(<RET>) is 0.9: the thresholds 0.85 and 0.9 are reached, from 0.95 on they are not."""
    llm = ScriptedLLM(script=reply)
    chain = make_chain(llm)
    thresholds = [0.0, 0.25, 0.5, 0.85, 0.9, 0.95, 1.0, None]
    async with client_of(make_app(chain, batch_size=8, batch_wait_ms=600_000)) as client:
        responses = await asyncio.gather(
            *(client.post("/ask", json={"question": MILL, "threshold": threshold}) for threshold in thresholds)
        )
    decisions = [response.json()["decision"] for response in responses]
    assert [decision["threshold"] for decision in decisions] == thresholds
    assert [decision["rule"] for decision in decisions] == ["probability"] * 7 + ["token"]
    assert [response.json()["retrieved"] for response in responses] == [True] * 5 + [False, False, True]
    # One parametric call and one search; then the two that said <RET> in vain are asked together with those that read.
    assert [len(prompts) for prompts in llm.calls] == [8, 8]
    assert all("If you need help" in prompt for prompt in llm.calls[0])
    assert sum("given the context" in prompt for prompt in llm.calls[1]) == 6
    assert chain.retriever.batches == [6]  # type: ignore[union-attr]


async def test_other_modes_and_numbers_of_passages_share_a_batch_too() -> None:
    llm = ScriptedLLM(script=reply)
    chain = make_chain(llm, found=["one", "two", "three"])
    # k=1 is what the server does anyhow.
    wishes: list[dict[str, Any]] = [
        {},
        {"k": 1},
        {"k": 2},
        {"k": 3, "mode": "adaptive"},
        {"k": 2},
        {"mode": "never_retrieve", "k": 3},
    ]
    async with client_of(make_app(chain, batch_size=6, batch_wait_ms=600_000)) as client:
        responses = await asyncio.gather(*(client.post("/ask", json={"question": MILL, **wish}) for wish in wishes))
    assert [len(response.json()["context"]) for response in responses] == [1, 1, 2, 3, 2, 0]
    assert responses[-1].json()["answer"] == "By heart"
    assert [len(prompts) for prompts in llm.calls] == [6, 5]
    assert sorted(chain.retriever.batches) == [1, 2, 2], "a search for each k"  # type: ignore[union-attr]


async def test_a_wish_that_cannot_be_granted_takes_nothing_from_the_others() -> None:
    llm = ScriptedLLM(script=reply)
    app = make_app(make_chain(llm), batch_size=2, batch_wait_ms=600_000)
    wishes: list[dict[str, Any]] = [
        {},
        {"threshold": 3},
        {"k": 99},
        {"mode": "sometimes"},
        {"mode": "never_retrieve", "threshold": 0.5},
        {},
    ]
    async with client_of(app) as client:
        responses = await asyncio.gather(*(client.post("/ask", json={"question": FRANCE, **wish}) for wish in wishes))
    assert [response.status_code for response in responses] == [200, 422, 422, 422, 422, 200]
    assert [len(prompts) for prompts in llm.calls] == [2]


async def test_one_question_of_a_batch_fails_alone() -> None:
    app = make_app(batch_size=3, batch_wait_ms=600_000)
    async with client_of(app) as client:
        responses = await asyncio.gather(
            *(client.post("/ask", json={"question": question}) for question in (FRANCE, BROKEN, MILL))
        )
    assert [response.status_code for response in responses] == [200, 502, 200]
