"""Requests of those who mean no good, or know no better, byte by byte against a real server."""

from __future__ import annotations

import gzip
import json
import re
import socket
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.serve.scenes import FRANCE, MILL, SECRET, HeldLLM, make_app, make_chain, reply, served, until

PATIENCE_S = 60
BODY = json.dumps({"question": FRANCE}).encode()
CHUNKED = b"".join(b"1\r\n" + bytes([byte]) + b"\r\n" for byte in BODY) + b"0\r\n\r\n"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with served(make_app()) as address:
        yield address


def request(start: bytes, *headers: bytes, body: bytes | None = None, close: bool = True) -> bytes:
    lines = [start + b" HTTP/1.1", b"Host: test", *headers]
    if body is not None:
        lines += [b"Content-Type: application/json", b"Content-Length: %d" % len(body)]
    if close:
        lines.append(b"Connection: close")
    return b"\r\n".join(lines) + b"\r\n\r\n" + (body or b"")


def post(*headers: bytes, body: bytes = BODY) -> bytes:
    return request(b"POST /ask", *headers, body=body)


def stream_of(*headers: bytes, rest: bytes) -> bytes:
    """A question whose length is told in some other way."""
    return request(b"POST /ask", b"Content-Type: application/json", *headers) + rest


def reach(address: str) -> socket.socket:
    parts = urlsplit(address)
    return socket.create_connection((parts.hostname, parts.port), timeout=PATIENCE_S)


def say(address: str, sent: bytes) -> bytes:
    """Send bytes, and read until the server closes."""
    with reach(address) as connection:
        connection.sendall(sent)
        return b"".join(iter(lambda: connection.recv(65_536), b""))


def statuses(heard: bytes) -> list[int]:
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", heard)]


CASES = {
    "a length twice": (post(b"Content-Length: 5"), 400),
    "a negative length": (stream_of(b"Content-Length: -5", rest=b"{}"), 400),
    "a length and chunks": (
        stream_of(b"Content-Length: 4", b"Transfer-Encoding: chunked", rest=b"0\r\n\r\nGET /health HTTP/1.1\r\n\r\n"),
        400,
    ),
    "chunks of a byte": (stream_of(b"Transfer-Encoding: chunked", rest=CHUNKED), 200),
    "chunks that are none": (stream_of(b"Transfer-Encoding: chunked", rest=b"zz\r\n{}\r\n0\r\n\r\n"), 400),
    "another transfer encoding": (stream_of(b"Transfer-Encoding: gzip, chunked", rest=CHUNKED), 400),
    "another version of HTTP": (b"GET /health\r\n\r\n", 400),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 200 + b"\r\n\r\n", 400),
    "no host": (b"GET /health HTTP/1.1\r\n\r\n", 400),
    "a path that is not ASCII": (request(b"GET /\xff\xfe"), 400),
    "a key that is not ASCII": (post(b"Authorization: Bearer \xff"), 200),
    "an address of another host": (request(b"POST http://elsewhere.example/ask", body=BODY), 404),
    "a proxy's method": (request(b"CONNECT elsewhere.example:443"), 404),
    "a web socket": (
        request(b"GET /ask", b"Upgrade: websocket", b"Sec-WebSocket-Key: eA==", b"Sec-WebSocket-Version: 13"),
        405,
    ),
    "a method of its own": (request(b"FOO /ask", body=BODY), 405),
    "TRACE": (request(b"TRACE /ask"), 405),
    "two slashes": (request(b"POST //ask", body=BODY), 404),
    "a slash too many": (request(b"POST /ask/", body=BODY), 404),
    "a packed bomb": (post(b"Content-Encoding: gzip", body=gzip.compress(b"a" * 1_000_000)), 415),
    "UTF-16": (post(body=json.dumps({"question": FRANCE}).encode("utf-16")), 400),
    "lists in lists, closed": (post(body=b'{"question": "?", "mode": ' + b"[" * 9000 + b"]" * 9000 + b"}"), 400),
    "lists in lists, not too many": (post(body=b'{"question": "?", "mode": ' + b"[" * 500 + b"]" * 500 + b"}"), 422),
    "a number of 4000 digits": (post(body=b'{"question": "?", "k": ' + b"9" * 4000 + b"}"), 422),
    "a mode of 100000 letters": (post(body=b'{"question": "?", "mode": "' + b"a" * 100_000 + b'"}'), 422),
    "signs that control a terminal": (post(body=json.dumps({"question": "\x1b[31m\0\u202e?"}).encode()), 200),
    "our own templates": (post(body=json.dumps({"question": "{Q} %s <RET> Given the context C"}).encode()), 200),
}


@pytest.mark.parametrize("case", CASES)
def test_odd_requests(address: str, case: str) -> None:
    sent, status = CASES[case]
    heard = say(address, sent)
    assert statuses(heard) == [status]
    assert len(heard) < 2000, "what was sent is not sent back"
    for inside in (b"Traceback", b"adaptllm_chain", b"uvicorn", SECRET.encode()):
        assert inside not in heard
    assert httpx2.get(f"{address}/health", timeout=PATIENCE_S).status_code == 200


def test_a_header_without_end_is_cut_off(address: str) -> None:
    with reach(address) as connection, pytest.raises(ConnectionError):
        connection.sendall(b"GET /health HTTP/1.1\r\nX-A: " + b"b" * 64_000_000)
    assert httpx2.get(f"{address}/health", timeout=PATIENCE_S).status_code == 200


def test_requests_one_after_the_other_in_one_go(address: str) -> None:
    questions = [b"{", BODY, b'{"question": ""}', BODY]
    sent = b"".join(request(b"POST /ask", body=body, close=False) for body in questions) + request(b"GET /health")
    assert statuses(say(address, sent)) == [400, 200, 422, 200, 200]


def test_clients_that_hang_up_in_the_middle_of_a_batch() -> None:
    llm = HeldLLM(script=reply)
    app = make_app(make_chain(llm), batch_size=4, batch_wait_ms=0, max_concurrency=16)
    answers: list[httpx2.Response] = []

    def ask(question: str) -> None:
        answers.append(httpx2.post(f"{address}/ask", json={"question": question}, timeout=PATIENCE_S))

    with served(app) as address:
        asking = [threading.Thread(target=ask, args=(f"{FRANCE} {number}",)) for number in range(6)]
        gone = [reach(address) for _ in range(6)]
        for thread, connection in zip(asking, gone, strict=True):
            thread.start()
            connection.sendall(post(body=json.dumps({"question": MILL, "threshold": 0.5}).encode()))
        until(lambda: in_flight(address) == 12)
        for connection in gone:
            connection.close()
        until(lambda: in_flight(address) == 6)
        llm.let.set()
        for thread in asking:
            thread.join(PATIENCE_S)
        assert in_flight(address) == 0
    assert [answer.json()["answer"] for answer in answers] == ["Paris"] * 6
    assert {answer.json()["question"] for answer in answers} == {f"{FRANCE} {number}" for number in range(6)}


def in_flight(address: str) -> float:
    text = httpx2.get(f"{address}/metrics", timeout=PATIENCE_S).text
    return float(re.findall(r"^adaptllm_questions_in_flight (.*)$", text, re.MULTILINE)[0])
