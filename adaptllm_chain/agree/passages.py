"""Passages in AGREE: numbered in a prompt, told apart, put to a judge of entailment."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import chain, zip_longest

from langchain_core.documents import Document

from adaptllm_chain.chain.plan import identity
from adaptllm_chain.metrics.citations import without_marks
from adaptllm_chain.prompts.templates import join_passages

# Passages a prompt: AGREE (arXiv:2311.09533) works with the five best, as ALCE (arXiv:2305.14627) does.
PASSAGES = 5


def numbered(passages: Sequence[Document]) -> str:
    """Write passages one a line, with the numbers by which they are cited.

    Args:
        passages: The passages, in order.

    Returns:
        Lines such as ``[1] Paris Paris is …``. Marks in the passages themselves are left out: they would be copied.
    """
    return "\n".join(f"[{number}] {without_marks(join_passages([p]))}" for number, p in enumerate(passages, start=1))


def premise_of(passage: Document) -> str:
    """Write a passage as the premise of a statement.

    Args:
        passage: The passage.

    Returns:
        Its title on a line of its own, as ALCE's evaluation gives it to the judge, then its text.
    """
    title = str(passage.metadata.get("title") or "")
    return f"{title}\n{passage.page_content}" if title else passage.page_content


def fresh(found: Sequence[Sequence[Document]], shown: Collection[Document] = ()) -> list[Document]:
    """Take from several searches what has not been shown, the best of each first.

    Args:
        found: The passages of each search, best first.
        shown: The passages that were shown before.

    Returns:
        Passages with distinct titles or texts, none of them among those shown.
    """
    known = set(map(identity, shown))
    in_turn = (passage for passage in chain.from_iterable(zip_longest(*found)) if passage is not None)
    return [passage for passage in distinct(in_turn) if identity(passage) not in known]


def distinct(passages: Iterable[Document]) -> list[Document]:
    """Keep the first of equal passages.

    Args:
        passages: The passages.

    Returns:
        Each once, in order.
    """
    first: dict[tuple[str, str], Document] = {}
    for passage in passages:
        first.setdefault(identity(passage), passage)
    return list(first.values())
