"""The container files, as far as that can be said without Docker: what they name exists, and what they run parses."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from adaptllm_chain.cli import serve
from adaptllm_chain.cli.app import make_parser
from tests.conftest import ROOT
from tests.packaging.project import EXTRAS, PROJECT, named_extras, packages_of

PACKAGE = ROOT / "package"
DOCKERFILES = ("Dockerfile", "Dockerfile.gpu")
FAISS = {"Dockerfile": "faiss-cpu", "Dockerfile.gpu": "faiss-gpu"}
COMPOSE = yaml.safe_load((PACKAGE / "compose.yaml").read_text(encoding="utf-8"))
CONDA = yaml.safe_load((PACKAGE / "environment.yml").read_text(encoding="utf-8"))


def instructions(name: str) -> list[tuple[str, str]]:
    """The instructions of a Dockerfile, continued lines joined, comments left out."""
    lines = [line for line in (PACKAGE / name).read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    joined = re.sub(r"\s*\\\n\s*", " ", "\n".join(lines))
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in joined.splitlines() if line)]


def all_of(name: str, instruction: str) -> list[str]:
    return [rest for word, rest in instructions(name) if word == instruction]


def last(name: str, instruction: str) -> Any:
    """The arguments, in the form of a list, of the last instruction of a kind."""
    rest = all_of(name, instruction)[-1]
    return json.loads(rest[rest.index("[") :])


def copied(name: str) -> list[str]:
    """The paths of the repository that are copied into the image."""
    return [path for rest in all_of(name, "COPY") if "--from" not in rest for path in rest.split()[:-1]]


def parse(words: list[str]) -> Any:
    assert words[0] == "adaptllm"
    return make_parser().parse_args(words[1:])


@pytest.mark.parametrize("name", DOCKERFILES)
def test_what_is_copied_exists_and_reaches_the_builder(name: str) -> None:
    ignore = (PACKAGE / f"{name}.dockerignore").read_text(encoding="utf-8").split("\n")
    let_through = {line.removeprefix("!") for line in ignore if line.startswith("!")}
    assert "*" in ignore
    assert set(copied(name)) == let_through
    assert all((ROOT / path).exists() for path in let_through)


@pytest.mark.parametrize("name", DOCKERFILES)
def test_what_the_build_reads_is_copied(name: str) -> None:
    # hatchling reads these when it builds the wheel.
    assert {"pyproject.toml", PROJECT["readme"], *PROJECT["license-files"], "adaptllm_chain"} <= set(copied(name))


@pytest.mark.parametrize("name", DOCKERFILES)
def test_the_extras_exist_and_bring_one_faiss(name: str) -> None:
    (install,) = (rest for rest in all_of(name, "RUN") if "pip install" in rest)
    extras = named_extras(install)
    assert set(extras) <= set(EXTRAS)
    packages = packages_of(*extras)
    assert {package for package in packages if package.startswith("faiss")} == {FAISS[name]}
    assert {"fastapi", "torch", "sentence-transformers"} <= packages
    assert ("bitsandbytes" in packages) == (name == "Dockerfile.gpu")
    embedded = re.search(r"^EMBEDDED := (.+)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert embedded
    assert f"pip install --no-deps {embedded[1]}" in install


@pytest.mark.parametrize("name", DOCKERFILES)
def test_the_command(name: str) -> None:
    arguments = parse(last(name, "ENTRYPOINT"))
    assert arguments.run is serve.run
    assert arguments.host == "0.0.0.0"
    assert all_of(name, "EXPOSE") == [str(arguments.port)]


@pytest.mark.parametrize("name", DOCKERFILES)
def test_it_does_not_run_as_root(name: str) -> None:
    (user,) = all_of(name, "USER")
    assert any(f"useradd --system --uid {user} " in rest for rest in all_of(name, "RUN"))
    words = [word for word, _ in instructions(name)]
    assert words.index("USER") < words.index("ENTRYPOINT")


@pytest.mark.parametrize("name", DOCKERFILES)
def test_the_commands_in_the_head(name: str) -> None:
    text = (PACKAGE / name).read_text(encoding="utf-8").partition("\nFROM")[0]
    head = re.sub(r" \\\n# +", " ", text)
    for file in re.findall(r"docker build -f (\S+)", head):
        assert (ROOT / file).samefile(PACKAGE / name)
    runs = re.findall(r"docker run .* adaptllm-chain\S*(.*)$", head, re.MULTILINE)
    assert runs
    for arguments in runs:
        parse([*last(name, "ENTRYPOINT"), *shlex.split(arguments)])


@pytest.mark.parametrize("name", DOCKERFILES)
def test_the_health_check_asks_what_the_service_answers(name: str) -> None:
    from fastapi.testclient import TestClient

    from adaptllm_chain.chain import AdaptiveRetrievalChain
    from adaptllm_chain.serve import ServerSettings, create_app
    from adaptllm_chain.testing import CountingRetriever, ScriptedLLM

    rest = all_of(name, "HEALTHCHECK")[-1]
    command = json.loads(rest[rest.index("[") :])
    assert COMPOSE["services"]["serve"]["healthcheck"]["test"][:3] == ["CMD", "python", "-c"]
    compile(command[-1], name, "exec")
    url = re.search(r"http://127\.0\.0\.1:(\d+)(/\w+)", command[-1])
    assert url
    assert [url[1]] == all_of(name, "EXPOSE")
    chain = AdaptiveRetrievalChain(llm=ScriptedLLM(script={}), retriever=CountingRetriever())
    client = TestClient(create_app(chain, ServerSettings(api_key="secret")))
    # Without the key, as the health check asks.
    assert client.get(url[2]).status_code == 200


def test_compose() -> None:
    service = COMPOSE["services"]["serve"]
    build = service["build"]
    assert (PACKAGE / build["context"]).resolve() == ROOT
    assert (ROOT / build["dockerfile"]).is_file()
    arguments = parse([*last("Dockerfile", "ENTRYPOINT"), *service["command"]])
    making = COMPOSE["services"]["index"]
    assert making["image"] == service["image"]
    made = parse(making["entrypoint"])
    assert arguments.index == made.out
    # What one writes lies in the volume that the other reads, and not at its root: the index is moved into its place.
    for name, mode in (("serve", "ro"), ("index", "rw")):
        mounts = [mount.split(":") for mount in COMPOSE["services"][name]["volumes"]]
        ((_, place, *rest),) = (mount for mount in mounts if mount[0] == "index")
        assert Path(place) in made.out.parents
        assert (rest or ["rw"]) == [mode]
    assert set(COMPOSE["volumes"]) == {"index"}
    assert set(service["environment"]) == {serve.KEY_VARIABLE}
    assert service["healthcheck"]["test"][1:] == last("Dockerfile", "HEALTHCHECK")


def test_every_variable_of_compose_has_a_default_or_a_reason() -> None:
    text = (PACKAGE / "compose.yaml").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    variables = re.findall(r"\$\{(\w+)(:[-?])?", "\n".join(lines))
    assert {name for name, _ in variables} == {"ADAPTLLM_API_KEY", "ADAPTLLM_PORT", "ADAPTLLM_DOCUMENTS"}
    assert all(default for _, default in variables)


def test_conda() -> None:
    (pip,) = (entry["pip"] for entry in CONDA["dependencies"] if isinstance(entry, dict))
    options = dict(line.split(" ", 1) for line in pip)
    assert (PACKAGE / options["-c"]).is_file()
    path, _, _ = options["-e"].partition("[")
    assert (PACKAGE / path / "pyproject.toml").samefile(ROOT / "pyproject.toml")
    assert set(named_extras(options["-e"])) <= set(EXTRAS)
    (python,) = (entry for entry in CONDA["dependencies"] if str(entry).startswith("python="))
    assert PROJECT["requires-python"] == f">={python.removeprefix('python=')}"
