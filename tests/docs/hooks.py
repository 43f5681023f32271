"""What the documentation shows of the code and of other documents, read when the site is built: nothing is copied.

A page takes in a document of the repository, or a section of one, with a line of its own::

    <!-- include CONTRIBUTING.md -->
    <!-- include README.md # What was measured -->

and the help of every command with ``<!-- commands -->``. The pages of the Python reference are made here altogether: a
page for each room, with its ``__all__`` where it has one, else all its modules.
"""

from __future__ import annotations

import argparse
import ast
import posixpath
import re
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "adaptllm_chain"
REFERENCE = "Reference"
_INCLUDE = re.compile(r"^<!-- include ([\w./-]+)(?: # (.+?))? -->$", re.MULTILINE)
_COMMANDS = "<!-- commands -->"
_LINK = re.compile(r"\[([^\]]*)\]\((?!https?:|#|mailto:)([^)\s#]+)(#[^)]*)?\)")
_HELP_WIDTH = 100
# Files that stand in a room's place, and rooms that have nothing to import.
_NO_ROOMS = {"cli", "demo"}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages of the Python reference into the navigation."""
    (reference,) = (entry[REFERENCE] for entry in config.nav or () if REFERENCE in entry)
    reference += [{room or "adaptllm_chain": _page_of(room)} for room in rooms()]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the Python reference."""
    for room in rooms():
        files.append(File.generated(config, _page_of(room), content=_reference(room)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Take in what a page asks for."""

    def included(found: re.Match[str]) -> str:
        return _with_links(read_document(found[1], found[2]), found[1], page, _homes(files))

    markdown = _INCLUDE.sub(included, markdown)
    return markdown.replace(_COMMANDS, "\n".join(_commands())) if _COMMANDS in markdown else markdown


def rooms() -> list[str]:
    """Name the rooms of the package; the first, without a name, is the package itself."""
    modules = (path for path in PACKAGE.iterdir() if (path / "__init__.py").exists() or path.suffix == ".py")
    names = {path.stem for path in modules} - _NO_ROOMS
    return ["", *sorted(name for name in names if not name.startswith("_"))]


def read_document(name: str, section: str | None) -> str:
    """Read a document of the repository, or the text below one of its headings."""
    text = (ROOT / name).read_text(encoding="utf-8")
    if section is None:
        return text
    heading = re.search(rf"^(#+) {re.escape(section)}\n", text, re.MULTILINE)
    if heading is None:
        raise PluginError(f"{name} has no section {section!r}")
    rest = text[heading.end() :]
    following = re.search(rf"^#{{1,{len(heading[1])}}} ", rest, re.MULTILINE)
    return rest[: following.start()] if following else rest


def _with_links(text: str, document: str, page: Page, homes: dict[str, str]) -> str:
    """Let links between documents lead to their pages; where a file has none, name it."""

    def link(found: re.Match[str]) -> str:
        words, target, anchor = found[1], found[2], found[3] or ""
        file = posixpath.normpath(posixpath.join(posixpath.dirname(document), target))
        if not (ROOT / file).exists():
            raise PluginError(f"{document} links to {target}, which is not there")
        if file in homes:
            return f"[{words}]({posixpath.relpath(homes[file], posixpath.dirname(page.file.src_uri) or '.')}{anchor})"
        return f"`{file}`" if words.strip("`") in file else f"{words} (`{file}`)"

    return _LINK.sub(link, text)


def _homes(files: Files) -> dict[str, str]:
    """Which page shows which document as a whole."""
    homes = {"README.md": "index.md"}
    for file in files.documentation_pages():
        for name, section in _INCLUDE.findall(file.content_string):
            if not section:
                homes[name] = file.src_uri
    return homes


def _page_of(room: str) -> str:
    return f"reference/python/{room or 'adaptllm_chain'}.md"


def _reference(room: str) -> str:
    name = f"adaptllm_chain.{room}" if room else "adaptllm_chain"
    source = PACKAGE / room / "__init__.py" if (PACKAGE / room).is_dir() else PACKAGE / f"{room}.py"
    tree = ast.parse(source.read_text(encoding="utf-8"))
    lines = [f"# {name}", "", ast.get_docstring(tree) or "", ""]
    exported = _exported(tree)
    if exported:
        lines += [f"::: {name}.{item}\n" for item in exported]
    elif source.name == "__init__.py":
        modules = sorted(path.stem for path in source.parent.glob("*.py") if not path.stem.startswith("_"))
        lines += [f"::: {name}.{module}\n" for module in modules]
    else:
        lines += [f"::: {name}\n    options: {{show_root_heading: false, show_root_toc_entry: false}}\n"]
    return "\n".join(lines)


def _exported(tree: ast.Module) -> list[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(to, ast.Name) and to.id == "__all__" for to in node.targets):
            return list(ast.literal_eval(node.value))
    return []


def _commands() -> Iterator[str]:
    """The help of every command, and of the scripts that train."""
    sys.path[:0] = [str(ROOT)]
    from adaptllm_chain.cli.app import COMMANDS
    from training import algorithm1, recipe

    main: Any = argparse.ArgumentParser(prog="adaptllm")
    subparsers = main.add_subparsers()
    for command in COMMANDS:
        command.add_parser(subparsers)
    for name, parser in subparsers.choices.items():
        yield from _help(f"adaptllm {name}", parser)
    yield from _help("python training/algorithm1.py", algorithm1.make_parser())
    yield from _help("python training/sft.py", recipe.make_parser())


def _help(name: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    parser.prog = name
    parser.formatter_class = partial(argparse.HelpFormatter, width=_HELP_WIDTH)  # type: ignore[assignment]
    yield f"\n## {name}\n\n```text\n{parser.format_help()}```\n"
