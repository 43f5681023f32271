"""Cutting answers into sentences."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptllm_chain.agree import split_sentences

# One case a list: its items, with spaces between them, are cut where the items meet.
CASES = [
    ["It is old.", "It stands!", "Does it?", "Yes…", "So it does."],
    ["Dr. Smith met Mrs. J. R. Brown.", "She left."],
    ["J. R. R. Tolkien wrote it.", "He taught."],
    ["It lies in the U.S. state of Ohio.", "It is big."],
    ["It lies in the U.S.", "It is big."],
    ["The U.S. Army built it in Washington, D.C.", "The mill stands."],
    ["It was made by Mills Inc. Ltd. of York, Mills Jr. Esq., etc.", "They sold it."],
    ["It opened on Jan. 5, 1890, at 3 p.m. sharp.", "Nobody came."],
    ["Pi is 3.14, e.g. in No. 5 of vol. 2.", "Version 1.2.3 is newer."],
    ["The answer is no.", "It burned."],
    ['He said "Go." and left.', "She stayed."],
    ['He said "Go."', '"Why?" she asked.', "(He ran.)", "She stayed."],
    ["It waits … and waits.", "Wait... what?", "Well."],
    ["It is old [1].", "It stands [1][2].", "It fell [1, 2]."],
    ["It is old. [1]", "It stands.[1][2]", "It fell. [[1], [2]]", "Gone."],
    ["It lies in the U.S. [1]", "Mills stand there."],
    ['He said "Go." [2]', "She stayed."],
    ["It is old.", "[1 It stands [a].", "[Editors left.]", "Unclosed. [1"],
    ["In 1890 it burned.", "40 people came.", "É is a letter."],
    ["World War I ended.", "Plan B.", "It failed."],
    ["no stop at all"],
]


@pytest.mark.parametrize("sentences", CASES)
def test_cut_where_sentences_meet(sentences: list[str]) -> None:
    assert [piece.strip() for piece in split_sentences(" ".join(sentences))] == sentences


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("It has:\n- a wheel\n- a door [1]\n\nNo more", ["It has:", "- a wheel", "- a door [1]", "No more"]),
        ("1. A wheel. 2. A door.\n2. A roof", ["1. A wheel.", "2. A door.", "2. A roof"]),
        ("It is\nold. It\nStands.\nIt fell", ["It is\nold.", "It\nStands.", "It fell"]),
        ("It is old.\n\n[1] It stands.", ["It is old.", "[1] It stands."]),
        ("", []),
        (" \n", []),
    ],
)
def test_lines(text: str, pieces: list[str]) -> None:
    assert [piece.strip() for piece in split_sentences(text) if piece.strip()] == pieces


alphabet = st.lists(
    st.sampled_from([*"aA1.!?[],-\"'\n ", " ", ". ", "[1]", "U.S.", "Dr.", "He ", "The ", "\n\n", "- ", "1. ", "…"]),
    max_size=14,
).map("".join)


@given(st.one_of(alphabet, st.text(max_size=60)))
def test_joined_the_pieces_are_the_text(text: str) -> None:
    pieces = split_sentences(text)
    assert "".join(pieces) == text
    assert all(pieces)


@given(alphabet, st.integers(0, 60))
def test_while_the_text_is_written_all_pieces_but_the_last_are_final(text: str, length: int) -> None:
    so_far = split_sentences(text[:length])[:-1]
    assert split_sentences(text)[: len(so_far)] == so_far


def test_a_text_without_ends_is_read_in_passing() -> None:
    # Ends are looked for near each gap alone: work grows with the text, not with its square.
    words = "word " * 20_000
    assert split_sentences(words) == [words]
