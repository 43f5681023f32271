"""Reading the marks with which an answer cites its passages."""

from __future__ import annotations

import re
from dataclasses import dataclass

# Pydantic reads the schema of a TypedDict on Python < 3.12 only from typing_extensions.
from typing_extensions import TypedDict

from adaptllm_chain.errors import InvalidInputError

_PLAIN_MARK = r"\[\s*\d+(?:\s*,\s*\d+)*\s*\]"
# "[1]" or "[1, 2]", also in brackets of their own: "[[1], [2]]"; what else stands in brackets is text.
MARK = rf"(?:\[(?:[\s,]*{_PLAIN_MARK})+[\s,]*\]|{_PLAIN_MARK})"

_MARK = re.compile(MARK)
_MARK_AND_SPACE = re.compile(rf"[^\S\n]*{MARK}")
_NUMBER = re.compile(r"\d+")
# No collection of passages is that large, and int() refuses texts of some thousands of digits.
_MOST_DIGITS = 9


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


class CitedSentence(TypedDict):
    """A sentence of an answer and what it cites; plain JSON.

    Attributes:
        sentence: The sentence, without its marks.
        citations: Numbers of the cited passages, from 1, each once.
        rejected: How many of its marks point nowhere.
    """

    sentence: str
    citations: list[int]
    rejected: int


def read_citations(text: str, passages: int) -> Citations:
    """Read the citation marks of a text.

    ``[1][2]``, ``[1, 2]`` and ``[[1], [2]]`` mean the same.

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
    numbers = [_value(number) for mark in _MARK.findall(text) for number in _NUMBER.findall(mark)]
    valid = [number for number in numbers if number is not None and 1 <= number <= passages]
    return Citations(passages=tuple(dict.fromkeys(valid)), rejected=len(numbers) - len(valid))


def without_marks(text: str) -> str:
    """Take the citation marks out of a text.

    Args:
        text: A sentence, a passage or an answer.

    Returns:
        The text without marks and without the blanks before them.
    """
    return _MARK_AND_SPACE.sub("", text).strip()


def _value(number: str) -> int | None:
    return int(number) if len(number) <= _MOST_DIGITS else None
