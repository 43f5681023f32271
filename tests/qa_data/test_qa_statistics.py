from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document

from adaptllm_chain.qa_data import Tally, describe
from adaptllm_chain.records import Question

words = st.text(st.characters(codec="utf-8", exclude_categories=("Z", "C")), min_size=1, max_size=4)
texts = st.lists(words, min_size=1, max_size=4)
questions = st.builds(
    lambda text, answers, number: Question(id=str(number), text=" ".join(text), answers=tuple(map(" ".join, answers))),
    texts,
    st.lists(texts, min_size=1, max_size=3),
    st.integers(),
)


def test_the_figures() -> None:
    found = describe(
        [
            Question(id="1", text="Who  sings\tnow?", answers=("Eve", "Eve of the Moss"), popularity=0.0),
            Question(id="2", text="who sings NOW", answers=("two words",), gold_passage=Document("x")),
            Question(id="3", text="why", answers=("so",), given_passages=(Document("x"),)),
            Question(id="4", text="why not", answers=("no",)),
        ]
    )
    assert found.questions == 4
    assert found.words_per_question == (3 + 3 + 1 + 2) / 4
    assert found.words_per_answer == (1 + 4 + 2 + 1 + 1) / 5
    assert found.words_per_first_answer == (1 + 2 + 1 + 1) / 4
    assert found.answers_per_question == 5 / 4
    assert (found.gold_passages, found.given_passages, found.popularities) == (0.25, 0.25, 0.25)
    assert found.duplicates == 1


@given(st.lists(questions, max_size=5))
def test_asking_everything_twice_doubles_the_counts_and_keeps_the_means(rows: list[Question]) -> None:
    once, twice = describe(rows), describe(rows + rows)
    assert twice.questions == 2 * once.questions
    assert twice.duplicates == once.duplicates + once.questions
    assert twice.words_per_question == pytest.approx(once.words_per_question)
    assert twice.words_per_answer == pytest.approx(once.words_per_answer)
    assert twice.words_per_first_answer == pytest.approx(once.words_per_first_answer)


def test_of_nothing_all_is_zero() -> None:
    assert Tally().statistics().words_per_answer == 0
