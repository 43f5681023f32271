from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.metrics import recall_at

found = st.lists(st.lists(st.booleans(), max_size=6), min_size=1, max_size=20)


@given(found, st.integers(1, 8))
def test_it_counts_the_questions_whose_first_hit_is_early_enough(hits: list[list[bool]], k: int) -> None:
    first_hits = [passages.index(True) + 1 if True in passages else None for passages in hits]
    assert recall_at(hits, k) == sum(rank is not None and rank <= k for rank in first_hits) / len(hits)


def test_by_hand() -> None:
    hits = [(False, True, False), (True,), (), (False, False, False, True)]
    assert [recall_at(hits, k) for k in (1, 2, 3, 4, 100)] == [0.25, 0.5, 0.5, 0.75, 0.75]


@pytest.mark.parametrize("k", [0, -1])
def test_no_passages_to_look_at_is_refused(k: int) -> None:
    with pytest.raises(InvalidInputError, match=f"k is {k}"):
        recall_at([[True]], k)


def test_no_questions_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="no questions"):
        recall_at([], 1)
