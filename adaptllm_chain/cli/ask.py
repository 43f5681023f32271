"""``adaptllm ask``: questions in, decisions and answers out."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adaptllm_chain.cli.options import (
    add_decision_options,
    add_index_options,
    add_mode_options,
    add_model_options,
)
from adaptllm_chain.errors import InvalidInputError

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    from adaptllm_chain.cli.questions import Entry


def add_parser(subparsers: Any) -> None:
    """Add the command.

    Args:
        subparsers: What ``ArgumentParser.add_subparsers`` returned.
    """
    parser = subparsers.add_parser(
        "ask",
        help="ask questions",
        description="Answers questions and says for each whether it was answered from memory or with retrieval, and "
        "why. Without a question it reads them from a pipe, one a line, or asks for them on a terminal.",
    )
    add_arguments(parser)
    parser.set_defaults(run=run)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command.

    Args:
        parser: Its parser.
    """
    parser.add_argument("questions", nargs="*", metavar="question", help="a question; put it in quotes")
    parser.add_argument(
        "--file", type=Path, metavar="F", help="a file with one question a line; in a .jsonl, one JSON object a line"
    )
    add_index_options(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object a line on stdout, and nothing else")
    add_mode_options(parser)
    add_decision_options(parser)
    add_model_options(parser)


def run(arguments: argparse.Namespace, embedder: Embeddings | None = None) -> int:
    """Answer the questions.

    Args:
        arguments: The parsed options.
        embedder: The embedder of the index, if it is loaded already.

    Returns:
        0, or 1 if some of several questions failed.

    Raises:
        AdaptLLMError: If nothing can be asked, or the only question failed.
    """
    from adaptllm_chain.cli.answering import answer_all
    from adaptllm_chain.cli.chain_loading import choose_policy, open_chain
    from adaptllm_chain.cli.display import JsonView, TextView
    from adaptllm_chain.cli.questions import count_in_file, missing_popularity, no_question

    choose_policy(arguments)
    if not arguments.questions and arguments.file is None and sys.stdin is None:
        raise InvalidInputError("there is no stdin to read questions from", expected="a question, or --file")
    total = _count(arguments, count_in_file)
    talks = total is None and arguments.file is None and sys.stdin.isatty()
    lacks_popularity = arguments.mode == "popularity" and arguments.popularity is None
    if lacks_popularity and (talks or not _may_bring_popularity(arguments)):
        raise missing_popularity()
    chain = open_chain(arguments, embedder)
    view = JsonView() if arguments.json else TextView()
    if talks:
        from adaptllm_chain.cli.interactive import converse

        extra = {} if arguments.popularity is None else {"popularity": arguments.popularity}
        tally = converse(chain, view, extra)
    elif total == 1 and arguments.questions:
        return _answer_one(arguments, chain, view)
    else:
        tally = answer_all(chain, _entries(arguments), view, batch_size=arguments.batch_size, total=total)
    if arguments.file is not None and not tally.answered + tally.failed:
        raise no_question(arguments.file)
    if tally.answered + tally.failed > 1:
        view.summary(tally)
    return 1 if tally.failed and not talks else 0


def defaults(**changed: Any) -> argparse.Namespace:
    """Make the options of this command for another that asks questions too.

    Args:
        **changed: The options that differ from the defaults.

    Returns:
        The options.
    """
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    arguments = parser.parse_args([])
    for name, value in changed.items():
        setattr(arguments, name, value)
    return arguments


def _count(arguments: argparse.Namespace, count_in_file: Any) -> int | None:
    """How many questions there will be; ``None`` if they come through a pipe or from a user."""
    if not arguments.questions and arguments.file is None:
        return None
    in_file = count_in_file(arguments.file) if arguments.file is not None else 0
    return None if in_file is None else len(arguments.questions) + int(in_file)


def _may_bring_popularity(arguments: argparse.Namespace) -> bool:
    """Whether questions may be rows, which can have a popularity of their own."""
    if arguments.questions:
        return False
    return arguments.file is None or arguments.file.suffix == ".jsonl"


def _entries(arguments: argparse.Namespace) -> Iterator[Entry]:
    from adaptllm_chain.cli.questions import in_file, in_lines, typed, with_popularity

    def entries() -> Iterator[Entry]:
        yield from typed(arguments.questions)
        if arguments.file is not None:
            yield from in_file(arguments.file)
        elif not arguments.questions:
            yield from in_lines(sys.stdin.buffer, "stdin", "either")

    return with_popularity(entries(), arguments.popularity) if arguments.mode == "popularity" else entries()


def _answer_one(arguments: argparse.Namespace, chain: Any, view: Any) -> int:
    entry = next(_entries(arguments))
    started = time.perf_counter()
    result = chain.invoke(entry.value)
    view.answer(result, time.perf_counter() - started)
    return 0
