"""What surrounds the answers: measures, files, headers, mounting, modes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.runnables import ConfigurableField
from langchain_core.vectorstores import InMemoryVectorStore
from prometheus_client.parser import text_string_to_metric_families

from adaptllm_chain.chain import AdaptiveRetrievalChain
from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.prompts import PromptSpec
from adaptllm_chain.ret import Adaptive, PopularityThreshold
from adaptllm_chain.serve import create_app
from adaptllm_chain.serve.page_files import page_routes
from adaptllm_chain.serve.running import address_of, listen
from adaptllm_chain.testing import CountingRetriever, ScriptedLLM
from tests.serve.scenes import BROKEN, FRANCE, MILL, RetrieverOfK, ask, make_app, make_chain, reply, send

CHAT = "/v1/chat/completions"


def samples(app: Any) -> dict[tuple[str, ...], float]:
    """The measures by their name and the values of their labels."""
    response = send(app, "GET", "/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=")
    families = text_string_to_metric_families(response.text)
    return {
        (sample.name, *(sample.labels[key] for key in sorted(sample.labels))): sample.value
        for family in families
        for sample in family.samples
    }


class TestMeasures:
    def test_questions(self) -> None:
        app = make_app()
        for stream in (False, True):
            ask(app, FRANCE, stream=stream)
        ask(app, MILL)
        send(app, "POST", CHAT, json={"model": "adaptllm", "messages": [{"role": "user", "content": FRANCE}]})
        found = samples(app)
        assert found["adaptllm_questions_total", "ask", "direct"] == 2
        assert found["adaptllm_questions_total", "ask", "retrieve"] == 1
        assert found["adaptllm_questions_total", "chat", "direct"] == 1
        assert found["adaptllm_retrieval_share",] == 0.25
        assert found["adaptllm_question_seconds_count", "direct"] == 3
        assert found["adaptllm_question_seconds_count", "retrieve"] == 1
        assert found["adaptllm_questions_in_flight",] == 0
        # Streams are no batches.
        assert (found["adaptllm_batch_size_count",], found["adaptllm_batch_size_sum",]) == (3, 3)
        assert found["adaptllm_batch_size_bucket", "8.0"] == 3

    def test_what_was_not_answered(self) -> None:
        app = make_app(max_body_bytes=200, max_question_chars=20)
        for body in ({}, {"question": "x" * 21}, {"question": "x" * 200}):
            send(app, "POST", "/ask", json=body)
        ask(app, "breaks?")
        ask(app, "breaks?", stream=True)
        ask(app, "?", stream=True, mode="?")
        found = samples(app)
        assert found["adaptllm_rejected_total", "invalid_request"] == 2
        assert found["adaptllm_rejected_total", "question_too_long"] == 1
        assert found["adaptllm_rejected_total", "body_too_large"] == 1
        assert found["adaptllm_failed_total", "model_failed"] == 2

    def test_two_services_in_a_process_count_apart(self) -> None:
        first, second = make_app(), make_app()
        ask(first, FRANCE)
        assert ("adaptllm_questions_total", "ask", "direct") not in samples(second)


class TestFiles:
    @pytest.fixture
    def app(self, tmp_path: Path) -> FastAPI:
        folder = tmp_path / "page"
        folder.mkdir()
        (tmp_path / "secret.js").write_text("hidden words")
        for name in ("index.html", "a.css", "a.js", "a.svg", "notes.txt"):
            (folder / name).write_text(f"this is {name}, é")
        (folder / "inner.js").mkdir()
        app = FastAPI()
        app.include_router(page_routes(folder))
        for kind, handler in make_app().exception_handlers.items():
            app.add_exception_handler(kind, handler)
        return app

    @pytest.mark.parametrize(
        ("path", "name", "kind"),
        [
            ("/", "index.html", "text/html; charset=utf-8"),
            ("/page/index.html", "index.html", "text/html; charset=utf-8"),
            ("/page/a.css", "a.css", "text/css; charset=utf-8"),
            ("/page/a.js", "a.js", "text/javascript; charset=utf-8"),
            ("/page/a.svg", "a.svg", "image/svg+xml"),
        ],
    )
    def test_content_types(self, app: FastAPI, path: str, name: str, kind: str) -> None:
        response = send(app, "GET", path)
        assert (response.status_code, response.headers["content-type"]) == (200, kind)
        assert response.content.decode() == f"this is {name}, é"

    @pytest.mark.parametrize(
        "path",
        [
            "/page/../secret.js",
            "/page/..%2fsecret.js",
            "/page/%2e%2e%2fsecret.js",
            "/page/..%5csecret.js",
            "/page//etc/passwd",
            "/page/%2fetc%2fpasswd",
            "/page/inner.js",
            "/page/notes.txt",
            "/page/nothing.js",
            "/page/a.js%00",
            "/page/.",
            "/page/",
        ],
    )
    def test_no_way_out(self, app: FastAPI, path: str) -> None:
        response = send(app, "GET", path)
        assert response.status_code == 404
        assert response.json()["error"]["code"] == "not_found"
        assert "hidden words" not in response.text

    def test_without_a_page(self, tmp_path: Path) -> None:
        app = FastAPI()
        app.include_router(page_routes(tmp_path / "none"))
        for kind, handler in make_app().exception_handlers.items():
            app.add_exception_handler(kind, handler)
        for path in ("/", "/page/a.js"):
            response = send(app, "GET", path)
            assert (response.status_code, response.json()["error"]["code"]) == (404, "no_page")
            assert "POST /ask" in response.json()["error"]["hint"]


@pytest.mark.parametrize("path", ["/", "/health", "/settings", "/metrics", "/page/page.css", "/nothing", "/ask"])
def test_head_is_get_without_the_body(path: str) -> None:
    app = make_app()
    head, whole = send(app, "HEAD", path), send(app, "GET", path)
    assert (head.status_code, head.headers, head.content) == (whole.status_code, whole.headers, b"")
    assert whole.content


@pytest.mark.parametrize("path", ["/", "/health", "/nothing", "/ask"])
def test_headers_for_browsers(path: str) -> None:
    headers = send(make_app(), "GET", path).headers
    assert headers["content-security-policy"].startswith("default-src 'self';")
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"


def test_mounted_in_another_application() -> None:
    outer = FastAPI()
    outer.mount("/answers", make_app(max_concurrency=1))
    response = ask_at(outer, "/answers/ask", {"question": FRANCE})
    assert response.json()["answer"] == "Paris"
    wrong = {"model": "adaptllm", "messages": []}
    assert ask_at(outer, "/answers/v1/chat/completions", wrong).status_code == 400
    assert "text/html" in send(outer, "GET", "/answers/").headers["content-type"]
    assert "adaptllm_questions_total" in send(outer, "GET", "/answers/metrics").text


def ask_at(app: Any, path: str, body: dict[str, Any]) -> Any:
    return send(app, "POST", path, json=body)


def test_the_interface_is_described() -> None:
    paths = send(make_app(), "GET", "/openapi.json").json()["paths"]
    assert {"/health", "/settings", "/ask", "/v1/chat/completions", "/v1/models", "/metrics"} <= set(paths)
    schema = paths["/ask"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert set(schema["properties"]) == {"question", "mode", "threshold", "k", "stream", "popularity"}


def test_no_chain() -> None:
    with pytest.raises(InvalidInputError, match="create_app got a ScriptedLLM"):
        create_app(ScriptedLLM(script=reply))  # type: ignore[arg-type]


class SpecifiedLLM(ScriptedLLM):
    """A model with an adapter that was trained on two of the three prompts, and has a threshold."""

    prompt_spec: PromptSpec = PromptSpec(trained_on=("parametric", "context"), ret_threshold=0.95)


class TestModes:
    def settings(self, chain: AdaptiveRetrievalChain) -> dict[str, Any]:
        found: dict[str, Any] = send(make_app(chain), "GET", "/settings").json()
        return found

    def test_without_a_retriever(self) -> None:
        chain = AdaptiveRetrievalChain(llm=ScriptedLLM(script=reply), policy="never_retrieve")
        found = self.settings(chain)
        assert (found["mode"], found["modes"]) == ("never_retrieve", ["never_retrieve"])
        assert (found["k"], found["max_k"]) == (None, None)
        app = make_app(chain)
        for _ in range(2):
            response = ask(app, FRANCE, mode="adaptive")
            assert response.status_code == 422
            assert "there is no retriever" in response.json()["error"]["message"]
        assert ask(app, MILL, k=3).status_code == 200, "nothing is searched for, whatever k is"

    def test_an_adapter_that_lacks_a_prompt_and_has_a_threshold(self) -> None:
        chain = make_chain(SpecifiedLLM(script=reply))
        found = self.settings(chain)
        assert (found["modes"], found["threshold"]) == (["adaptive", "always_retrieve"], 0.95)
        app = make_app(chain)
        assert "not trained on the 'closed_book'" in ask(app, "?", mode="never_retrieve").json()["error"]["message"]
        assert ask(app, MILL, threshold=0.5).json()["retrieved"] is True
        assert ask(app, MILL, threshold=None).json()["decision"]["rule"] == "token"

    def test_the_adapter_s_threshold_is_that_of_the_mode_adaptive(self) -> None:
        chain = make_chain(SpecifiedLLM(script=reply), policy="always_retrieve")
        assert self.settings(chain)["threshold"] == 0.95

    def test_the_operator_s_threshold(self) -> None:
        chain = make_chain(policy=Adaptive(threshold=0.5))
        assert self.settings(chain)["threshold"] == 0.5
        assert ask(make_app(chain), MILL).json()["decision"]["threshold"] == 0.5

    def test_popularity(self) -> None:
        chain = make_chain(policy=PopularityThreshold(threshold=1000))
        found = self.settings(chain)
        assert (found["mode"], found["modes"][-1]) == ("popularity", "popularity")
        app = make_app(chain)
        assert [ask(app, MILL, popularity=popularity).json()["retrieved"] for popularity in (999, 1000)] == [
            True,
            False,
        ]
        assert ask(app, MILL, popularity=999, threshold=900).json()["retrieved"] is False
        response = ask(app, MILL)
        assert (response.status_code, "popularity" in response.json()["error"]["message"]) == (422, True)
        assert ask(app, MILL, threshold=None).status_code == 422

    def test_what_else_is_set_is_kept(self) -> None:
        chain = make_chain(found=[], on_empty="abstain", abstain_text="No idea.")
        assert ask(make_app(chain), FRANCE, mode="always_retrieve").json()["answer"] == "No idea."

    def test_a_retriever_without_k(self) -> None:
        chain = AdaptiveRetrievalChain(llm=ScriptedLLM(script=reply), retriever=CountingRetriever(documents=["one"]))
        assert (self.settings(chain)["k"], self.settings(chain)["max_k"]) == (None, None)
        assert ask(make_app(chain), MILL, k=None).status_code == 200
        response = ask(make_app(chain), MILL, k=2)
        assert (response.status_code, "k=2" in response.json()["error"]["message"]) == (422, True)

    def test_a_retriever_with_k_among_its_arguments(self) -> None:
        class Searching(RetrieverOfK):
            search_kwargs: dict[str, Any]

            @property
            def _own_k(self) -> int:
                k: int = self.search_kwargs.get("k", self.k)
                return k

        for arguments, k in (({}, 1), ({"k": 2}, 2)):
            retriever = Searching(documents=["one", "two", "three"], search_kwargs=arguments)
            chain = AdaptiveRetrievalChain(llm=ScriptedLLM(script=reply), retriever=retriever)
            assert self.settings(chain)["k"] == k
            app = make_app(chain)
            assert [len(ask(app, MILL, k=wanted).json()["context"]) for wanted in (None, 3)] == [k, 3]

    @pytest.mark.parametrize("wrapped", [False, True])
    def test_the_retriever_of_a_vector_store(self, *, wrapped: bool) -> None:
        store = InMemoryVectorStore.from_texts(["one", "two", "three"], DeterministicFakeEmbedding(size=4))
        retriever = store.as_retriever(search_kwargs={"k": 2})
        chain = AdaptiveRetrievalChain(
            llm=ScriptedLLM(script=reply), retriever=retriever.with_retry() if wrapped else retriever
        )
        assert self.settings(chain)["k"] == 2
        app = make_app(chain)
        assert [len(ask(app, MILL, k=wanted).json()["context"]) for wanted in (None, 1, 2, 3)] == [2, 1, 2, 3]

    def test_a_retriever_whose_k_is_a_field_that_may_be_configured(self) -> None:
        class Fixed(CountingRetriever):
            k: int = 1

            def _find(self, query: str) -> Any:
                return super()._find(query)[: self.k]

        fixed = Fixed(documents=["one", "two"])
        chain = make_chain()
        for retriever, most in ((fixed, None), (fixed.configurable_fields(k=ConfigurableField(id="k")), 50)):
            chain = AdaptiveRetrievalChain(llm=ScriptedLLM(script=reply), retriever=retriever)
            assert (self.settings(chain)["k"], self.settings(chain)["max_k"]) == (1, most)
            answers = [ask(make_app(chain), MILL, k=k) for k in (None, 1, 2)]
            assert [answer.status_code for answer in answers] == [200, 200, 422 if most is None else 200]
        assert [len(answer.json()["context"]) for answer in answers] == [1, 1, 2]

    def test_the_server_s_own_number_of_passages_may_always_be_asked_for(self) -> None:
        chain = AdaptiveRetrievalChain(
            llm=ScriptedLLM(script=reply), retriever=RetrieverOfK(documents=["one", "two", "three"], k=3)
        )
        app = make_app(chain, max_k=2)
        assert send(app, "GET", "/settings").json()["max_k"] == 3
        assert [ask(app, MILL, k=k).status_code for k in (2, 3, 4)] == [200, 200, 422]


def test_a_broken_model_does_not_break_the_next_question() -> None:
    app = make_app()
    assert [ask(app, question).status_code for question in (BROKEN, FRANCE)] == [502, 200]


class TestListening:
    def test_a_port_in_use(self) -> None:
        with listen("127.0.0.1", 0) as listener:
            port = listener.getsockname()[1]
            with pytest.raises(InvalidInputError, match=f"port {port}, cannot be listened on: .*in use"):
                listen("127.0.0.1", port)

    @pytest.mark.parametrize("host", ["203.0.113.1", "no such host"])
    def test_an_address_of_another_machine(self, host: str) -> None:
        with pytest.raises(InvalidInputError, match="an address of this machine"):
            listen(host, 0)

    def test_the_address(self) -> None:
        with listen("127.0.0.1", 0) as listener:
            assert address_of(listener) == f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_without_the_extra() -> None:
    packages = ["fastapi", "uvicorn", "prometheus_client"]
    code = f"""
import sys
for package in {packages}:
    there = sys.modules.get(package)
    sys.modules[package] = None
    try:
        import adaptllm_chain.serve
    except ImportError as error:
        print(str(error).replace("\\n", " "))
    del sys.modules[package]
    if there is not None:
        sys.modules[package] = there
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.stderr == ""
    for package, told in zip(packages, ran.stdout.splitlines(), strict=True):
        assert f"the package {package!r} is not installed" in told
        assert "pip install 'adaptllm-chain[serve]'" in told
