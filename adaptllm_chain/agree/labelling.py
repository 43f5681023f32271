"""Who supports what: the labels of AGREE's training rows, as pure functions of entailment scores.

Scores are a table: one row a sentence, one column a passage, each P(passage entails sentence) in [0, 1]. AGREE
(arXiv:2311.09533) links a sentence to the passage that supports it best, and keeps the response whose sentences are
supported best on average.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.metrics.citation_quality import grounding_score
from adaptllm_chain.metrics.citations import CitedSentence

Scores: TypeAlias = Sequence[Sequence[float]]

# A sentence is linked to its best passage above the first; it counts as unsupported if none is above the second.
# Both are the values with which AGREE's tuning data is made (arXiv:2311.09533); between them a sentence is neither.
LINK_ABOVE = 0.7
UNSUPPORTED_UP_TO = 0.5


def link(scores: Sequence[float], *, above: float = LINK_ABOVE) -> int | None:
    """Find the passage that a sentence is to cite.

    Args:
        scores: One sentence's score with each passage.
        above: What the best score must exceed.

    Returns:
        The number of the passage, from 1; of equals the first. ``None`` if no score is high enough.
    """
    best = max(scores, default=0.0)
    return scores.index(best) + 1 if best > above else None


def label_sentences(
    sentences: Sequence[str],
    scores: Scores,
    *,
    link_above: float = LINK_ABOVE,
    unsupported_up_to: float = UNSUPPORTED_UP_TO,
) -> tuple[list[CitedSentence], list[str]]:
    """Say of each sentence what it is to cite, and which of them nothing supports.

    Args:
        sentences: The sentences of a response, without marks.
        scores: Their scores, one row a sentence.
        link_above: A sentence whose best score exceeds it cites that passage.
        unsupported_up_to: A sentence none of whose scores exceeds it is unsupported; at most ``link_above``.

    Returns:
        The sentences with at most one citation each, and the unsupported ones; ``verbalise`` writes both as text.

    Raises:
        InvalidInputError: If there is not a row for each sentence, or the thresholds are in the wrong order.
    """
    if len(sentences) != len(scores):
        raise InvalidInputError(
            f"{len(scores)} rows of scores for {len(sentences)} sentences", expected="one row a sentence"
        )
    if unsupported_up_to > link_above:
        raise InvalidInputError(
            f"unsupported_up_to={unsupported_up_to} is above link_above={link_above}",
            expected="a sentence cannot be linked and unsupported",
            hint=f"link_above={LINK_ABOVE}, unsupported_up_to={UNSUPPORTED_UP_TO}",
        )
    cited = [
        CitedSentence(sentence=sentence, citations=[] if passage is None else [passage], rejected=0)
        for sentence, passage in zip(sentences, (link(row, above=link_above) for row in scores), strict=True)
    ]
    unsupported = [
        sentence for sentence, row in zip(sentences, scores, strict=True) if max(row, default=0.0) <= unsupported_up_to
    ]
    # Said twice, a statement is still one.
    return cited, list(dict.fromkeys(unsupported))


def best_grounded(responses: Sequence[Scores]) -> int:
    """Choose the best-grounded of several responses to one question.

    Args:
        responses: The scores of each response.

    Returns:
        The place of the one with the highest ``grounding_score``, from 0; of equals the first.

    Raises:
        InvalidInputError: If there is none.
    """
    if not responses:
        raise InvalidInputError("no responses to choose from", expected="at least one")
    means = [grounding_score(scores) for scores in responses]
    return means.index(max(means))
