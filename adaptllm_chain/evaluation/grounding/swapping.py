"""Turning a sentence that a passage supports into one that it does not, by one number or one name."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence

# A whole number that stands alone: no part of a decimal, a date with dots, or a word.
_NUMBER = re.compile(r"(?<![\w.,:/-])\d{1,4}(?![\w/:-]|[.,]\d)")
# Words with capital letters inside of a sentence; at its beginning every word has one.
_NAME = re.compile(r"(?<=[a-z,;] )[A-ZÀ-ÖØ-Þ][\w'’-]+(?: [A-ZÀ-ÖØ-Þ][\w'’-]+)*")  # noqa: RUF001
# Written like names; in the place of one they would make no sense.
_CALENDAR = frozenset(
    [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
        "Monday",
        "Tuesday",
        "Wednesday",
        "Thursday",
        "Friday",
        "Saturday",
        "Sunday",
    ]
)
# How far another number lies from the right one: near enough to be taken for it.
_STEPS = (-17, -9, -4, -2, 2, 3, 8, 13)


def names_in(text: str) -> list[str]:
    """Find what looks like names in a text.

    Args:
        text: A passage or a sentence.

    Returns:
        Each name once, in order; what stands at the beginning of a sentence is left out, and so are months and days.
    """
    return list(dict.fromkeys(name[0] for name in _names(text)))


def swap_fact(sentence: str, source: str, names: Sequence[str], draw: random.Random) -> str | None:
    """Put a wrong number or name into a sentence.

    Args:
        sentence: The sentence.
        source: The passage that it was taken from; what is put in does not stand in it.
        names: Names to choose from.
        draw: Makes the choices.

    Returns:
        The sentence with one fact changed; ``None`` if it has none, or there is nothing to change it into.
    """
    facts = [*_NUMBER.finditer(sentence), *_names(sentence)]
    for fact in draw.sample(facts, len(facts)):
        others = _other_numbers(int(fact[0])) if fact[0].isdigit() else [name for name in names if name != fact[0]]
        others = [other for other in others if other not in source]
        if others:
            return sentence[: fact.start()] + draw.choice(others) + sentence[fact.end() :]
    return None


def _names(text: str) -> Iterator[re.Match[str]]:
    return (name for name in _NAME.finditer(text) if _CALENDAR.isdisjoint(name[0].split()))


def _other_numbers(number: int) -> list[str]:
    return [str(number + step) for step in _STEPS if number + step > 0 and len(str(number + step)) == len(str(number))]
