from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from adaptllm_chain.cli import export
from adaptllm_chain.llms.embedded import EMBEDDED_BASE_NAME, embedded_adapter
from adaptllm_chain.publishing.llama_cpp import OutType
from tests.cli.conftest import Run
from tests.cli.test_app import QUICK_ONLY
from tests.publishing.test_export import make_adapter


@pytest.mark.parametrize("command", ["export", "push"])
def test_help_answers_at_once(command: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "adaptllm_chain.cli", command, "--help"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ran.stdout.startswith(f"usage: adaptllm {command}")
    imported = {line.rsplit("|", 1)[1].strip() for line in ran.stderr.splitlines() if "|" in line}
    assert imported.isdisjoint({*QUICK_ONLY, "huggingface_hub", "safetensors"})


def test_choices_are_those_of_the_library() -> None:
    assert set(export.OUT_TYPES) == set(get_args(OutType))


def test_merged(run: Run, tmp_path: Path) -> None:
    base, adapter = make_adapter(tmp_path)
    out = tmp_path / "merged"
    ran = run("export", "--adapter", adapter, "--out", out)
    assert (ran.code, ran.out) == (0, f"{out}\n")
    assert (out / "model.safetensors").is_file()
    again = run("export", "--adapter", adapter, "--out", out)
    assert (again.code, again.out) == (2, "")
    assert "--overwrite" in again.err
    assert run("export", "--adapter", adapter, "--model", base, "--out", out, "--overwrite").code == 0


def test_without_a_folder(run: Run, tmp_path: Path) -> None:
    ran = run("export", "--adapter", tmp_path, "--to", "gguf")
    assert ran.code == 2
    assert "--out DIR" in ran.err


def test_vllm_serves_the_shipped_adapter_as_it_is(run: Run) -> None:
    ran = run("export", "--adapter", "embedded", "--to", "vllm")
    assert ran.code == 0
    assert ran.out == (
        f"vllm serve {EMBEDDED_BASE_NAME} --enable-lora --lora-modules smollm2-nq={embedded_adapter()} "
        "--max-lora-rank 8\n"
    )
    assert "/v1/chat/completions" in ran.err


def test_vllm_and_another_format(run: Run, tmp_path: Path) -> None:
    _, adapter = make_adapter(tmp_path)
    ran = run("export", "--adapter", adapter, "--to", "vllm", "--name", "my adapter")
    assert "'my adapter=" in ran.out, "quoted for a shell"
    assert "/v1/completions" in ran.err


def test_vllm_refuses_an_added_token(run: Run, tmp_path: Path) -> None:
    _, adapter = make_adapter(tmp_path, token=True)
    ran = run("export", "--adapter", adapter, "--to", "vllm")
    assert (ran.code, ran.out) == (2, "")
    assert "--to merged" in ran.err


def test_llama_cpp_is_asked_for_before_anything_is_loaded(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LLAMA_CPP_DIR", raising=False)
    ran = run("export", "--adapter", tmp_path / "nowhere", "--to", "gguf", "--out", tmp_path / "out")
    assert ran.code == 2
    assert "--llama-cpp DIR" in ran.err
    assert "pip download" in ran.err


def test_a_wrong_adapter_is_an_error_and_no_traceback(run: Run, tmp_path: Path) -> None:
    ran = run("export", "--adapter", tmp_path / "nowhere", "--out", tmp_path / "out")
    assert ran.code == 2
    assert "there is no adapter" in ran.err
    ran = run("export", "--adapter", "no-such-user/no-such-adapter", "--out", tmp_path / "out")
    assert ran.code == 2
    assert "no adapter was found" in ran.err
