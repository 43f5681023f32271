"""Labels from scores, worked out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptllm_chain.agree import best_grounded, label_sentences, link, parse_response, verbalise
from adaptllm_chain.errors import InvalidInputError


@pytest.mark.parametrize(
    ("scores", "passage"),
    [([0.1, 0.9, 0.8], 2), ([0.7], None), ([0.71], 1), ([0.8, 0.8], 1), ([], None), ([0.6, 0.65], None)],
)
def test_the_best_passage_is_cited_if_it_is_good_enough(scores: list[float], passage: int | None) -> None:
    assert link(scores) == passage


def test_linked_neither_unsupported() -> None:
    sentences = ["It is old.", "It hums.", "It is red.", "It stands.", "It is red."]
    scores = [[0.2, 0.95], [0.6, 0.1], [0.5, 0.4], [], [0.0, 0.0]]
    cited, unsupported = label_sentences(sentences, scores)
    assert [sentence["citations"] for sentence in cited] == [[2], [], [], [], []]
    assert unsupported == ["It is red.", "It stands."]


def test_labels_become_a_target() -> None:
    cited, unsupported = label_sentences(["It is old.", "It hums."], [[0.9], [0.1]])
    assert verbalise(cited, unsupported) == "It is old [1]. It hums.\n\nUnsupported statements:\n- It hums."


def test_the_response_with_the_highest_mean_is_kept() -> None:
    # Means of the best scores: .5, .7, .7; then .9 beats them although one of its scores is low.
    responses = [[[0.9], [0.1]], [[0.2, 0.7]], [[0.7], [0.7]]]
    assert best_grounded(responses) == 1
    assert best_grounded([*responses, [[0.9, 0.0]]]) == 3
    assert best_grounded([[], [[0.1]]]) == 1
    with pytest.raises(InvalidInputError, match="no responses"):
        best_grounded([])


def test_bad_tables() -> None:
    with pytest.raises(InvalidInputError, match="1 rows of scores for 2 sentences"):
        label_sentences(["a", "b"], [[0.1]])
    with pytest.raises(InvalidInputError, match="above link_above"):
        label_sentences(["a"], [[0.1]], link_above=0.4)


probability = st.floats(0, 1)
tables = st.lists(st.lists(probability, max_size=4), max_size=4)


@given(tables, probability, probability)
def test_no_sentence_is_linked_and_unsupported(table: list[list[float]], one: float, other: float) -> None:
    low, high = sorted((one, other))
    sentences = [f"S{row}." for row in range(len(table))]
    cited, unsupported = label_sentences(sentences, table, link_above=high, unsupported_up_to=low)
    for sentence, row in zip(cited, table, strict=True):
        best = max(row, default=0.0)
        assert bool(sentence["citations"]) == (best > high)
        assert (sentence["sentence"] in unsupported) == (best <= low)
        assert all(row[number - 1] == best for number in sentence["citations"])
    response = parse_response(verbalise(cited, unsupported), 4)
    assert (list(response.sentences), list(response.unsupported)) == (cited, unsupported)
