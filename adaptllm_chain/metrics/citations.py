"""Reading the marks with which an answer cites its passages."""

from __future__ import annotations

import re
from dataclasses import dataclass

from adaptllm_chain.errors import InvalidInputError

# "[1]" or "[1, 2]"; what else stands in brackets is text.
_MARK = re.compile(r"\[\s*(\d+(?:\s*,\s*\d+)*)\s*\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Citations:
    """What a text cites.

    Attributes:
        passages: Numbers of the cited passages, from 1, each once, in the order of the text.
        rejected: Marks that point nowhere: 0, and numbers beyond the last passage. They are counted, for a sentence
            with such a mark has no citation recall (ALCE; Gao et al., arXiv:2305.14627).
    """

    passages: tuple[int, ...]
    rejected: int


def read_citations(text: str, passages: int) -> Citations:
    """Read the citation marks of a text.

    ``[1][2]`` and ``[1, 2]`` mean the same.

    Args:
        text: A sentence or an answer.
        passages: How many passages there were to cite.

    Returns:
        The cited passages, and how many marks point nowhere.

    Raises:
        InvalidInputError: If the number of passages is negative.
    """
    if passages < 0:
        raise InvalidInputError(f"{passages} passages", expected="0 or more")
    numbers = [int(number) for mark in _MARK.findall(text) for number in mark.split(",")]
    valid = [number for number in numbers if 1 <= number <= passages]
    return Citations(passages=tuple(dict.fromkeys(valid)), rejected=len(numbers) - len(valid))
