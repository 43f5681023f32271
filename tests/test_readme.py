"""What the README shows is what happens."""

from __future__ import annotations

import contextlib
import io
import re
import tomllib

import pytest

from adaptllm_chain.cli.app import make_parser
from tests.conftest import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
CODE, OUTPUT = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", README, re.DOTALL).groups()


def test_the_first_block_is_short() -> None:
    assert len(CODE.splitlines()) <= 14


@pytest.mark.embedded
def test_the_first_block_prints_what_it_says() -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(CODE, "README.md", "exec"), {})
    assert printed.getvalue() == OUTPUT


def test_every_command_and_option_exists() -> None:
    parser = make_parser()
    for line in re.findall(r"`adaptllm ([^`]+)`", README):
        words = [word for word in line.replace('"…"', "question").split() if word != "or"]
        parser.parse_args([{"PATH…": "a.txt", "DIR": "d", "FILE": "f"}.get(word, word) for word in words])


def test_every_make_target_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"`make ([a-z-]+)", README))
    assert {"demo", "test"} <= named <= targets


def test_every_extra_exists() -> None:
    extras = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])
    table = README.partition("| extra | brings |")[2].partition("\n\n")[0]
    named = set(re.findall(r"`([a-z-]+)`", "\n".join(line.split("|")[1] for line in table.splitlines()[2:])))
    assert named <= extras
    assert set(re.findall(r"adaptllm-chain\[([a-z-]+)\]", README)) <= extras


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
