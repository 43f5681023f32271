from __future__ import annotations

import re
import string
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.metrics import (
    contains_answer,
    exact_match,
    first_line_contains_answer,
    normalise_answer,
    token_f1,
)

# Short words from a small alphabet, so that articles, punctuation and overlaps happen often.
texts = st.one_of(st.text(max_size=30), st.text(alphabet="aAnTthe .,'-\n\u0301é", max_size=30))
answers = texts.filter(lambda text: bool(text.strip()))
METRICS = [exact_match, token_f1, contains_answer, first_line_contains_answer]


def reference_normalise(text: str) -> str:
    """SQuAD's steps, written again character by character from their description."""
    kept = [character for character in text.lower() if character not in string.punctuation]
    pieces = re.split(r"(\W+)", "".join(kept))
    return " ".join("".join(" " if piece in {"a", "an", "the"} else piece for piece in pieces).split())


def reference_f1(prediction: str, answer: str) -> float:
    left, right = reference_normalise(prediction).split(), reference_normalise(answer).split()
    shared = 0
    rest = list(right)
    for word in left:
        if word in rest:
            rest.remove(word)
            shared += 1
    return 2 * shared / (len(left) + len(right)) if shared else 0.0


def test_e1_a_sentence_around_the_answer() -> None:
    output, accepted = "Paris is the capital", ["Paris"]
    assert exact_match(output, accepted) is False
    assert contains_answer(output, accepted) is True
    assert token_f1(output, accepted) == 0.5


def test_e2_rambling_is_not_rewarded_on_the_first_line() -> None:
    output = "London\nQ: What is the capital of France?\nA: Paris"
    assert contains_answer(output, ["Paris"]) is True
    assert first_line_contains_answer(output, ["Paris"]) is False
    assert first_line_contains_answer(output, ["london"]) is True


@pytest.mark.parametrize(
    ("output", "accepted", "em", "f1"),
    [
        ("The  Beatles!", ["beatles"], True, 1.0),
        ("a cat and a dog", ["cat, dog"], False, 0.8),
        ("in 1969", ["July 1969", "1969"], False, 2 / 3),
        ("dog dog", ["dog"], False, 2 / 3),
        ("", ["x"], False, 0.0),
        ("U.S.", ["US"], True, 1.0),
        ("The", ["the"], True, 0.0),
        ("5\u20136", ["5-6"], False, 0.0),
    ],
)
def test_exact_match_and_f1_by_hand(output: str, accepted: list[str], em: bool, f1: float) -> None:
    assert exact_match(output, accepted) is em
    assert token_f1(output, accepted) == pytest.approx(f1)


@given(texts, st.lists(answers, min_size=1, max_size=4))
def test_exact_match_and_f1_equal_the_reference(prediction: str, accepted: list[str]) -> None:
    normalised = [reference_normalise(answer) for answer in accepted]
    assert exact_match(prediction, accepted) == (reference_normalise(prediction) in normalised)
    assert token_f1(prediction, accepted) == pytest.approx(max(reference_f1(prediction, a) for a in accepted))


@given(texts)
def test_normalisation_is_idempotent(text: str) -> None:
    once = normalise_answer(text)
    assert normalise_answer(once) == once == reference_normalise(text)


@given(texts)
def test_nfkc_normalisation_is_idempotent(text: str) -> None:
    once = normalise_answer(text, nfkc=True)
    assert normalise_answer(once, nfkc=True) == once


def test_nfkc_is_a_choice() -> None:
    full_width = "\uff11\uff10\uff4b\uff4d"
    assert normalise_answer(full_width) != "10km"
    assert normalise_answer(full_width, nfkc=True) == "10km"


@given(answers, answers)
def test_f1_is_symmetric_and_a_fraction(left: str, right: str) -> None:
    value = token_f1(left, [right])
    assert 0 <= value <= 1
    assert value == pytest.approx(token_f1(right, [left]))
    same_words = Counter(normalise_answer(left).split()) == Counter(normalise_answer(right).split())
    assert (value == 1) == (same_words and normalise_answer(left) != "")


@given(texts, st.lists(answers, min_size=1, max_size=3), answers)
def test_one_more_answer_never_lowers_a_metric(prediction: str, accepted: list[str], more: str) -> None:
    for metric in METRICS:
        assert metric(prediction, [*accepted, more]) >= metric(prediction, accepted)


@given(texts, st.lists(answers, min_size=1, max_size=3))
def test_the_first_line_is_never_more_generous(prediction: str, accepted: list[str]) -> None:
    assert first_line_contains_answer(prediction, accepted) <= contains_answer(prediction, accepted)


def test_first_line_skips_leading_blank_lines() -> None:
    assert first_line_contains_answer("\n\n  Paris.\nLondon", ["paris"])
    assert not first_line_contains_answer(" \n ", ["paris"])


def test_containment_rewards_short_aliases_by_accident() -> None:
    assert contains_answer("I do not know", ["W"])


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("accepted", [[], (), [""], ["Paris", " "], "Paris"])
def test_unusable_answers_are_refused(metric: object, accepted: object) -> None:
    with pytest.raises(InvalidInputError, match="answer"):
        metric("Paris", accepted)  # type: ignore[operator]
