"""Citation recall, precision and grounding: worked out by hand, and against ALCE's procedure written out as loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.metrics.citation_quality import (
    CitationQuality,
    CitedAnswer,
    citation_quality,
    grounding_score,
    mean_quality,
)
from adaptllm_chain.metrics.citations import CitedSentence


class Letters:
    """A judge for whom letters are facts: a premise entails what has no letter beside its own."""

    def __init__(self) -> None:
        self.calls: list[list[tuple[str, str]]] = []

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        self.calls.append(list(pairs))
        return [float(set(hypothesis) <= set(premise)) for premise, hypothesis in pairs]


def cites(sentence: str, *citations: int, rejected: int = 0) -> CitedSentence:
    return CitedSentence(sentence=sentence, citations=list(citations), rejected=rejected)


def measure(sentences: Sequence[CitedSentence], *passages: str) -> CitationQuality:
    (quality,) = citation_quality([CitedAnswer(sentences=sentences, passages=passages)], Letters().score)
    assert quality is not None
    return quality


@pytest.mark.parametrize(
    ("sentence", "recall", "precision"),
    [
        # Passages: 1 says ab, 2 says c, 3 says x, 4 says abc.
        pytest.param(cites("ab", 1), 1, 1, id="one that suffices"),
        pytest.param(cites("abc", 1, 2), 1, 1, id="two that only together suffice: both are needed"),
        pytest.param(cites("ab", 1, 2), 1, 1 / 2, id="of two one suffices: the other is not needed"),
        pytest.param(cites("ab", 1, 4), 1, 1, id="two that suffice alone: neither is wrong"),
        pytest.param(cites("ab", 3), 0, 0, id="an unrelated passage"),
        pytest.param(cites("abc", 1, 2, 3), 1, 2 / 3, id="an unrelated passage beside two that are needed"),
        pytest.param(cites("abc", 1, 2, 4), 1, 1 / 3, id="two halves beside one that says it all"),
        pytest.param(cites("ab"), 0, 0, id="uncited"),
        pytest.param(cites("ab", rejected=1), 0, 0, id="a mark that points nowhere"),
        pytest.param(cites("ab", 1, rejected=1), 0, 0, id="a mark that points nowhere spoils the one beside it"),
        pytest.param(cites("abz", 1, 2), 0, 0, id="two that do not suffice"),
    ],
)
def test_one_sentence(sentence: CitedSentence, recall: float, precision: float) -> None:
    quality = measure([sentence], "ab", "c", "x", "abc")
    assert (quality.recall, quality.precision) == (recall, precision)


def test_averages_within_an_answer_then_over_answers() -> None:
    # Three of four sentences are entailed; of five citations (1; 1, 2; 1, 2) the last 2 is not needed.
    first = [cites("ab", 1), cites("abc", 1, 2), cites("ab", 1, 2), cites("x")]
    second = [cites("c", 2)]
    answers = [CitedAnswer(sentences=sentences, passages=["ab", "c"]) for sentences in (first, second, [])]
    qualities = citation_quality(answers, Letters().score)
    assert qualities == [
        CitationQuality(recall=3 / 4, precision=4 / 5, grounding=2 / 4),
        CitationQuality(recall=1, precision=1, grounding=1),
        None,
    ]
    # Not 4/5 and 5/6, as over all sentences and citations.
    mean = mean_quality(qualities)
    assert mean is not None
    assert (mean.recall, mean.precision, mean.grounding) == pytest.approx((7 / 8, 9 / 10, 3 / 4))
    assert mean_quality([None]) is None


def test_the_threshold_must_be_exceeded() -> None:
    answers = [CitedAnswer(sentences=[cites("ab", 1)], passages=["ab"])]
    for score, recall in ((0.5, 0), (0.51, 1)):
        (quality,) = citation_quality(answers, lambda pairs, score=score: [score] * len(pairs))
        assert quality == CitationQuality(recall=recall, precision=recall, grounding=score)


def test_one_call_and_no_pair_twice() -> None:
    judge = Letters()
    sentences = [cites("ab", 1, 2), cites("ab", 2, 1), cites("ab", 2)]
    answers = [CitedAnswer(sentences=sentences, passages=["ab", "c"])] * 3
    citation_quality(answers, judge.score)
    assert [sorted(call) for call in judge.calls] == [
        [("ab", "ab"), ("ab\nc", "ab"), ("c", "ab"), ("c\nab", "ab")],
    ]
    citation_quality([CitedAnswer(sentences=[], passages=["ab"])], judge.score)
    assert len(judge.calls) == 1


def test_what_cannot_be_measured() -> None:
    with pytest.raises(InvalidInputError, match="cites \\[3\\] of 2 passages"):
        measure([cites("ab", 3)], "ab", "c")
    with pytest.raises(InvalidInputError, match="0 scores for 1 pairs"):
        citation_quality([CitedAnswer(sentences=[cites("ab", 1)], passages=["ab"])], lambda pairs: [])


def test_grounding_score_is_a_mean_of_maxima() -> None:
    assert grounding_score([[0.2, 0.8], [0.4, 0.1], []]) == pytest.approx((0.8 + 0.4 + 0) / 3)
    assert grounding_score([]) == 0


facts = st.text("abc", min_size=1, max_size=3)
passage_lists = st.lists(facts, min_size=1, max_size=4)


@st.composite
def cited_answers(draw: Any) -> CitedAnswer:
    passages = draw(passage_lists)
    numbers = st.lists(st.integers(1, len(passages)), unique=True, max_size=4)
    sentences = st.builds(CitedSentence, sentence=facts, citations=numbers, rejected=st.integers(0, 1))
    return CitedAnswer(sentences=draw(st.lists(sentences, max_size=4)), passages=passages)


def by_loops(answer: CitedAnswer) -> tuple[float, float] | None:
    """ALCE's procedure, one judgement after the other."""

    def entailed(numbers: Sequence[int], sentence: str) -> bool:
        return set(sentence) <= {letter for number in numbers for letter in answer.passages[number - 1]}

    if not answer.sentences:
        return None
    recalled = right = cited = 0
    for sentence in answer.sentences:
        numbers = sentence["citations"]
        cited += len(numbers)
        if not numbers or sentence["rejected"] or not entailed(numbers, sentence["sentence"]):
            continue
        recalled += 1
        for number in numbers:
            rest = [other for other in numbers if other != number]
            if entailed([number], sentence["sentence"]) or not rest or not entailed(rest, sentence["sentence"]):
                right += 1
    return recalled / len(answer.sentences), right / cited if cited else 0.0


@given(st.lists(cited_answers(), max_size=4))
def test_equals_the_procedure(answers: list[CitedAnswer]) -> None:
    judge = Letters()
    qualities = citation_quality(answers, judge.score)
    measured = [None if q is None else (q.recall, q.precision) for q in qualities]
    assert [m and pytest.approx(m) for m in map(by_loops, answers)] == measured
    assert len(judge.calls) <= 1
    assert all(len(set(call)) == len(call) for call in judge.calls)
    # Measured alone, an answer gets the same.
    assert qualities == [citation_quality([answer], judge.score)[0] for answer in answers]
