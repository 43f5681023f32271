"""Thirty pairs of our own sentences, each a kind of thing that scorers of entailment get wrong.

    python -m training.nli.probe

shows what the embedded scorer says to them. They are too few for a figure with digits; they are there to be read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adaptllm_chain.entailment import EntailmentScorer, embedded_scorer

FILE = Path(__file__).with_name("probe.jsonl")


@dataclass(frozen=True, slots=True)
class ProbePair:
    """A pair and what is right.

    Attributes:
        kind: What is tried, e.g. ``"negated"``.
        entailed: Whether the premise entails the hypothesis.
        premise: The premise.
        hypothesis: The hypothesis.
    """

    kind: str
    entailed: bool
    premise: str
    hypothesis: str


def read_probe() -> list[ProbePair]:
    """Read the pairs.

    Returns:
        The pairs, in the order of the file.
    """
    return [ProbePair(**json.loads(line)) for line in FILE.read_text(encoding="utf-8").splitlines()]


def probe(scorer: EntailmentScorer) -> list[dict[str, Any]]:
    """Ask a scorer about the pairs.

    Args:
        scorer: Any scorer.

    Returns:
        ``kind``, ``hypothesis``, ``entailed``, ``score`` and ``right`` (at .5) of each pair, in order.
    """
    pairs = read_probe()
    scores = scorer.score([(pair.premise, pair.hypothesis) for pair in pairs])
    return [
        {
            "kind": pair.kind,
            "hypothesis": pair.hypothesis,
            "entailed": pair.entailed,
            "score": round(score, 3),
            "right": (score > 0.5) == pair.entailed,
        }
        for pair, score in zip(pairs, scores, strict=True)
    ]


if __name__ == "__main__":
    for found in probe(embedded_scorer()):
        mark = " " if found["right"] else "x"
        truth = "entailed" if found["entailed"] else "not"
        print(f"{mark} {found['score']:.3f} {truth:8} {found['kind']}: {found['hypothesis']}")
