"""Strict exact match and F1 are those of SQuAD v1.1's official script, to the last bit, and fall into its traps.

The script is written again here from its description (Rajpurkar et al., arXiv:1606.05250), without regular expressions:
words are runs of letters, digits and underscores. What other tests say of single steps is not repeated.
"""

from __future__ import annotations

import string
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptllm_chain.metrics import contains_answer, exact_match, normalise_answer, token_f1

E_WITH_ACCENT, E_AND_ACCENT = "\u00e9", "e\u0301"
TRAPS = [
    "the", "The", "A", "an", "a-n", "theatre", "a_", "W", "w", "1,000", "1000", "1000.0", "10,000", "\uff11\uff10",
    "10", "1\u00bd", "caf" + E_WITH_ACCENT, "caf" + E_AND_ACCENT, "a\u0301", "\u00e1", "\u00c0", "\u0130",
    "stra\u00dfe", "5\u20136", "5-6", "O\u2019Hara", "O'Hara", "\u201cthe\u201d", '"the"', "\u00a0", "\u200b", "\u3000",
    "\n", "...", "\u0661\u0662", "\ufb01n", "\u00b2",
]  # fmt: skip
trap_texts = st.builds("".join, st.lists(st.sampled_from([*TRAPS, " ", " ", " "]), max_size=8))
texts = st.one_of(trap_texts, st.text(max_size=20))
accepted_answers = st.lists(texts.filter(lambda text: bool(text.strip())), min_size=1, max_size=4)


def official_words(text: str) -> list[str]:
    bare = "".join(character for character in text.lower() if character not in string.punctuation)
    runs = ["".join(run) for _, run in groupby(bare, key=lambda character: character.isalnum() or character == "_")]
    return "".join(" " if run in ("a", "an", "the") else run for run in runs).split()


def official_f1(prediction: str, answer: str) -> float:
    said, wanted = official_words(prediction), official_words(answer)
    same = sum(min(said.count(word), wanted.count(word)) for word in set(said))
    if not same:
        return 0
    precision, recall = 1.0 * same / len(said), 1.0 * same / len(wanted)
    return (2 * precision * recall) / (precision + recall)


@given(texts, accepted_answers)
def test_both_metrics_equal_the_official_ones(prediction: str, accepted: list[str]) -> None:
    said = " ".join(official_words(prediction))
    assert exact_match(prediction, accepted) == max(said == " ".join(official_words(answer)) for answer in accepted)
    assert token_f1(prediction, accepted) == max(official_f1(prediction, answer) for answer in accepted)


@pytest.mark.parametrize(
    ("output", "answer", "em", "f1", "contained"),
    [
        pytest.param("caf" + E_AND_ACCENT, "caf" + E_WITH_ACCENT, False, 0, False, id="an accent of its own"),
        pytest.param("a\u0301", "\u0301", True, 1, True, id="the letter below an accent is an article"),
        pytest.param("\uff11\uff10", "10", False, 0, False, id="full-width digits"),
        pytest.param("5\u20136 km", "5-6 km", False, 0.5, False, id="a dash is no hyphen"),
        pytest.param("O\u2019Hara", "O'Hara", False, 0, False, id="a typographic apostrophe"),
        pytest.param("\u201cHair\u201d", '"Hair"', False, 0, False, id="typographic quotes"),
        pytest.param("about\u00a0ten", "about ten", True, 1, False, id="a space that does not break"),
        pytest.param("1,000", "1000", True, 1, False, id="a comma for thousands"),
        pytest.param("1000.0", "1000", False, 0, True, id="a decimal point"),
        pytest.param("1000.0", "10,000", True, 1, False, id="ten times as many"),
        pytest.param("10.00", "1000", True, 1, False, id="a hundred times as many"),
        pytest.param("-5", "5", True, 1, True, id="the sign is punctuation"),
        pytest.param("in 2015", "15", False, 0, True, id="a number within a number"),
        pytest.param("George Walker Bush", "W", False, 0, True, id="one letter within a word"),
        pytest.param("W.", "W", True, 1, True, id="one letter"),
        pytest.param("A", "a", True, 0, True, id="one letter that is an article"),
        pytest.param("The Hague", "Hague", True, 1, True, id="an article that is part of the name"),
        pytest.param("", "The", True, 0, False, id="an empty output equals an article"),
        pytest.param("...", "The", True, 0, False, id="punctuation equals an article"),
        pytest.param("", "W", False, 0, False, id="an empty output"),
        pytest.param("a b", "The The", False, 0, False, id="nothing is left of the answer"),
    ],
)
def test_traps(output: str, answer: str, em: bool, f1: float, contained: bool) -> None:
    assert exact_match(output, [answer]) is em
    assert token_f1(output, [answer]) == f1
    assert contains_answer(output, [answer]) is contained


def test_nfkc_closes_the_traps_of_spelling_but_not_those_of_typography() -> None:
    def same(left: str, right: str) -> bool:
        return normalise_answer(left, nfkc=True) == normalise_answer(right, nfkc=True)

    assert same("caf" + E_AND_ACCENT, "caf" + E_WITH_ACCENT)
    assert same("\ufb01n", "fin")
    assert not same("5\u20136", "5-6")
    assert not same("O\u2019Hara", "O'Hara")
