"""Judged answers with citations: what the report is made of. They hold no text of a data set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from pydantic import Field

from adaptllm_chain.agree.answers import Stopped
from adaptllm_chain.evaluation.grounding.known_marks import KnownMarks
from adaptllm_chain.evaluation.grounding.prediction import GroundedPrediction
from adaptllm_chain.evaluation.grounding.scores import KnownScores
from adaptllm_chain.evaluation.judgement import Judgement
from adaptllm_chain.metrics import contains_answer, exact_match, first_line_contains_answer, token_f1
from adaptllm_chain.metrics.citation_quality import CitationQuality, CitedAnswer, citation_quality
from adaptllm_chain.metrics.citations import without_marks


class GroundedJudgement(Judgement):
    """One answer with citations, judged; right or wrong is judged without its marks, which hold numbers.

    Attributes:
        sentences: How many it has.
        cited: How many of them cite a passage.
        citations: How many passages they cite, each counted once a sentence.
        rejected: How many marks point nowhere.
        unsupported: How many statements it says no passage supports.
        unread: How many sentences were too long for the judge of entailment; nothing entails them.
        recall: The share of sentences that their citations entail, in [0, 1]; ``None`` without sentences.
        precision: The share of citations that their sentence needs; ``None`` without sentences.
        grounding: The mean over sentences of the best score with any passage; ``None`` without sentences.
        calls: How often the model was asked.
        searches: How many queries were searched for.
        stopped: Why test-time adaptation ended, where there was any.
        known: The counts of an answer whose right marks are known.
    """

    sentences: int
    cited: int = 0
    citations: int = 0
    rejected: int = 0
    unsupported: int = 0
    unread: int = 0
    recall: float | None = Field(default=None, ge=0.0, le=1.0)
    precision: float | None = Field(default=None, ge=0.0, le=1.0)
    grounding: float | None = Field(default=None, ge=0.0, le=1.0)
    calls: int = 0
    searches: int = 0
    stopped: Stopped | None = None
    known: KnownMarks | None = None

    @classmethod
    def measured(
        cls, prediction: GroundedPrediction, quality: CitationQuality | None, unread: int, known: KnownMarks | None
    ) -> Self:
        """Judge a prediction whose citations were measured.

        Args:
            prediction: The prediction, with the accepted answers.
            quality: The measures of its citations; ``None`` for an answer without sentences.
            unread: How many sentences were too long for the judge.
            known: The counts of an answer whose right marks are known.

        Returns:
            What it is worth by every metric.
        """
        said, answers = without_marks(prediction.answer), prediction.answers
        cites = [sentence["citations"] for sentence in prediction.sentences]
        return cls(
            id=prediction.id,
            route=prediction.route,
            containment=contains_answer(said, answers),
            first_line_containment=first_line_contains_answer(said, answers),
            exact_match=exact_match(said, answers),
            f1=token_f1(said, answers),
            hits=tuple(contains_answer(passage.premise, answers) for passage in prediction.passages),
            failed=prediction.error is not None,
            sentences=len(cites),
            cited=sum(map(bool, cites)),
            citations=sum(map(len, cites)),
            rejected=prediction.rejected,
            unsupported=len(prediction.unsupported),
            unread=unread,
            recall=None if quality is None else quality.recall,
            precision=None if quality is None else quality.precision,
            grounding=None if quality is None else quality.grounding,
            calls=prediction.calls,
            searches=prediction.searches,
            stopped=prediction.stopped,
            known=known,
        )


def judge(
    predictions: Sequence[GroundedPrediction],
    scores: KnownScores,
    known: Sequence[KnownMarks | None] | None = None,
    *,
    threshold: float = 0.5,
) -> list[GroundedJudgement]:
    """Judge predictions.

    Args:
        predictions: The predictions.
        scores: What the judge of entailment says of their sentences.
        known: The counts of answers whose right marks are known, one a prediction.
        threshold: A passage entails a sentence if its score exceeds it.

    Returns:
        One judgement a prediction, in order.
    """
    answers = [
        CitedAnswer(sentences=row.sentences, passages=[passage.premise for passage in row.passages])
        for row in predictions
    ]
    qualities = citation_quality(answers, scores.score, threshold=threshold)
    unread = [
        sum(
            any(scores.refused((premise, cited["sentence"])) for premise in answer.passages)
            for cited in answer.sentences
        )
        for answer in answers
    ]
    counts = known or [None] * len(predictions)
    return [GroundedJudgement.measured(*row) for row in zip(predictions, qualities, unread, counts, strict=True)]
