"""How good scores are on rows that were kept out of training, and two simple rules beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adaptllm_chain.evaluation.reliability import reliability
from adaptllm_chain.metrics import auc, normalise_answer, wilson_interval
from training.nli.rows import ENTAILED, Row

# Where AGREE (arXiv:2311.09533, section 3) links a sentence to a passage, and above which it calls one supported.
LINK, SUPPORTED = 0.7, 0.5


def figures(rows: Sequence[Row], scores: Sequence[float]) -> dict[str, Any]:
    """Measure a scorer.

    Args:
        rows: What it scored, entailed ones and others.
        scores: P(entailed) of each row.

    Returns:
        ``rows``, ``entailed``, ``auc``, ``loss`` (mean, in nats), ``accuracy`` at .5, ``by_kind``, ``at`` (precision
        and recall at .5 and at .7), and how scores compare to frequencies: ``reliability`` by tenths of the rows,
        ``calibration_error``, ``brier``. Every share comes with its 95 % interval, ``[share, low, high]``.
    """
    truth = [row.entailed for row in rows]
    right = [(score > SUPPORTED) == entailed for score, entailed in zip(scores, truth, strict=True)]
    by_kind = {}
    for kind in dict.fromkeys(row.kind for row in rows):
        of_kind = [hit for hit, row in zip(right, rows, strict=True) if row.kind == kind]
        by_kind[kind] = {"entailed": kind in ENTAILED, "rows": len(of_kind), "right": share(sum(of_kind), len(of_kind))}
    diagram = reliability(scores, truth)
    return {
        "rows": len(rows),
        "entailed": sum(truth),
        "auc": round(auc(scores, truth), 4),
        "loss": round(log_loss(scores, truth), 4),
        "accuracy": share(sum(right), len(right)),
        "by_kind": by_kind,
        "at": {str(cut): _at(cut, scores, truth) for cut in (SUPPORTED, LINK)},
        "reliability": [
            {"score": round(part.probability, 4), "entailed": round(part.wrong, 4), "rows": part.count}
            for part in diagram.bins
        ],
        "calibration_error": round(diagram.calibration_error, 4),
        "brier": round(diagram.brier, 4),
    }


def baseline(rows: Sequence[Row], values: Sequence[float]) -> dict[str, Any]:
    """Measure a simple rule, which is no probability: with the cut that is best for it on these very rows.

    Args:
        rows: As for ``figures``.
        values: The rule's value of each row; higher should mean entailed.

    Returns:
        ``auc``, ``best_cut``, ``accuracy`` there (no fair one: the cut was chosen on the rows it is measured on),
        and ``by_kind``, the share right there.
    """
    truth = [row.entailed for row in rows]
    cut, hits = _best_cut(values, truth)
    by_kind = {}
    for kind in dict.fromkeys(row.kind for row in rows):
        of_kind = [(v > cut) == row.entailed for v, row in zip(values, rows, strict=True) if row.kind == kind]
        by_kind[kind] = share(sum(of_kind), len(of_kind))
    return {
        "auc": round(auc(values, truth), 4),
        "best_cut": round(cut, 4),
        "accuracy": share(hits, len(rows)),
        "by_kind": by_kind,
    }


def word_overlap(row: Row) -> float:
    """Say how much of a hypothesis stands in its premise.

    Args:
        row: The row.

    Returns:
        The share of the hypothesis's different words, normalised as answers are, in [0, 1].
    """
    words = set(normalise_answer(row.hypothesis).split())
    return len(words & set(normalise_answer(row.premise).split())) / len(words) if words else 0.0


def cosine(rows: Sequence[Row]) -> list[float]:
    """Compare premises and hypotheses as vectors of all-MiniLM-L6-v2.

    Args:
        rows: The rows.

    Returns:
        The cosine of each row's two vectors.
    """
    from adaptllm_chain.retrieval import embedded_embeddings

    texts = list(dict.fromkeys(text for row in rows for text in (row.premise, row.hypothesis)))
    place = {text: number for number, text in enumerate(texts)}
    vectors = embedded_embeddings().embed_matrix(texts)
    return [float(vectors[place[row.premise]] @ vectors[place[row.hypothesis]]) for row in rows]


def log_loss(scores: Sequence[float], truth: Sequence[bool]) -> float:
    """Average the negative log-probability of what is true.

    Args:
        scores: P(entailed) of each row.
        truth: Whether it is.

    Returns:
        The mean, in nats; a score of 0 or 1 that is wrong counts as a millionth, so that the mean stays finite.
    """
    from math import log

    least = 1e-6
    return -sum(log(max(least, s if true else 1 - s)) for s, true in zip(scores, truth, strict=True)) / len(scores)


def share(successes: int, total: int) -> list[float] | None:
    """Write a share with its 95 % interval.

    Args:
        successes: How many succeeded.
        total: Of how many.

    Returns:
        The share, its lower and its upper end, to four digits; ``None`` of nothing.
    """
    if total == 0:
        return None
    low, high = wilson_interval(successes, total)
    return [round(successes / total, 4), round(low, 4), round(high, 4)]


def _at(cut: float, scores: Sequence[float], truth: Sequence[bool]) -> dict[str, list[float] | None]:
    above = [true for score, true in zip(scores, truth, strict=True) if score > cut]
    return {"precision": share(sum(above), len(above)), "recall": share(sum(above), sum(truth))}


def _best_cut(values: Sequence[float], truth: Sequence[bool]) -> tuple[float, int]:
    """Find the value above which to say "entailed" so that most rows are right, and how many then are."""
    ordered = sorted(zip(values, truth, strict=True))
    hits = best = sum(truth)
    cut = ordered[0][0] - 1.0
    for place, (value, true) in enumerate(ordered):
        hits += -1 if true else 1
        last_of_ties = place + 1 == len(ordered) or ordered[place + 1][0] > value
        if last_of_ties and hits > best:
            best, cut = hits, value
    return cut, best
