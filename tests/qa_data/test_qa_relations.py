"""PopQA's relations, told from the wording."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptllm_chain.qa_data import read_questions
from adaptllm_chain.qa_data.popqa import _WORDINGS, relation_of

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


@given(st.sampled_from(sorted(_WORDINGS)), NAMES)
def test_every_wording_is_known_whatever_the_name(relation: str, name: str) -> None:
    head, tail = _WORDINGS[relation]
    assert relation_of(f"{head}{name}{tail}") is not None


@pytest.mark.parametrize("relation", sorted(_WORDINGS))
def test_a_plain_name_gives_its_own_relation(relation: str) -> None:
    head, tail = _WORDINGS[relation]
    assert relation_of(f"{head}Lindow Mill{tail}") == relation


@pytest.mark.parametrize("question", ["", "Who is the father of?", "who is the father of X?", "When was X born?"])
def test_other_words_have_no_relation(question: str) -> None:
    assert relation_of(question) is None


@pytest.mark.shared_data
def test_each_question_of_the_authors_copy_has_one(shared_data: object) -> None:
    questions = list(read_questions(f"{shared_data}/popqa_test_test.json"))
    counts = Counter(question.relation for question in questions)
    assert set(counts) == set(_WORDINGS)
    assert counts["director"] == 303
