"""Asking one question after the other on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from adaptllm_chain.chain import AdaptiveRetrievalChain
from adaptllm_chain.cli.answering import describe
from adaptllm_chain.cli.console import note
from adaptllm_chain.cli.display import JsonView, Tally, View

_PROMPT = "Q  "
_GOODBYES = {"", "exit", "quit"}


def converse(chain: AdaptiveRetrievalChain, view: View, extra: Mapping[str, Any]) -> Tally:
    """Ask until the user has enough: an empty line, ``exit`` or Ctrl-D. Ctrl-C ends an answer.

    Args:
        chain: The chain.
        view: Shows the answers.
        extra: Keys that go with every question.

    Returns:
        The counts.
    """
    with suppress(ImportError):
        import readline  # noqa: F401 - gives input() its line editing and history
    note("ask a question; an empty line ends")
    tally = Tally()
    for question in _typed_questions(quiet=isinstance(view, JsonView)):
        started = time.perf_counter()
        try:
            result = view.stream(chain.stream({"input": question, **extra}))
        except KeyboardInterrupt:
            note("\nstopped")
            continue
        except Exception as error:
            note(describe(error))
            tally.failed += 1
            continue
        seconds = time.perf_counter() - started
        tally.add(result, seconds)
        if isinstance(view, JsonView):
            view.answer(result, seconds)
    return tally


def _typed_questions(*, quiet: bool) -> Iterator[str]:
    while True:
        try:
            question = _read(quiet=quiet).strip()
        except EOFError:
            note("")
            return
        if question.lower() in _GOODBYES:
            return
        yield question


def _read(*, quiet: bool) -> str:
    # Editing needs the prompt to come from input(), which writes it to stdout.
    if sys.stdout.isatty() and not quiet:
        return input(_PROMPT)
    print(_PROMPT, end="", file=sys.stderr, flush=True)
    return input()
