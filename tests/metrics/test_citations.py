"""Citation marks (case E7)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.metrics import Citations, read_citations
from adaptllm_chain.metrics.citations import without_marks


@pytest.mark.parametrize(
    ("text", "passages", "rejected"),
    [
        ("The mill is old [1].", (1,), 0),
        ("The mill is old [1][2].", (1, 2), 0),
        ("The mill is old [1, 2].", (1, 2), 0),
        ("The mill is old. [ 2 ,1 ] It stands [2].", (2, 1), 0),
        ("The mill is old [0].", (), 1),
        ("The mill is old [9].", (), 1),
        ("The mill is old [0, 3, 9][5].", (3, 5), 2),
        ("The mill is old [[1], [2]].", (1, 2), 0),
        ("The mill is old [[1][9]].", (1,), 1),
        (f"The mill is old [{'9' * 5000}].", (), 1),
        ("Unclosed [1, 2 and 3] or [1.", (), 0),
        ("No mark [a], [1a], [], [1,], [-1], [1.5] or 1].", (), 0),
        ("", (), 0),
    ],
)
def test_marks(text: str, passages: tuple[int, ...], rejected: int) -> None:
    assert read_citations(text, 5) == Citations(passages=passages, rejected=rejected)


@given(st.lists(st.integers(0, 12), max_size=6), st.integers(0, 9), st.booleans())
def test_both_spellings_mean_the_same(numbers: list[int], passages: int, spaced: bool) -> None:
    apart = "x" + "".join(f"[{number}]" for number in numbers)
    together = "x" + (f"[{(', ' if spaced else ',').join(map(str, numbers))}]" if numbers else "")
    found = read_citations(apart, passages)
    assert found == read_citations(together, passages)
    assert set(found.passages) == {number for number in numbers if 1 <= number <= passages}
    assert found.rejected == sum(not 1 <= number <= passages for number in numbers)


def test_without_passages_every_mark_points_nowhere() -> None:
    assert read_citations("[1] [2]", 0) == Citations(passages=(), rejected=2)
    with pytest.raises(InvalidInputError):
        read_citations("[1]", -1)


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("The mill [1] is old [1][2].", "The mill is old."),
        ("The mill is old. [1, 2]", "The mill is old."),
        ("[1] The mill is old [[1], [2]].", "The mill is old."),
        ("The list [] holds [a] and [1", "The list [] holds [a] and [1"),
    ],
)
def test_marks_are_taken_out(text: str, bare: str) -> None:
    assert without_marks(text) == bare


@given(st.text("a.[],1 \n", max_size=30))
def test_nothing_is_left_to_read(text: str) -> None:
    bare = without_marks(text)
    if read_citations(text, 1) == read_citations("", 1):
        assert bare == text.strip()
    # Brackets that stood around a mark may make a new one: "[[1]1]".
    assert len(bare) <= len(text)
