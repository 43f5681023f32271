"""Answers as they are written for the client."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from pathlib import PurePath
from typing import Any, NotRequired

from langchain_core.documents import Document

# FastAPI describes these in its schema; pydantic reads a TypedDict on Python < 3.12 only from typing_extensions.
from typing_extensions import TypedDict

from adaptllm_chain.records import Decision, Route
from adaptllm_chain.serve.marks import find_marks
from adaptllm_chain.serve.progress import Answered, Decided


class DecisionRow(TypedDict):
    """Why a question was answered from memory or with retrieval; the signal is explained in ``RetSignal``."""

    rule: str
    reason: str
    threshold: float | None
    signal_kind: str
    signal_probability: float | None


class PassageRow(TypedDict):
    """A passage that was answered from; ``marks`` are ranges of code points where it says what the answer says."""

    title: str
    text: str
    score: float | None
    id: str | None
    marks: NotRequired[list[tuple[int, int]]]


class DecidedRow(TypedDict):
    """What is told of a question as soon as it is decided about."""

    retrieved: bool
    ret_probability: float | None
    decision: DecisionRow


class EvidenceRow(DecidedRow):
    """What stands beside an answer."""

    route: Route
    context: list[PassageRow]
    seconds: float


class AnswerRow(EvidenceRow):
    """An answer."""

    question: str
    answer: str


def answer_row(answered: Answered) -> AnswerRow:
    """Write an answer down.

    Args:
        answered: The answer.

    Returns:
        What ``POST /ask`` returns.
    """
    result = answered.result
    return {"question": result["input"], "answer": result["answer"], **evidence_row(answered)}


def evidence_row(answered: Answered) -> EvidenceRow:
    """Write down how an answer was come by.

    Args:
        answered: The answer.

    Returns:
        The answer's row without question and answer.
    """
    result = answered.result
    decision = result["decision"]
    return {
        "route": decision.route,
        "retrieved": result["retrieved"],
        "ret_probability": result["ret_probability"],
        "decision": _decision_row(decision),
        "context": [_marked(_passage_row(passage), result["answer"]) for passage in result["context"]],
        "seconds": round(answered.seconds, 4),
    }


def decided_row(decided: Decided) -> DecidedRow:
    """Write a decision down.

    Args:
        decided: The decision and the probability.

    Returns:
        The row.
    """
    return {
        "retrieved": decided.decision.route == "retrieve",
        "ret_probability": decided.probability,
        "decision": _decision_row(decided.decision),
    }


def passage_rows(passages: Sequence[Document]) -> list[PassageRow]:
    """Write passages down, before there is an answer that could be marked in them.

    Args:
        passages: The passages.

    Returns:
        The rows, without marks.
    """
    return [_passage_row(passage) for passage in passages]


def _passage_row(passage: Document) -> PassageRow:
    """Write a passage down.

    Args:
        passage: The passage.

    Returns:
        The row, without marks.
    """
    title = passage.metadata.get("title")
    return {
        "title": "" if title is None else str(title),
        "text": passage.page_content,
        "score": _number(passage.metadata.get("score")),
        "id": _told_id(passage),
    }


def _told_id(passage: Document) -> str | None:
    """The id; of a file's path on this machine the name alone, for the folders are the operator's affair."""
    source = PurePath(str(passage.metadata.get("source", "")))
    if passage.id is None or not source.is_absolute():
        return passage.id
    return passage.id.removeprefix(f"{source.parent.as_posix().rstrip('/')}/")


def _marked(row: PassageRow, answer: str) -> PassageRow:
    return {**row, "marks": find_marks(row["text"], answer)}


def _decision_row(decision: Decision) -> DecisionRow:
    return {
        "rule": decision.rule,
        "reason": decision.reason,
        "threshold": decision.threshold,
        "signal_kind": decision.signal.kind,
        "signal_probability": _number(decision.signal.probability),
    }


def _number(value: Any) -> float | None:
    # Scores are often numpy's, and JSON has no NaN.
    return float(value) if isinstance(value, Real) and math.isfinite(value) else None
