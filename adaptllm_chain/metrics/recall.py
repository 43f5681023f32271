"""How often retrieval brings a passage that holds an answer."""

from __future__ import annotations

from collections.abc import Sequence

from adaptllm_chain.errors import InvalidInputError


def recall_at(hits: Sequence[Sequence[bool]], k: int) -> float:
    """Compute for how many questions one of the first passages holds an answer.

    The top-k accuracy of open-domain retrieval (Karpukhin et al., arXiv:2004.04906, section 5), also
    called recall@k.

    Args:
        hits: For each question, whether each of its passages holds an accepted answer, best passage
            first. A question may have fewer than ``k`` passages; one without any counts as a miss.
        k: How many passages of each question are looked at, at least one.

    Returns:
        The share of the questions, in [0, 1].

    Raises:
        InvalidInputError: There are no questions, or ``k`` is less than 1.
    """
    if not hits:
        raise InvalidInputError("there are no questions", expected="at least one")
    return sum(found_within(hits, k)) / len(hits)


def found_within(hits: Sequence[Sequence[bool]], k: int) -> list[bool]:
    """Say for which questions one of the first passages holds an answer.

    Args:
        hits: As for ``recall_at``.
        k: How many passages of each question are looked at, at least one.

    Returns:
        One flag a question.

    Raises:
        InvalidInputError: ``k`` is less than 1.
    """
    if k < 1:
        raise InvalidInputError(f"k is {k}", expected="a number of passages, at least 1", hint="k=1")
    return [any(passages[:k]) for passages in hits]
