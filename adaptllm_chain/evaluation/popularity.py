"""The popularity baseline: what is asked about a well-known subject is answered from memory.

The method is that of Mallen et al. (arXiv:2212.10511), who choose a threshold for each relation; the Adapt-LLM paper
(arXiv:2404.19705, section 4.7) compares itself with it and reports a single threshold. Both are worked out from what
the never-retrieve and the always-retrieve mode answered, without asking the model again.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import inf, isfinite
from operator import itemgetter

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.evaluation.judgement import Judgement


@dataclass(frozen=True, slots=True, kw_only=True)
class PopularityResult:
    """What the baseline did with the test questions.

    Attributes:
        threshold: Questions with a popularity at or above it are answered from memory (monthly page views
            in PopQA); infinite if all retrieve. Chosen over all dev questions.
        by_relation: The thresholds that go before it for questions of that relation; empty if there was to
            be one for all.
        retrieved: Whether each test question went to retrieval.
        right: Whether its answer was right, by containment.
    """

    threshold: float
    by_relation: Mapping[str, float]
    retrieved: tuple[bool, ...]
    right: tuple[bool, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """One question with what both ways of answering it are worth."""

    popularity: float
    relation: str | None
    from_memory: bool
    with_passages: bool


def split(judgements: Sequence[Judgement], *, share: float = 0.75, seed: int = 0) -> tuple[list[int], list[int]]:
    """Draw the questions that thresholds are chosen on; the others are for the test.

    The paper takes 75 % and 25 % (section 4.7).

    Args:
        judgements: The judged questions. Only their number matters, so that all modes are split alike.
        share: Share of the dev questions, between 0 and 1, exclusive.
        seed: Draws others.

    Returns:
        Indices of the dev and of the test questions, each in the order of the file.

    Raises:
        InvalidInputError: If no question would be left on one side.
    """
    total = len(judgements)
    size = round(share * total)
    if not 0 < size < total:
        raise InvalidInputError(
            f"{share:g} of {total} questions are {size}",
            expected="a share between 0 and 1 that leaves questions on both sides",
            hint="share=0.75",
        )
    drawn = set(random.Random(seed).sample(range(total), size))
    return sorted(drawn), [index for index in range(total) if index not in drawn]


def choose_threshold(
    popularities: Sequence[float], from_memory_right: Sequence[bool], with_passages_right: Sequence[bool]
) -> float:
    """Choose the popularity from which on answering from memory gives the most right answers.

    Every popularity that occurs is tried, and infinity, with which every question retrieves. Of equally
    good ones the lowest is taken, which retrieves least.

    Args:
        popularities: Of each question, a finite number (monthly page views in PopQA).
        from_memory_right: Whether its answer without passages is right, in the same order.
        with_passages_right: Whether its answer with passages is right, in the same order.

    Returns:
        The threshold; questions at or above it are to be answered from memory.

    Raises:
        InvalidInputError: The lengths differ, there are no questions, or a popularity is not finite.
    """
    lengths = {len(popularities), len(from_memory_right), len(with_passages_right)}
    if len(lengths) > 1 or not popularities:
        raise InvalidInputError(
            f"{len(popularities)} popularities, {len(from_memory_right)} answers from memory and "
            f"{len(with_passages_right)} with passages",
            expected="as many of each, at least one",
        )
    if not all(map(isfinite, popularities)):
        raise InvalidInputError("a popularity is not finite", expected="numbers such as 1200")
    # How many more answers are right once all questions down to here are answered from memory.
    gains = sorted(
        (
            (popularity, bool(memory) - bool(passages))
            for popularity, memory, passages in zip(popularities, from_memory_right, with_passages_right, strict=True)
        ),
        reverse=True,
    )
    best, most, gained = inf, 0, 0
    for popularity, group in groupby(gains, key=itemgetter(0)):
        gained += sum(gain for _, gain in group)
        if gained >= most:
            best, most = popularity, gained
    return best


def popularity_baseline(
    never: Sequence[Judgement],
    always: Sequence[Judgement],
    dev: Sequence[int],
    test: Sequence[int],
    *,
    per_relation: bool,
) -> PopularityResult:
    """Choose thresholds on some questions and say what they give on others.

    Args:
        never: Judgements of the never-retrieve mode.
        always: Judgements of the always-retrieve mode, of the same questions in the same order.
        dev: Indices of the questions that thresholds are chosen on; see ``split``.
        test: Indices of the questions that the result is about, none of them in ``dev``.
        per_relation: Whether each relation has a threshold of its own, as in Mallen et al. Questions
            without a relation, or of one that ``dev`` lacks, then go by the threshold over all of ``dev``.

    Returns:
        The thresholds, and for each test question, in the order of ``test``, whether it retrieved and
        whether it is right.

    Raises:
        InvalidInputError: If the modes answered different questions, dev and test share some, there is no
            dev question, or one of either has no popularity.
    """
    if [row.id for row in never] != [row.id for row in always]:
        raise InvalidInputError("the modes answered different questions", expected="the same ones in the same order")
    shared = set(dev) & set(test)
    if shared:
        raise InvalidInputError(
            f"{len(shared)} questions are both for choosing and for the test", expected="each of them in one part"
        )
    chosen_on = [_asked(never[index], always[index]) for index in dev]
    tested = [_asked(never[index], always[index]) for index in test]
    threshold = _threshold(chosen_on)
    by_relation = _by_relation(chosen_on) if per_relation else {}
    retrieved = [
        row.popularity < (threshold if row.relation is None else by_relation.get(row.relation, threshold))
        for row in tested
    ]
    return PopularityResult(
        threshold=threshold,
        by_relation=by_relation,
        retrieved=tuple(retrieved),
        right=tuple(
            row.with_passages if flag else row.from_memory for flag, row in zip(retrieved, tested, strict=True)
        ),
    )


def _asked(never: Judgement, always: Judgement) -> _Asked:
    if never.popularity is None:
        raise InvalidInputError(
            f"the popularity of question {never.id!r} is not known",
            expected="a popularity for every dev and test question",
            hint="a data set that has them, such as PopQA (s_pop)",
        )
    return _Asked(
        popularity=never.popularity,
        relation=never.relation,
        from_memory=never.containment,
        with_passages=always.containment,
    )


def _threshold(rows: Sequence[_Asked]) -> float:
    return choose_threshold(
        [row.popularity for row in rows], [row.from_memory for row in rows], [row.with_passages for row in rows]
    )


def _by_relation(rows: Sequence[_Asked]) -> dict[str, float]:
    parts: defaultdict[str, list[_Asked]] = defaultdict(list)
    for row in rows:
        if row.relation is not None:
            parts[row.relation].append(row)
    return {relation: _threshold(part) for relation, part in sorted(parts.items())}
