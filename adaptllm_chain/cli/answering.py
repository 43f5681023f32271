"""Putting questions to the chain batch by batch, so that the first answers do not wait for the last."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from adaptllm_chain.chain import AdaptiveRetrievalChain
from adaptllm_chain.cli.console import note, progress_bar
from adaptllm_chain.cli.display import Tally, View
from adaptllm_chain.cli.questions import Entry
from adaptllm_chain.errors import AdaptLLMError


def answer_all(
    chain: AdaptiveRetrievalChain, entries: Iterable[Entry], view: View, *, batch_size: int, total: int | None
) -> Tally:
    """Answer questions and show each batch when it is done; one that fails does not stop the others.

    Args:
        chain: The chain.
        entries: The questions; they are taken as they are needed.
        view: Shows the answers.
        batch_size: Questions that are answered together.
        total: How many there are, if that is known.

    Returns:
        The counts.
    """
    tally = Tally()
    with progress_bar("questions", total=total, hidden=total is not None and total <= batch_size) as bar:
        for batch in _batches(entries, batch_size):
            results, seconds = _ask(chain, batch)
            bar.clear()
            for entry, result in zip(batch, results, strict=True):
                if isinstance(result, Exception):
                    tally.failed += 1
                    note(f"{entry.where or 'the question'}: {describe(result)}")
                else:
                    tally.add(result, seconds)
                    view.answer(result, seconds)
            bar.update(len(batch))
    return tally


def describe(error: Exception) -> str:
    """Say what went wrong with one question.

    Args:
        error: What was raised.

    Returns:
        A message; with the kind of error in front unless it is one of ours.
    """
    return str(error) if isinstance(error, AdaptLLMError) else f"{type(error).__name__}: {error}"


def _batches(entries: Iterable[Entry], size: int) -> Iterator[list[Entry]]:
    source = iter(entries)
    while batch := list(islice(source, size)):
        yield batch


def _ask(chain: AdaptiveRetrievalChain, batch: Sequence[Entry]) -> tuple[list[Any], float]:
    """The results in order, exceptions among them, and the time that each took."""
    good: list[Any] = [entry.value for entry in batch if entry.error is None]
    started = time.perf_counter()
    answers = iter(chain.batch(good, return_exceptions=True) if good else [])
    results = [next(answers) if entry.error is None else entry.error for entry in batch]
    return results, (time.perf_counter() - started) / max(1, len(good))
