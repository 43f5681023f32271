"""How well answers are grounded: citation recall and precision as ALCE defines them, and the grounding score.

ALCE (Gao et al., arXiv:2305.14627), with any judge of entailment in the place of TRUE. What its text leaves
open follows its code: cited passages are joined by line breaks in the order in which they are cited, an answer without
citations has precision 0, an answer without sentences has no values and is left out of the averages. It differs in one
point: a citation beside a mark that points nowhere counts, as wrong, where the code drops the whole sentence's; its
limit of three citations a sentence is not applied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TypeAlias

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.metrics.citations import CitedSentence

# Premise and hypothesis.
Pair: TypeAlias = tuple[str, str]
# Gives P(premise entails hypothesis) in [0, 1] for each pair, in order: an entailment scorer's ``score``.
Score: TypeAlias = Callable[[Sequence[Pair]], Sequence[float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CitedAnswer:
    """An answer and the passages that it may cite.

    Attributes:
        sentences: Its sentences and what they cite.
        passages: The texts of the passages, in the order of their numbers, as the judge is to read them.
    """

    sentences: Sequence[CitedSentence]
    passages: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class CitationQuality:
    """The measures of one answer, or their means over answers; each in [0, 1].

    Attributes:
        recall: The share of sentences that their cited passages together entail.
        precision: The share of citations that their sentence needs or that support it alone; 0 without citations.
        grounding: The mean over sentences of the best score with any passage, cited or not (AGREE, arXiv:2311.09533).
    """

    recall: float
    precision: float
    grounding: float


def citation_quality(
    answers: Sequence[CitedAnswer], score: Score, *, threshold: float = 0.5
) -> list[CitationQuality | None]:
    """Measure answers, with one call of the judge for all of them and no pair twice.

    Args:
        answers: The answers.
        score: The judge: an entailment scorer's ``score``.
        threshold: A premise entails a hypothesis if its score exceeds it; .5 is where TRUE says 1.

    Returns:
        The measures of each answer, in order; ``None`` for one without sentences.

    Raises:
        InvalidInputError: If a citation points to no passage, or the judge does not return a score for each pair.
    """
    for answer in answers:
        _check(answer)
    pairs = list(dict.fromkeys(pair for answer in answers for pair in _pairs(answer)))
    # An empty call may load a model for nothing.
    scores = list(score(pairs)) if pairs else []
    if len(scores) != len(pairs):
        raise InvalidInputError(f"{len(scores)} scores for {len(pairs)} pairs", expected="one a pair, in order")
    known = dict(zip(pairs, scores, strict=True))
    return [_measure(answer, known, threshold) if answer.sentences else None for answer in answers]


def mean_quality(qualities: Iterable[CitationQuality | None]) -> CitationQuality | None:
    """Average over answers.

    Args:
        qualities: What ``citation_quality`` returned.

    Returns:
        The means over the answers that have values; ``None`` if none has.
    """
    measured = [quality for quality in qualities if quality is not None]
    if not measured:
        return None
    return CitationQuality(
        recall=fmean(quality.recall for quality in measured),
        precision=fmean(quality.precision for quality in measured),
        grounding=fmean(quality.grounding for quality in measured),
    )


def grounding_score(scores: Sequence[Sequence[float]]) -> float:
    """Say how well passages support a response as a whole.

    Args:
        scores: One row a sentence, one column a passage, each P(passage entails sentence).

    Returns:
        The mean over sentences of the best score; 0 without sentences, and a sentence without passages counts 0.
    """
    return fmean(max(row, default=0.0) for row in scores) if scores else 0.0


def _check(answer: CitedAnswer) -> None:
    for cited in answer.sentences:
        wrong = [number for number in cited["citations"] if not 1 <= number <= len(answer.passages)]
        if wrong:
            raise InvalidInputError(
                f"{cited['sentence']!r:.80} cites {wrong} of {len(answer.passages)} passages",
                expected="numbers from 1 to the number of passages; others are counted under 'rejected'",
            )


def _pairs(answer: CitedAnswer) -> Iterator[Pair]:
    for cited in answer.sentences:
        for passage in answer.passages:
            yield passage, cited["sentence"]
        if _may_be_entailed(cited):
            yield _premise(answer, cited["citations"]), cited["sentence"]
            for number in cited["citations"]:
                if others := _others(cited, number):
                    yield _premise(answer, others), cited["sentence"]


def _measure(answer: CitedAnswer, scores: Mapping[Pair, float], threshold: float) -> CitationQuality:
    def entails(cited: CitedSentence, numbers: Sequence[int]) -> bool:
        return bool(numbers) and scores[_premise(answer, numbers), cited["sentence"]] > threshold

    def counts(cited: CitedSentence, number: int) -> bool:
        return entails(cited, [number]) or not entails(cited, _others(cited, number))

    recalls = [_may_be_entailed(cited) and entails(cited, cited["citations"]) for cited in answer.sentences]
    precisions = [
        recall and counts(cited, number)
        for cited, recall in zip(answer.sentences, recalls, strict=True)
        for number in cited["citations"]
    ]
    table = [[scores[passage, cited["sentence"]] for passage in answer.passages] for cited in answer.sentences]
    return CitationQuality(
        recall=fmean(recalls),
        precision=fmean(precisions) if precisions else 0.0,
        grounding=grounding_score(table),
    )


def _may_be_entailed(cited: CitedSentence) -> bool:
    return bool(cited["citations"]) and not cited["rejected"]


def _others(cited: CitedSentence, number: int) -> list[int]:
    return [other for other in cited["citations"] if other != number]


def _premise(answer: CitedAnswer, numbers: Sequence[int]) -> str:
    return "\n".join(answer.passages[number - 1] for number in numbers)
