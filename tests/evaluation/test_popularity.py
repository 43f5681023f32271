"""The popularity baseline, worked out by hand and by trying everything."""

from __future__ import annotations

from math import inf
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.evaluation.judgement import Judgement
from adaptllm_chain.evaluation.popularity import choose_threshold, popularity_baseline, split

Row = tuple[float, bool, bool]
rows = st.lists(st.tuples(st.integers(-2, 6).map(float), st.booleans(), st.booleans()), min_size=1, max_size=30)


def judged(number: int, right: bool, popularity: float | None = None, relation: str | None = None) -> Judgement:
    return Judgement(
        id=str(number), route="direct", popularity=popularity, relation=relation, containment=right,
        first_line_containment=not right, exact_match=False, f1=0.0,
    )  # fmt: skip


def modes(world: list[tuple[float | None, str | None, bool, bool]]) -> tuple[list[Judgement], list[Judgement]]:
    never = [judged(n, memory, popularity, relation) for n, (popularity, relation, memory, _) in enumerate(world)]
    return never, [judged(n, row[3], row[0], row[1]) for n, row in enumerate(world)]


def right_with(threshold: float, asked: list[Row]) -> int:
    return sum(memory if popularity >= threshold else passages for popularity, memory, passages in asked)


def best_by_trying(asked: list[Row]) -> float:
    candidates = sorted({popularity for popularity, _, _ in asked} | {inf})
    most = max(right_with(candidate, asked) for candidate in candidates)
    return next(candidate for candidate in candidates if right_with(candidate, asked) == most)


@given(rows)
def test_the_threshold_is_the_best_of_all(asked: list[Row]) -> None:
    popularities, memory, passages = zip(*asked, strict=True)
    assert choose_threshold(popularities, memory, passages) == best_by_trying(asked)


@given(rows, st.randoms(use_true_random=False))
def test_the_order_of_questions_does_not_matter(asked: list[Row], random: Random) -> None:
    chosen = choose_threshold(*zip(*asked, strict=True))
    random.shuffle(asked)
    assert choose_threshold(*zip(*asked, strict=True)) == chosen


@pytest.mark.parametrize(
    ("memory", "passages", "threshold"),
    [
        # Popularities 10, 20, 20, 30.
        ([False, True, True, True], [True, False, False, True], 20),
        ([False] * 4, [True] * 4, inf),
        ([False] * 4, [False] * 4, 10),
        ([True] * 4, [True] * 4, 10),
        # One of the two at 20 is lost and one won: as good as 30, and retrieves less.
        ([False, True, False, True], [True, False, True, False], 20),
        # Answering 30 from memory costs one and 10 wins it back.
        ([True, False, False, False], [False, False, False, True], 10),
    ],
)
def test_thresholds_by_hand(memory: list[bool], passages: list[bool], threshold: float) -> None:
    assert choose_threshold([10, 20, 20, 30], memory, passages) == threshold


@pytest.mark.parametrize(
    ("popularities", "memory", "problem"),
    [([], [], "0 popularities"), ([1.0], [], "0 answers"), ([float("nan")], [True], "finite"), ([inf], [True], "fin")],
)
def test_what_has_no_threshold_is_refused(popularities: list[float], memory: list[bool], problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        choose_threshold(popularities, memory, memory)


@given(st.integers(2, 200), st.floats(0.3, 0.7), st.integers(0, 3))
def test_a_split_is_whole_seeded_and_in_file_order(total: int, share: float, seed: int) -> None:
    judgements = [judged(n, right=True) for n in range(total)]
    dev, test = split(judgements, share=share, seed=seed)
    assert sorted(dev + test) == list(range(total))
    assert (dev, test) == (sorted(dev), sorted(test))
    assert abs(len(dev) - share * total) <= 0.5
    assert split(judgements, share=share, seed=seed) == (dev, test)


def test_another_seed_draws_others() -> None:
    judgements = [judged(n, right=True) for n in range(100)]
    drawn, other = split(judgements), split(judgements, seed=1)
    assert drawn != other
    assert [len(part) for part in drawn] == [75, 25]


@pytest.mark.parametrize(("total", "share"), [(0, 0.75), (1, 0.75), (10, 0.0), (10, 1.0), (10, 75.0)])
def test_a_split_with_an_empty_side_is_refused(total: int, share: float) -> None:
    with pytest.raises(InvalidInputError, match=f"of {total} questions"):
        split([judged(n, right=True) for n in range(total)], share=share)


# Popularity, relation, right from memory, right with passages. The first six are for choosing.
WORLD: list[tuple[float | None, str | None, bool, bool]] = [
    (10, "capital", True, False),
    (90, "capital", True, False),
    (10, "author", False, True),
    (50, "author", False, True),
    (90, "author", False, True),
    (95, None, True, False),
    # Overall, 95 wins one and the two at 90 cancel out. Capitals are answered from 10 on, authors never.
    (20, "capital", True, False),
    (99, "author", True, False),
    (99, "genre", True, False),
    (20, None, False, True),
    (5, "capital", False, True),
]
DEV, TEST = list(range(6)), list(range(6, 11))


def test_one_threshold_by_hand() -> None:
    result = popularity_baseline(*modes(WORLD), DEV, TEST, per_relation=False)
    assert (result.threshold, result.by_relation) == (90, {})
    assert result.retrieved == (True, False, False, True, True)
    assert result.right == (False, True, True, True, True)


def test_a_threshold_for_each_relation_by_hand() -> None:
    result = popularity_baseline(*modes(WORLD), DEV, TEST, per_relation=True)
    assert (result.threshold, result.by_relation) == (90, {"author": inf, "capital": 10})
    # The genre and the question without a relation go by the threshold over all.
    assert result.retrieved == (False, True, False, True, True)
    assert result.right == (True, False, True, True, True)


@given(st.lists(st.tuples(st.integers(0, 5).map(float), st.sampled_from(["a", "b", None]), st.booleans(),
                          st.booleans()), min_size=4, max_size=30))  # fmt: skip
def test_a_threshold_for_each_relation_is_that_of_its_questions_alone(
    world: list[tuple[float | None, str | None, bool, bool]],
) -> None:
    never, always = modes(world)
    dev, test = split(never)
    result = popularity_baseline(never, always, dev, test, per_relation=True)
    for relation in ("a", "b"):
        asked = [(p or 0.0, m, w) for p, r, m, w in (world[index] for index in dev) if r == relation]
        assert result.by_relation.get(relation) == (best_by_trying(asked) if asked else None)
    for index, retrieved, right in zip(test, result.retrieved, result.right, strict=True):
        assert right == (always if retrieved else never)[index].containment


def test_what_does_not_fit_together_is_refused() -> None:
    never, always = modes(WORLD)
    with pytest.raises(InvalidInputError, match="different questions"):
        popularity_baseline(never, always[::-1], DEV, TEST, per_relation=False)
    with pytest.raises(InvalidInputError, match="1 questions are both"):
        popularity_baseline(never, always, DEV, [5, 6], per_relation=False)
    with pytest.raises(InvalidInputError, match="0 popularities"):
        popularity_baseline(never, always, [], TEST, per_relation=False)


@pytest.mark.parametrize("unknown", [0, 10])
def test_a_question_without_a_popularity_is_refused(unknown: int) -> None:
    world = [(None if n == unknown else row[0], *row[1:]) for n, row in enumerate(WORLD)]
    with pytest.raises(InvalidInputError, match=f"popularity of question '{unknown}'"):
        popularity_baseline(*modes(world), DEV, TEST, per_relation=False)
