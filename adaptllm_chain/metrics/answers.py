"""Comparing one output with the accepted answers. Each metric is named for what it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.metrics.normalisation import normalise_answer


def exact_match(prediction: str, answers: Sequence[str]) -> bool:
    """Say whether the whole output is an accepted answer, after normalisation.

    SQuAD's exact match (Rajpurkar et al. 2016). It is strict: a right answer in a sentence counts
    as wrong, so a chatty model scores near zero. The Adapt-LLM paper calls its metric exact match
    too, but computes ``contains_answer``.
    Its traps are those of the normalisation, which knows ASCII alone and no numbers: "1,000" equals
    "1000", but so does "10.00", and "1000.0" equals "10,000"; a typographic dash or quote, a full-width
    digit, and an accent that is a character of its own make spellings differ that look alike; and
    answers of which nothing is left, such as "The" and "?", equal one another and an empty output.

    Args:
        prediction: The model's output.
        answers: The accepted answers, at least one.

    Returns:
        Whether one of them equals the output.

    Raises:
        InvalidInputError: There is no accepted answer, or one is blank.
    """
    _check(answers)
    normalised = normalise_answer(prediction)
    return any(normalised == normalise_answer(answer) for answer in answers)


def token_f1(prediction: str, answers: Sequence[str]) -> float:
    """Measure how far the words of the output and of an accepted answer are the same.

    SQuAD's F1 (Rajpurkar et al. 2016): the harmonic mean of precision and recall over the bag of
    normalised words; the best accepted answer counts. When normalisation leaves nothing of either
    side ("The"), it is 0, as in the script for version 1.1.
    Unicode and numbers have the traps of ``exact_match``; moreover a number is one word, so "1001" is
    as far from "1000" as any other.

    Args:
        prediction: The model's output.
        answers: The accepted answers, at least one.

    Returns:
        A fraction in [0, 1].

    Raises:
        InvalidInputError: There is no accepted answer, or one is blank.
    """
    _check(answers)
    return max(_pair_f1(prediction, answer) for answer in answers)


def _pair_f1(prediction: str, answer: str) -> float:
    predicted = normalise_answer(prediction).split()
    accepted = normalise_answer(answer).split()
    shared = (Counter(predicted) & Counter(accepted)).total()
    if shared == 0:
        return 0.0
    precision = shared / len(predicted)
    recall = shared / len(accepted)
    return 2 * precision * recall / (precision + recall)


def contains_answer(prediction: str, answers: Sequence[str]) -> bool:
    """Say whether an accepted answer occurs anywhere in the output, both lower-cased.

    The rule of the Adapt-LLM authors' evaluation, which the paper (arXiv:2404.19705, section 4)
    calls exact match. Nothing is normalised beyond the case, so "U.S." is not found in "US".
    Its traps: the longer the output, the better its chances, since a list of guesses is rewarded
    (``first_line_contains_answer`` is the guard); short aliases such as "W" are found by accident
    inside of words, and numbers inside of longer ones, "15" in "2015"; and "1,000" is not found in
    "1000", nor an accented letter in the same one spelled with an accent of its own.

    Args:
        prediction: The model's output.
        answers: The accepted answers, at least one.

    Returns:
        Whether one of them is contained.

    Raises:
        InvalidInputError: There is no accepted answer, or one is blank: it would be found in
            every output.
    """
    _check(answers)
    lowered = prediction.lower()
    return any(answer.lower() in lowered for answer in answers)


def first_line_contains_answer(prediction: str, answers: Sequence[str]) -> bool:
    """Say whether an accepted answer occurs in the first line of the output that is not blank.

    ``contains_answer`` for models that go on with questions of their own: what they say after the
    answer does not count. It cannot tell rambling that stays on the first line.

    Args:
        prediction: The model's output.
        answers: The accepted answers, at least one.

    Returns:
        Whether one of them is contained in that line; ``False`` for a blank output.

    Raises:
        InvalidInputError: There is no accepted answer, or one is blank.
    """
    lines = prediction.strip().splitlines()
    return contains_answer(lines[0] if lines else "", answers)


def _check(answers: Sequence[str]) -> None:
    if isinstance(answers, str):
        raise InvalidInputError(
            f"answers is the text {answers!r:.60}, whose letters would count as answers",
            expected="a list of accepted answers",
            hint=f"[{answers!r:.60}]",
        )
    if not answers:
        raise InvalidInputError("there is no accepted answer", expected="at least one")
    blank = [answer for answer in answers if not answer.strip()]
    if blank:
        raise InvalidInputError(f"an accepted answer is blank: {list(answers)!r:.80}", expected="answers with a text")
