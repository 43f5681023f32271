from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adaptllm_chain.metrics import normalise_answer
from adaptllm_chain.serve.marks import STOP_WORDS, find_marks

# Few words, so that texts and answers share runs, and what normalisation does most to.
WORDS = st.sampled_from(
    [
        "Ada",
        "ada,",
        "Holm",
        "(Holm)",
        "the",
        "a",
        "of",
        "in",
        "1881",
        "1,881.",
        "mill",
        "\u2013",
        "x\u2013a\u2013y",
        "U.S.",
        "'",
        "ΑΣ",
        "ΑΣ.",
    ]
)
TEXTS = st.lists(WORDS, max_size=14).map(" ".join) | st.text(max_size=40)


def marked(text: str, answer: str) -> list[str]:
    return [text[start:end] for start, end in find_marks(text, answer)]


@pytest.mark.parametrize(
    ("text", "answer", "expected"),
    [
        ("It was built by Ada Holm, in 1881.", "Ada Holm", ["Ada Holm"]),
        ("It was built by Ada Holm, in 1881.", "Ada Holm in 1881", ["Ada Holm, in 1881"]),
        ("It was built by Ada Holm, in 1881.", "Ada Holm built it in 1881", ["built", "Ada Holm", "in 1881"]),
        ("In 1881 she saw it in 1881", "she saw", ["she saw"]),
        # The longest run takes the words; what is left of a shorter one is still marked.
        ("big red big red mill", "big red mill", ["big red", "big red mill"]),
        ("the capital of the France", "capital of France", ["capital of the France"]),
        ("It is in the U.S. of A.", "US", ["U.S"]),
        ("“Paris” is", "Paris", []),  # SQuAD's normalisation knows ASCII quotes alone
        ('"Paris" is', "paris!", ["Paris"]),
        ("it was of the", "it was of the", []),
        ("anything", "", []),
        ("", "anything", []),
        ("😀 Paris", "Paris", ["Paris"]),
    ],
)
def test_by_hand(text: str, answer: str, expected: list[str]) -> None:
    assert marked(text, answer) == expected


def test_ranges_are_code_points() -> None:
    assert find_marks("😀 Paris", "Paris") == [(2, 7)]


@given(TEXTS, TEXTS)
@example("x\u2013a\u2013y", "x\u2013")
def test_ranges_are_sorted_disjoint_and_hold_words_of_the_answer(text: str, answer: str) -> None:
    marks = find_marks(text, answer)
    bounds = [bound for mark in marks for bound in mark]
    assert bounds == sorted(set(bounds))
    assert all(0 <= bound <= len(text) for bound in bounds)
    known = normalise_answer(answer)
    for start, end in marks:
        run = normalise_answer(text[start:end])
        # A run: the words stand in the answer side by side.
        assert f" {run} " in f" {known} "
        assert set(run.split()) - STOP_WORDS


@given(TEXTS, TEXTS)
def test_every_word_of_the_answer_is_found(text: str, answer: str) -> None:
    """A slow and simple reference: the words outside of all marks are none of the answer's, stop words apart."""
    rest = text
    for start, end in reversed(find_marks(text, answer)):
        rest = f"{rest[:start]} | {rest[end:]}"
    tokens = [normalise_answer(token) for token in rest.split()]
    assert not (set(tokens) & set(normalise_answer(answer).split())) - STOP_WORDS


@given(TEXTS)
def test_a_text_that_is_the_answer_is_one_run(text: str) -> None:
    tokens = [normalise_answer(token) for token in text.split()]
    single = all(len(token.split()) <= 1 for token in tokens)
    if single and set(tokens) - STOP_WORDS - {""}:
        assert len(find_marks(text, text)) == 1
