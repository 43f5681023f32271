"""Where the words of an answer stand in a passage."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from adaptllm_chain.metrics import normalise_answer

# Words that say nothing by themselves. The articles are gone: normalisation drops them.
_STOP_WORDS = """
about after all also and any are as at be been before being both but by can could did do does for from had has have he
her him his how i if in into is it its itself may me more most my no nor not of on one or other our out over she so some
such than that their them then there these they this those through to under until up upon was we were what when where
which while who whom whose why will with would you your
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())

_TOKEN = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class _Word:
    text: str
    start: int
    end: int


def find_marks(text: str, answer: str) -> list[tuple[int, int]]:
    """Find where a text says what an answer says.

    Words are compared as the metrics compare answers (``normalise_answer``). The longest run of words that stands in
    both is marked first, then the longest in what is left, and so on. A run of stop words alone is not marked.

    Args:
        text: The text.
        answer: The answer.

    Returns:
        Ranges ``(start, end)`` in characters (Unicode code points), end excluded; sorted and disjoint. The punctuation
        around a run is left out.
    """
    words = _words(text)
    runs = _common_runs([word.text for word in words], normalise_answer(answer).split())
    return [(words[first].start, words[last - 1].end) for first, last in sorted(runs)]


def _words(text: str) -> list[_Word]:
    """The normalised words. A token that becomes several counts as one that no answer has: it has but one place."""
    found = []
    for token in _TOKEN.finditer(text):
        bare = token[0].strip(string.punctuation)
        start = token.start() + token[0].find(bare)
        if normalised := normalise_answer(bare):
            found.append(_Word(normalised, start, start + len(bare)))
    return found


def _common_runs(words: Sequence[str], answer: Sequence[str]) -> Iterator[tuple[int, int]]:
    lengths = _run_lengths(words, answer)
    stretches = list(_stretches(lengths))
    while stretches:
        first, last = stretches.pop()
        start, end = _longest(lengths, first, last)
        if any(word not in STOP_WORDS for word in words[start:end]):
            yield start, end
        stretches += [(low, high) for low, high in ((first, start), (end, last)) if low < high]


def _longest(lengths: Sequence[int], first: int, last: int) -> tuple[int, int]:
    """The longest run within a stretch; of equally long ones the first."""
    length, start = max((min(lengths[place], last - place), -place) for place in range(first, last))
    return -start, length - start


def _run_lengths(words: Sequence[str], answer: Sequence[str]) -> list[int]:
    """For each word: how long the longest run is that starts there and stands in the answer too."""
    places: dict[str, list[int]] = {}
    for place, word in enumerate(answer):
        places.setdefault(word, []).append(place)
    lengths = [0] * len(words)
    following: dict[int, int] = {}
    for index in range(len(words) - 1, -1, -1):
        following = {place: following.get(place + 1, 0) + 1 for place in places.get(words[index], ())}
        lengths[index] = max(following.values(), default=0)
    return lengths


def _stretches(lengths: Sequence[int]) -> Iterator[tuple[int, int]]:
    """What lies between words that the answer lacks: no run reaches beyond one."""
    start = None
    for index, length in enumerate([*lengths, 0]):
        if length and start is None:
            start = index
        elif not length and start is not None:
            yield start, index
            start = None
