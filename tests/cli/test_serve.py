"""The command ``adaptllm serve``, once in a process of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from adaptllm_chain.cli import embedder_loading, model_loading
from adaptllm_chain.serve import running
from adaptllm_chain.testing import ScriptedLLM
from tests.cli.conftest import Run
from tests.serve.scenes import send, until

FRANCE = "What is the capital of France?"
MILL = "Who built the mill at Lindow?"
KEY = "s3cret"
DEADLINE_S = 60


@pytest.fixture
def apps(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Serve nothing; collect what would be served."""
    found: list[Any] = []

    def serve_nothing(app: Any, listener: socket.socket, on_ready: Callable[[], None]) -> None:
        found.append(app)
        on_ready()

    monkeypatch.setattr(running, "run_app", serve_nothing)
    return found


def test_what_is_served(run: Run, index: Path, apps: list[Any]) -> None:
    ran = run("serve", "--index", index, "--port", 0, "--k", 2, "--threshold", 0.5, "--max-question-chars", 100)
    assert (ran.code, ran.out) == (0, "")
    assert "serving on http://127.0.0.1:" in ran.err
    (app,) = apps
    assert send(app, "GET", "/settings").json() == {
        "model": "embedded",
        "adapter": None,
        "mode": "adaptive",
        "modes": ["adaptive", "never_retrieve", "always_retrieve"],
        "threshold": 0.5,
        "k": 2,
        "max_k": 50,
        "needs_key": False,
        "max_question_chars": 100,
        "passages": 2,
    }
    row = send(app, "POST", "/ask", json={"question": MILL, "k": 1}).json()
    assert (row["retrieved"], row["context"][0]["title"]) == (True, "The mill at Lindow")
    assert row["context"][0]["score"] > 0
    assert row["context"][0]["marks"]


def test_without_documents(run: Run, llm: ScriptedLLM, apps: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr(embedder_loading, "load_embedder", fail)
    assert run("serve", "--mode", "never_retrieve", "--port", 0).code == 0
    found = send(apps[0], "GET", "/settings").json()
    assert (found["modes"], found["passages"]) == (["never_retrieve"], None)


def test_popularity_comes_with_the_request(run: Run, index: Path, apps: list[Any]) -> None:
    assert run("serve", "--index", index, "--port", 0, "--mode", "popularity", "--threshold", 1000).code == 0
    row = send(apps[0], "POST", "/ask", json={"question": MILL, "popularity": 5}).json()
    assert row["decision"]["rule"] == "popularity"


@pytest.mark.parametrize("by", ["option", "variable"])
def test_the_key(run: Run, index: Path, apps: list[Any], monkeypatch: pytest.MonkeyPatch, by: str) -> None:
    monkeypatch.setenv("ADAPTLLM_API_KEY", KEY if by == "variable" else "other")
    ran = run("serve", "--index", index, "--port", 0, *(["--api-key", KEY] if by == "option" else []))
    assert KEY not in ran.out + ran.err
    body = {"question": FRANCE}
    assert send(apps[0], "POST", "/ask", json=body).status_code == 401
    headers = {"Authorization": f"Bearer {KEY}"}
    assert send(apps[0], "POST", "/ask", json=body, headers=headers).status_code == 200


def test_open_to_all(run: Run, index: Path, apps: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADAPTLLM_API_KEY", "")
    assert "whoever reaches 0.0.0.0 may ask" in run("serve", "--index", index, "--port", 0, "--host", "0.0.0.0").err
    assert "whoever" not in run("serve", "--index", index, "--port", 0).err
    assert "whoever" not in run("serve", "--index", index, "--port", 0, "--host", "0.0.0.0", "--api-key", KEY).err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--port", "65536"], "is not a port"),
        (["--port", "x"], "is not a port"),
        (["--batch-wait-ms", "-1"], "milliseconds"),
        (["--batch-wait-ms", "nan"], "milliseconds"),
        (["--max-concurrency", "0"], "whole number"),
        (["--api-key", ""], "the API key cannot be sent"),
        (["--api-key", "two words"], "the API key cannot be sent"),
        (["--threshold", "2"], "is no probability"),
        (["--mode", "popularity"], "needs a threshold"),
        (["--host", "203.0.113.1"], "cannot be listened on"),
    ],
)
def test_mistakes_are_found_before_anything_is_loaded(
    run: Run, llm: ScriptedLLM, monkeypatch: pytest.MonkeyPatch, options: list[str], message: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr(model_loading, "load_llm", fail)
    monkeypatch.setattr(embedder_loading, "load_embedder", fail)
    ran = run("serve", *options)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert "two words" not in ran.err


def test_a_port_in_use(run: Run, llm: ScriptedLLM) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        ran = run("serve", "--port", port)
    assert ran.code == 2
    assert f"127.0.0.1, port {port}, cannot be listened on" in ran.err
    assert "--port 0 for any that is free" in ran.err
    assert "loading" not in ran.err


def test_help(run: Run) -> None:
    ran = run("serve", "--help")
    assert ran.code == 0
    assert "ADAPTLLM_API_KEY" in ran.out


class Server:
    """The command in a process of its own, with a model that answers when it is let.

    Attributes:
        process: The process.
        address: Where it listens.
    """

    def __init__(self, index: Path, let: Path) -> None:
        self._let = let
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.serve.held_stand_in", "serve", "--index", str(index), "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "ADAPTLLM_API_KEY": "", "ANSWER_WHEN_THERE": str(let)},
        )
        assert self.process.stderr is not None
        lines = iter(self.process.stderr.readline, "")
        self.address = next(line for line in lines if line.startswith("serving on ")).split()[2]

    def let_it_answer(self) -> None:
        self._let.touch()

    def end(self) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=DEADLINE_S)
        return self.process.returncode, out, err


@pytest.fixture
def server(index: Path, tmp_path: Path) -> Iterator[Server]:
    server = Server(index, tmp_path / "let")
    yield server
    if server.process.poll() is None:
        server.process.kill()
        server.process.communicate()


def test_sigterm_finishes_what_is_in_flight(server: Server) -> None:
    answers: list[httpx2.Response] = []

    def ask(stream: bool) -> None:
        body = {"question": MILL, "stream": stream}
        answers.append(httpx2.post(f"{server.address}/ask", json=body, timeout=DEADLINE_S))

    asking = [threading.Thread(target=ask, args=(stream,)) for stream in (False, True)]
    for thread in asking:
        thread.start()
    until(lambda: "adaptllm_questions_in_flight 2.0" in httpx2.get(f"{server.address}/metrics").text)
    server.process.send_signal(signal.SIGTERM)
    until(lambda: refuses(server.address))
    assert not answers
    server.let_it_answer()
    for thread in asking:
        thread.join(DEADLINE_S)
    assert [answer.status_code for answer in answers] == [200, 200]
    assert all("The mill at Lindow" in answer.text for answer in answers)
    assert any("event: done" in answer.text for answer in answers)
    assert server.end() == (0, "", "adaptllm: stopped\n")


def test_ctrl_c(server: Server) -> None:
    server.process.send_signal(signal.SIGINT)
    code, out, err = server.end()
    assert (code, out, err.strip()) == (130, "", "adaptllm: stopped")


def refuses(address: str) -> bool:
    try:
        httpx2.get(f"{address}/health", timeout=DEADLINE_S)
    except httpx2.ConnectError:
        return True
    except httpx2.TransportError:
        # Taken by the system's queue just before the port was closed.
        return False
    return False
