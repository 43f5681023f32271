"""What kind of thing an answer is, by its surface: what may stand in its place without being silly."""

from __future__ import annotations

import re
from typing import Literal

Kind = Literal["year", "date", "number", "name", "phrase"]

MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_NUMBER_WORDS = (
    "zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|"
    "eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million|billion"
)
_YEAR = r"1\d{3}|20\d{2}"
_DATE = rf"(?:\d{{1,2}}\s+)?(?:{MONTHS})\b(?:\s+\d{{1,2}}\b)?(?:,?\s+(?:{_YEAR})\b)?"
_FIGURE = r"\d[\d,]*(?:\.\d+)?"
# One capitalised word is a name only behind another word: the first of a sentence may be any. "of" may join names.
_CAPITALISED = r"(?:[A-Z]\.|[A-Z][\w\u2019'-]+)"
_LONG_NAME = rf"{_CAPITALISED}(?: (?:(?:of|the|de|van|von) ){{0,2}}{_CAPITALISED})+"
_NAME = rf"{_LONG_NAME}|(?<=[a-z,] ){_CAPITALISED}"

# In this order: a year is a number too, and stands in a date.
_IN_TEXT: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("date", re.compile(rf"\b{_DATE}")),
    ("year", re.compile(rf"\b(?:{_YEAR})\b(?![,.]\d)")),
    ("number", re.compile(rf"(?<![\d,.])\b{_FIGURE}\b|\b(?:{_NUMBER_WORDS})\b")),
    ("name", re.compile(_NAME)),
)


def kind_of(answer: str) -> Kind:
    """Name the kind of an answer.

    Args:
        answer: An answer.

    Returns:
        ``"year"``, ``"date"`` (a month is named), ``"number"`` (it begins with one), ``"name"`` (every longer word
        is capitalised) or ``"phrase"``.
    """
    text = answer.strip()
    if re.fullmatch(rf"(?:in |In )?(?:{_YEAR})", text):
        return "year"
    if re.search(rf"\b(?:{MONTHS})\b", text) and re.search(r"\d", text):
        return "date"
    if re.match(rf"\W*(?:{_FIGURE}|(?:{_NUMBER_WORDS})\b)", text, re.IGNORECASE):
        return "number"
    long_words = [word for word in text.split() if len(word) > 3 or word[:1].isupper()]
    return "name" if long_words and all(word[:1].isupper() for word in long_words) else "phrase"


def spans(text: str) -> list[tuple[Kind, int, int]]:
    """Find years, dates, numbers and names in a text.

    Args:
        text: A passage or a sentence.

    Returns:
        Kind, start and end of each, in characters, from left to right; no two overlap.
    """
    taken: list[tuple[Kind, int, int]] = []
    for kind, pattern in _IN_TEXT:
        for match in pattern.finditer(text):
            start, end = match.span()
            if all(end <= other_start or other_end <= start for _, other_start, other_end in taken):
                taken.append((kind, start, end))
    return sorted(taken, key=lambda span: span[1])
