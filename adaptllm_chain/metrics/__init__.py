"""Metrics, each named for what it is: exact match, containment, F1, recall, citations, and how sure they are."""

from __future__ import annotations

from adaptllm_chain.metrics.answers import contains_answer, exact_match, first_line_contains_answer, token_f1
from adaptllm_chain.metrics.citation_quality import (
    CitationQuality,
    CitedAnswer,
    citation_quality,
    grounding_score,
    mean_quality,
)
from adaptllm_chain.metrics.citations import Citations, CitedSentence, read_citations
from adaptllm_chain.metrics.intervals import wilson_interval
from adaptllm_chain.metrics.labels import KnownRule, is_known
from adaptllm_chain.metrics.mcnemar import McNemar, mcnemar
from adaptllm_chain.metrics.normalisation import normalise_answer
from adaptllm_chain.metrics.ranking import auc
from adaptllm_chain.metrics.recall import found_within, recall_at

__all__ = [
    "CitationQuality",
    "Citations",
    "CitedAnswer",
    "CitedSentence",
    "KnownRule",
    "McNemar",
    "auc",
    "citation_quality",
    "contains_answer",
    "exact_match",
    "first_line_contains_answer",
    "found_within",
    "grounding_score",
    "is_known",
    "mcnemar",
    "mean_quality",
    "normalise_answer",
    "read_citations",
    "recall_at",
    "token_f1",
    "wilson_interval",
]
