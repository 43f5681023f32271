"""The documentation: it builds without a warning, its Python runs, its commands exist.

The Python blocks of a page run in order, in one namespace; a ``text`` block right behind one is what it prints. What a
page takes for granted, and what would load or reach a model, is put in place by ``stage.py``.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import io
import os
import re
import shlex
import subprocess
import sys
import tomllib
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from adaptllm_chain.cli.app import COMMANDS, make_parser
from tests.conftest import ROOT
from tests.docs.stage import client_of_service, scripted_chain, set_stage
from tests.test_readme import CODE, OUTPUT

PACKAGE = ROOT / "package"
DOCS = PACKAGE / "docs"
TEXTS = {str(path.relative_to(DOCS).with_suffix("")): path.read_text("utf-8") for path in sorted(DOCS.rglob("*.md"))}
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PYTHON = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", re.DOTALL | re.MULTILINE)


def commands(text: str) -> Iterator[list[str]]:
    """The command lines of the bash blocks, and those that stand in the text between backquotes."""
    for language, block in BLOCK.findall(text):
        if language == "bash":
            yield from (shlex.split(line) for line in block.replace("\\\n", "").splitlines() if line)
    for line in re.findall(r"`((?:adaptllm|make|python|pip) [^`]+)`", BLOCK.sub("", text)):
        yield shlex.split(line)


ALL_COMMANDS = [(page, words) for page, text in TEXTS.items() for words in commands(text)]


# What runs.


@pytest.mark.parametrize("page", [page for page, text in TEXTS.items() if "```python" in text])
@pytest.mark.filterwarnings("ignore:.langchain-community. is being sunset:DeprecationWarning")  # LlamaIndex imports it
def test_the_python_of_a_page(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Leaves out what a page only links to: what it does not show need not be imported.
    names = set_stage("\n".join(block for language, block in BLOCK.findall(TEXTS[page])), tmp_path, monkeypatch)
    for number, (code, output) in enumerate(PYTHON.findall(TEXTS[page]), start=1):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, f"{page}.md, block {number}", "exec"), names)
        if output:
            assert printed.getvalue() == output, f"block {number}"


def test_the_first_example_is_that_of_the_readme() -> None:
    # Which is run with the real model.
    assert PYTHON.findall(TEXTS["get-started"])[0] == (CODE, OUTPUT)


@pytest.mark.parametrize(
    ("page", "words"), ALL_COMMANDS, ids=lambda value: value if isinstance(value, str) else " ".join(value)[:60]
)
def test_a_command_exists(page: str, words: list[str]) -> None:
    CHECKS[words[0]](words[1:])


def test_there_are_commands_of_each_kind() -> None:
    assert {words[0] for _, words in ALL_COMMANDS} == set(CHECKS)


def _adaptllm(arguments: list[str]) -> None:
    if len(arguments) == 1:  # the command is only spoken of
        assert arguments[0] in {command.__name__.rpartition(".")[2] for command in COMMANDS}
    else:
        make_parser().parse_args(arguments)


def _make(arguments: list[str]) -> None:
    assert set(arguments) <= set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))


def _pip(arguments: list[str]) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    named = re.findall(r"adaptllm-chain\[([a-z,-]+)\]", " ".join(arguments))
    assert arguments[0] == "install"
    assert {extra for some in named for extra in some.split(",")} <= set(extras)


def _python(arguments: list[str]) -> None:
    script, *options = arguments
    if script == "-m":  # a server of others
        return
    parser = _training_parsers()[script]
    shown = parser.format_help()
    for option in options:
        if option.startswith("--"):
            assert option in shown, option
    if "--config" in options:
        assert (ROOT / options[options.index("--config") + 1]).is_file()


@functools.cache
def _training_parsers() -> dict[str, ArgumentParser]:
    from training import algorithm1, recipe

    return {"training/algorithm1.py": algorithm1.make_parser(), "training/sft.py": recipe.make_parser()}


def _of_others(arguments: list[str]) -> None:
    """A program of others: what it is given of ours exists."""
    for argument in arguments:
        assert not argument.startswith("package/") or (ROOT / argument).is_file()


def _asks_the_service(arguments: list[str]) -> None:
    url, *options = arguments
    given = list(zip(options[::2], options[1::2], strict=True))
    headers = dict(value.split(": ") for option, value in given if option == "-H")
    headers["Authorization"] = headers["Authorization"].replace("$ADAPTLLM_API_KEY", "the-key")
    (body,) = (value for option, value in given if option == "-d")
    reply = client_of_service(scripted_chain(), "the-key").post(url, content=body, headers=headers)
    assert (reply.status_code, reply.json()["answer"]) == (200, "2002")


CHECKS: dict[str, Callable[[list[str]], None]] = {
    "adaptllm": _adaptllm,
    "make": _make,
    "pip": _pip,
    "python": _python,
    "curl": _asks_the_service,
    "docker": _of_others,
    "export": _of_others,
    "vllm": _of_others,
}


# What is shown.


class References(HTMLParser):
    """What a page makes a browser fetch."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and (name == "src" or (name == "href" and tag == "link")):
                self.fetched.append(value)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    pytest.importorskip("mkdocs", reason="the extra docs is not installed")
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(PACKAGE / "mkdocs.yml"), "-d", str(out)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return out


def test_every_page_is_built(site: Path) -> None:
    assert all((site / f"{page}.html").is_file() for page in TEXTS)
    rooms = [path.parent.name for path in (ROOT / "adaptllm_chain").glob("*/__init__.py") if path.parent.name != "cli"]
    for room in [*rooms, "errors", "records", "llama_index", "adaptllm_chain"]:
        page = (site / "reference" / "python" / f"{room}.html").read_text("utf-8")
        assert "doc-object" in page, room


def test_the_reference_shows_every_command(site: Path) -> None:
    page = (site / "reference" / "commands.html").read_text("utf-8")
    for command in COMMANDS:
        assert f"usage: adaptllm {command.__name__.rpartition('.')[2]} " in page
    assert "usage: python training/sft.py" in page


def test_documents_of_the_repository_are_shown_whole(site: Path) -> None:
    assert "Where things belong" in (site / "contributing.html").read_text("utf-8")
    results = (site / "results.html").read_text("utf-8")
    assert "right by either path (oracle)" in results
    assert 'href="training-runs.html"' in results


def test_no_page_fetches_anything_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    fetched = {reference for page in pages for reference in References(page.read_text("utf-8")).fetched}
    assert len(pages) > len(TEXTS)
    assert fetched
    assert not {reference for reference in fetched if re.match(r"(https?:)?//", reference)}


# How it is put together.


@pytest.fixture(scope="module")
def hooks() -> ModuleType:
    pytest.importorskip("mkdocs", reason="the extra docs is not installed")
    spec = importlib.util.spec_from_file_location("docs_hooks", ROOT / "tests" / "docs" / "hooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_section_ends_where_the_next_begins(hooks: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks, "ROOT", tmp_path)
    (tmp_path / "A.md").write_text("# A\n\n## one\n1\n\n### deeper\n2\n\n## two\n3\n", encoding="utf-8")
    assert hooks.read_document("A.md", "one") == "1\n\n### deeper\n2\n\n"
    assert hooks.read_document("A.md", "two") == "3\n"
    assert hooks.read_document("A.md", None).startswith("# A\n")
    with pytest.raises(hooks.PluginError, match="no section 'three'"):
        hooks.read_document("A.md", "three")


def test_links_of_a_document_lead_to_pages_or_are_named(hooks: Any) -> None:
    class Page:
        class file:  # noqa: N801
            src_uri = "results.md"

    def linked(text: str) -> str:
        return hooks._with_links(text, "training/RESULTS.md", Page, {"README.md": "index.md"})

    assert linked("[the start](../README.md#install)") == "[the start](index.md#install)"
    assert linked("[`sft.py`](sft.py) [the script](sft.py)") == "`training/sft.py` the script (`training/sft.py`)"
    assert linked("[a](https://arxiv.org) [b](#below)") == "[a](https://arxiv.org) [b](#below)"
    with pytest.raises(hooks.PluginError, match="links to gone"):
        linked("[x](gone.md)")
