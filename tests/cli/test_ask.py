from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from adaptllm_chain.cli import embedder_loading, model_loading
from adaptllm_chain.testing import ScriptedLLM
from tests.cli.conftest import Run
from tests.cli.stand_ins import WordEmbedder

FRANCE = "What is the capital of France?"
MILL = "Who built the mill at Lindow?"
LAMP = "When was the lamp of Corran lighted?"
KEYS = {"input", "answer", "retrieved", "ret_probability", "decision", "context", "seconds"}


def test_text(run: Run, index: Path) -> None:
    ran = run("ask", FRANCE, MILL, "--index", index)
    assert ran.code == 0
    blocks = ran.out.split("\n\n")
    assert blocks[0].splitlines()[:3] == [
        f"Q  {FRANCE}",
        "   direct by token: the model answered; P(RET) = 0.050",
        "A  Paris",
    ]
    assert "retrieve by token: the model asked for retrieval; P(RET) = 0.900" in blocks[1]
    assert "passage: [The mill at Lindow] The mill at Lindow was built by Ada Holm" in blocks[1] or (
        "[The mill at Lindow] was built by Ada Holm" in blocks[1]
    )
    assert "A  according to: " in blocks[1]
    assert blocks[2].startswith("2 answers: 1 from memory, 1 with retrieval; 1 of 2 retrievals saved")


def test_json(run: Run, index: Path) -> None:
    ran = run("ask", FRANCE, MILL, "--index", index, "--json")
    assert ran.code == 0
    first, second = ran.rows
    assert set(first) == set(second) == KEYS
    assert first["answer"] == "Paris"
    assert first["context"] == []
    assert second["retrieved"] is True
    assert second["ret_probability"] == 0.9
    assert second["decision"] == {
        "route": "retrieve",
        "rule": "token",
        "reason": "the model asked for retrieval",
        "threshold": None,
        "signal": {"probability": 0.9, "kind": "exact"},
    }
    (passage,) = second["context"]
    assert set(passage) == {"title", "text", "score", "source"}
    assert passage["title"] == "The mill at Lindow"
    assert passage["source"].endswith("mill.md")
    assert passage["score"] > 0
    assert second["seconds"] >= 0
    assert "1 of 2 retrievals saved" in ran.err


def test_k(run: Run, index: Path) -> None:
    assert [len(row["context"]) for row in run("ask", MILL, "--index", index, "--json", "--k", 2).rows] == [2]


@pytest.mark.parametrize(
    ("options", "retrieved", "rule"),
    [
        (["--mode", "always_retrieve"], [True, True], "always"),
        (["--mode", "never_retrieve"], [False, False], "never"),
        (["--mode", "adaptive"], [False, True], "token"),
        (["--threshold", "none"], [False, True], "token"),
        (["--threshold", "0.95"], [False, False], "probability"),
        (["--threshold", "0.5"], [False, True], "probability"),
        (["--threshold", "0.01"], [True, True], "probability"),
        (["--mode", "popularity", "--threshold", "1000", "--popularity", "999"], [True, True], "popularity"),
        (["--mode", "popularity", "--threshold", "1000", "--popularity", "1000"], [False, False], "popularity"),
    ],
)
def test_modes_and_thresholds(run: Run, index: Path, options: list[str], retrieved: list[bool], rule: str) -> None:
    rows = run("ask", FRANCE, MILL, "--index", index, "--json", *options).rows
    assert [row["retrieved"] for row in rows] == retrieved
    assert {row["decision"]["rule"] for row in rows} == {rule}


def test_never_retrieve_needs_no_documents(run: Run, llm: ScriptedLLM, monkeypatch: pytest.MonkeyPatch) -> None:
    """Case D4: mode never, threshold none, no documents, one question."""

    def fail(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr(embedder_loading, "load_embedder", fail)
    ran = run("ask", MILL, "--mode", "never_retrieve", "--threshold", "none")
    assert (ran.code, ran.err) == (0, "")
    assert "A  a guess" in ran.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--mode", "popularity"], "needs a threshold"),
        (["--mode", "popularity", "--threshold", "9"], "how popular the subject"),
        (["--popularity", "9"], "--popularity says nothing to --mode adaptive"),
        (["--threshold", "2"], "is no probability"),
        (["--mode", "always_retrieve", "--threshold", "0.5"], "says nothing to --mode always_retrieve"),
    ],
)
def test_options_that_do_not_go_together(run: Run, llm: ScriptedLLM, options: list[str], message: str) -> None:
    ran = run("ask", MILL, *options)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert "loading" not in ran.err


@pytest.mark.parametrize(
    ("option", "code", "answer"), [("answer", 0, "a guess"), ("abstain", 0, "I don't know."), ("raise", 2, None)]
)
def test_on_empty(
    run: Run, index: Path, monkeypatch: pytest.MonkeyPatch, option: str, code: int, answer: str | None
) -> None:
    from adaptllm_chain.retrieval.store import FaissPassageStore

    monkeypatch.setattr(FaissPassageStore, "search_batch", lambda self, queries, k=4: [[] for _ in queries])
    ran = run("ask", MILL, "--index", index, "--on-empty", option, "--json")
    assert ran.code == code
    assert [row["answer"] for row in ran.rows] == ([] if answer is None else [answer])
    assert ("brought nothing" in ran.err) is (answer is None)


class TestFiles:
    def test_one_a_line(self, run: Run, index: Path, tmp_path: Path) -> None:
        file = tmp_path / "q.txt"
        file.write_text(f"\ufeff{FRANCE}\n\n  {MILL}\n{LAMP}\n")
        ran = run("ask", "--index", index, "--file", file, "--json")
        assert [row["input"] for row in ran.rows] == [FRANCE, MILL, LAMP]
        assert ran.code == 0

    def test_rows_with_popularity(self, run: Run, index: Path, tmp_path: Path) -> None:
        file = tmp_path / "q.jsonl"
        rows = [
            {"question": FRANCE, "popularity": 5000, "id": "a"},
            {"question": MILL, "popularity": 3},
            {"question": LAMP},
        ]
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        common = ("ask", "--index", index, "--file", file, "--json", "--mode", "popularity", "--threshold", 1000)
        ran = run(*common)
        assert ran.code == 1
        assert [row["retrieved"] for row in ran.rows] == [False, True]
        assert ran.rows[0]["id"] == "a"
        assert "q.jsonl, line 3: --mode popularity has to know" in ran.err
        assert "1 failed" in ran.err
        ran = run(*common, "--popularity", 2000)
        assert (ran.code, [row["retrieved"] for row in ran.rows]) == (0, [False, True, False])

    def test_lines_of_text_have_no_popularity(self, run: Run, index: Path, tmp_path: Path) -> None:
        file = tmp_path / "q.txt"
        file.write_text(MILL)
        ran = run("ask", "--index", index, "--file", file, "--mode", "popularity", "--threshold", 9)
        assert ran.code == 2
        assert "how popular the subject" in ran.err

    def test_one_bad_line_does_not_stop_the_others(self, run: Run, index: Path, tmp_path: Path) -> None:
        file = tmp_path / "q.jsonl"
        lines = [
            json.dumps({"question": FRANCE}).encode(),
            b"{not json",
            b"[1, 2]",
            b'{"text": "no question"}',
            b'{"question": "\xff"}',
            b'{"question": "this one is too long"}',
            json.dumps({"question": MILL}).encode(),
        ]
        file.write_bytes(b"\n".join(lines))
        ran = run("ask", "--index", index, "--file", file, "--json", "--batch-size", 3)
        assert ran.code == 1
        assert [row["input"] for row in ran.rows] == [FRANCE, MILL]
        for number, message in [
            (2, "not JSON"),
            (3, "a JSON list"),
            (4, "no question in the input"),
            (5, "not UTF-8"),
            (6, "ValueError: the prompt is too long"),
        ]:
            assert f"line {number}: {message}" in ran.err
        assert "2 answers: 1 from memory, 1 with retrieval, 5 failed" in ran.err

    def test_a_thousand_are_answered_in_batches(self, run: Run, index: Path, llm: ScriptedLLM, tmp_path: Path) -> None:
        """Case B5."""
        file = tmp_path / "q.txt"
        file.write_text(f"{FRANCE}\n" * 1000)
        ran = run("ask", "--index", index, "--file", file, "--json", "--batch-size", 100)
        assert [len(call) for call in llm.calls] == [100] * 10
        assert len(ran.rows) == 1000
        assert "questions" in ran.err, "the progress bar"

    def test_answers_do_not_wait_for_the_last_question(
        self, index: Path, llm: ScriptedLLM, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from adaptllm_chain.chain import AdaptiveRetrievalChain
        from adaptllm_chain.cli.answering import answer_all
        from adaptllm_chain.cli.display import TextView
        from adaptllm_chain.cli.questions import Entry

        taken = []
        shown: list[int] = []
        monkeypatch.setattr(TextView, "answer", lambda self, result, seconds: shown.append(len(taken)))

        def entries():
            for number in range(6):
                taken.append(number)
                yield Entry({"input": FRANCE})

        chain = AdaptiveRetrievalChain(llm=llm, policy="never_retrieve")
        answer_all(chain, entries(), TextView(), batch_size=2, total=None)
        assert shown == [2, 2, 4, 4, 6, 6]

    @pytest.mark.parametrize("text", ["", "\n\n", None])
    def test_nothing_in_the_file(self, run: Run, llm: ScriptedLLM, tmp_path: Path, text: str | None) -> None:
        file = tmp_path / "q.txt"
        if text is not None:
            file.write_text(text)
        ran = run("ask", "--file", file)
        assert ran.code == 2
        assert str(file) in ran.err
        assert "loading" not in ran.err


def test_a_question_alone_that_fails(run: Run, index: Path) -> None:
    ran = run("ask", "  ", "--index", index)
    assert (ran.code, ran.out) == (2, "")
    assert "is empty" in ran.err


def test_one_of_two_questions_fails(run: Run, index: Path) -> None:
    ran = run("ask", "", FRANCE, "--index", index)
    assert ran.code == 1
    assert "A  Paris" in ran.out
    assert "question 1: the question" in ran.err


def test_piped(run: Run, index: Path) -> None:
    stdin = f"{FRANCE}\n" + json.dumps({"question": MILL}) + "\n{odd} braces?\n"
    rows = run("ask", "--index", index, "--json", stdin=stdin).rows
    assert [row["input"] for row in rows] == [FRANCE, MILL, "{odd} braces?"]


def test_nothing_piped(run: Run, index: Path) -> None:
    ran = run("ask", "--index", index)
    assert (ran.code, ran.out) == (0, "")


class TestIndexes:
    def test_the_bundled_corpus_is_indexed_once(self, run: Run, llm: ScriptedLLM, cache: Path) -> None:
        question = "Which elephant fell out of the Wuppertal Schwebebahn?"
        ran = run("ask", question, "--json")
        assert ran.rows[0]["context"][0]["title"] == "Wuppertal Schwebebahn"
        assert "indexed the bundled corpus" in ran.err
        (folder,) = (cache / "adaptllm").iterdir()
        ran = run("ask", question, "--json")
        assert ran.rows[0]["retrieved"] is True
        assert "indexed" not in ran.err
        (folder / "index.faiss").write_bytes(b"cut short")
        ran = run("ask", question, "--json")
        assert (ran.code, ran.rows[0]["retrieved"]) == (0, True)
        assert "indexed the bundled corpus" in ran.err
        assert list((cache / "adaptllm").iterdir()) == [folder]

    def test_a_cache_that_cannot_be_used(self, run: Run, llm: ScriptedLLM, cache: Path) -> None:
        cache.write_text("a file")
        ran = run("ask", MILL, "--json")
        assert (ran.code, len(ran.rows)) == (0, 1)
        assert "cannot be used" in ran.err

    def test_the_embedder_is_that_of_the_index(self, run: Run, index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        seen: list[object] = []
        monkeypatch.setattr(
            embedder_loading, "load_embedder", lambda name, **given: seen.append((name, given)) or WordEmbedder()
        )
        run("ask", MILL, "--index", index)
        run("ask", MILL, "--index", index, "--embeddings", "moved", "--device", "cuda:1")
        run("ask", MILL, "--index", index, "--device", "mps")
        assert seen == [("words", {"device": "auto"}), ("moved", {"device": "cuda"}), ("words", {"device": "cpu"})]

    def test_no_index(self, run: Run, llm: ScriptedLLM, tmp_path: Path) -> None:
        ran = run("ask", MILL, "--index", tmp_path)
        assert ran.code == 2
        assert "manifest.json" in ran.err
        assert "loading" not in ran.err

    def test_made_in_python(self, run: Run, index: Path) -> None:
        manifest = json.loads((index / "manifest.json").read_text())
        manifest["embedder"] = {"class": "OpenAIEmbeddings", "name": "text-embedding-3-small"}
        (index / "manifest.json").write_text(json.dumps(manifest))
        ran = run("ask", MILL, "--index", index)
        assert ran.code == 2
        assert "OpenAIEmbeddings" in ran.err


class TestAdapters:
    @pytest.mark.parametrize(
        ("options", "adapter"),
        [
            ([], "embedded"),
            (["--adapter", "none"], None),
            (["--adapter", "mine"], "mine"),
            (["--model", "m"], None),
            (["--model", "m", "--adapter", "mine"], "mine"),
        ],
    )
    def test_what_is_loaded(
        self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], adapter: str | None
    ) -> None:
        from adaptllm_chain.llms import LocalLLM, embedded

        seen = []
        monkeypatch.setattr(embedded, "embedded_adapter", lambda: tmp_path)
        monkeypatch.setattr(
            LocalLLM,
            "from_pretrained",
            lambda *given, **named: seen.append((given, named)) or ScriptedLLM(script={"": "x"}),
        )
        common = ["ask", "q", "--mode", "never_retrieve", "--dtype", "bfloat16", "--device", "cpu", "--batch-size", 3]
        ran = run(*common, "--max-new-tokens", 5, "--load-in", "8bit", *options)
        assert ran.code == 0
        model = options[1] if options[:1] == ["--model"] else "embedded"
        named = {"dtype": "bfloat16", "device": "cpu", "load_in": "8bit", "batch_size": 3, "max_new_tokens": 5}
        assert seen == [((model,), {"adapter": adapter, **named})]

    def test_embedded_adapter_for_another_model(self, run: Run) -> None:
        ran = run("ask", "q", "--model", "m", "--adapter", "embedded")
        assert ran.code == 2
        assert "--model m --adapter none" in ran.err

    def test_shipped_adapter_is_gone(self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from adaptllm_chain.llms import embedded

        monkeypatch.setattr(embedded, "embedded_adapter", lambda: tmp_path / "gone")
        ran = run("ask", "q")
        assert ran.code == 2
        assert "--adapter none" in ran.err


def test_libraries_that_print_leave_stdout_alone(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from adaptllm_chain.llms import LocalLLM

    def chatty(*_: object, **__: object) -> ScriptedLLM:
        print("Welcome!")
        return ScriptedLLM(script={"": "x"})

    monkeypatch.setattr(LocalLLM, "from_pretrained", chatty)
    ran = run("ask", "q", "--mode", "never_retrieve", "--adapter", "none", "--json")
    assert ran.rows[0]["answer"] == "x"
    assert "Welcome!" in ran.err
    assert model_loading.check_adapter is not None


def test_stdout_that_is_not_utf8(index: Path, tmp_path: Path) -> None:
    question = "What is the capital of France, Zoë?"
    command = [sys.executable, "-m", "tests.cli.stand_ins", "ask", question, "--index", str(index)]
    import os

    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    text = subprocess.run(command, capture_output=True, check=False, timeout=60, env=env)
    assert (text.returncode, b"Zo?" in text.stdout) == (0, True)
    rows = subprocess.run([*command, "--json"], capture_output=True, check=False, timeout=60, env=env)
    assert json.loads(rows.stdout)["input"] == question
