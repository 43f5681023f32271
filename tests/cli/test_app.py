from __future__ import annotations

import subprocess
import sys
from typing import get_args

import pytest

from adaptllm_chain.cli import app, index, options
from adaptllm_chain.errors import InvalidInputError
from tests.cli.conftest import Run

QUICK_ONLY = ("torch", "transformers", "faiss", "numpy", "langchain_core", "pydantic", "tqdm", "importlib.metadata")


COMMANDS = (
    [],
    ["ask"],
    ["index"],
    ["demo"],
    ["doctor"],
    ["stats"],
    ["evaluate"],
    ["report"],
    ["calibrate"],
    ["export"],
    ["push"],
    ["serve"],
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_answers_at_once(command: list[str]) -> None:
    ran = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "adaptllm_chain.cli", *command, "--help"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ran.returncode == 0
    assert ran.stdout.startswith("usage: adaptllm")
    imported = {line.rsplit("|", 1)[1].strip() for line in ran.stderr.splitlines() if "|" in line}
    assert "argparse" in imported
    assert imported.isdisjoint(QUICK_ONLY)


def test_choices_are_those_of_the_library() -> None:
    from adaptllm_chain.chain import OnEmpty
    from adaptllm_chain.llms.loading import LoadIn
    from adaptllm_chain.ret import PolicyName
    from adaptllm_chain.retrieval.embeddings import Device
    from adaptllm_chain.retrieval.faiss_library import Metric

    assert set(options.MODES) == set(get_args(PolicyName))
    assert set(options.ON_EMPTY) == set(get_args(OnEmpty))
    assert set(options.LOAD_IN) == set(get_args(LoadIn))
    assert set(index.DEVICES) == set(get_args(Device))
    assert set(index.METRICS) == set(get_args(Metric))


def test_version(run: Run) -> None:
    ran = run("--version")
    assert (ran.code, ran.out.split()[0]) == (0, "adaptllm")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["unknown"],
        ["ask", "q", "--k", "0"],
        ["ask", "q", "--k", "two"],
        ["ask", "q", "--mode", "sometimes"],
        ["ask", "q", "--threshold", "much"],
        ["ask", "q", "--threshold", "nan"],
        ["ask", "q", "--threshold", "-1"],
        ["index", "x", "--out", "y", "--column", "body"],
        ["index", "x", "--out", "y", "--encoding", "utf-99"],
        ["index", "x"],
    ],
)
def test_wrong_usage(run: Run, arguments: list[str]) -> None:
    ran = run(*arguments)
    assert ran.code == 2
    assert ran.err.startswith("usage: adaptllm")
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (InvalidInputError("bad", hint="good"), 2, "adaptllm: bad\n  try: good\n"),
        (KeyboardInterrupt(), 130, "\nadaptllm: stopped\n"),
    ],
)
def test_errors_become_exit_codes(
    run: Run, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, message: str
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr(app.doctor, "examine", fail)
    ran = run("doctor")
    assert (ran.code, ran.out, ran.err) == (code, "", message)


def test_reader_that_goes_away() -> None:
    code = """
        import sys
        from adaptllm_chain.cli import doctor, main
        doctor._as_text = lambda report: "x" * 1_000_000
        doctor.examine = lambda: {"ready": True}
        sys.exit(main(["doctor"]))
    """
    code = "\n".join(line.strip() for line in code.splitlines())
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(timeout=60) == app.PIPE_CLOSED
