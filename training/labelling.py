"""From what a base model answered to training rows: Algorithm 1, and two labels beyond the paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.metrics import is_known
from adaptllm_chain.metrics.labels import KnownRule
from adaptllm_chain.prompts import PromptTemplates
from adaptllm_chain.records import PromptKind, Question
from adaptllm_chain.ret.marker import RET

Row = dict[str, Any]
Label = Literal["known", "soft", "utility"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the base model said to one question.

    Attributes:
        answer: Its greedy answer with no context.
        samples: Sampled answers with no context; needed by the soft label.
        with_passage: Its greedy answer given the gold passage; needed by the utility label, ``None`` for
            a question without one.
    """

    answer: str
    samples: tuple[str, ...] = ()
    with_passage: str | None = None


def share_to_answer(
    question: Question, evidence: Evidence, *, label: Label = "known", rule: KnownRule = "contains"
) -> float:
    """Say how much a question calls for an answer from memory.

    Args:
        question: The question.
        evidence: What the base model said.
        label: ``"known"`` (Algorithm 1): 1 where the answer without context is right, else 0.
            ``"soft"``: the share of the sampled answers that are right. ``"utility"``: 0 only where the
            answer without context is wrong and the one with the passage is right, since retrieval helps
            nowhere else.
        rule: When an answer is right.

    Returns:
        A number in [0, 1]; the rest to 1 calls for ``<RET>``.

    Raises:
        InvalidInputError: If the label needs samples and there are none.
    """
    if label == "soft":
        if not evidence.samples:
            raise InvalidInputError("the soft label was asked for without sampled answers", hint="--samples 8")
        right = [is_known(sample, question.answers, rule=rule) for sample in evidence.samples]
        return sum(right) / len(right)
    if is_known(evidence.answer, question.answers, rule=rule):
        return 1.0
    if label == "known":
        return 0.0
    helps = evidence.with_passage is not None and is_known(evidence.with_passage, question.answers, rule=rule)
    return float(not helps)


def adaptive_rows(
    question: Question,
    evidence: Evidence,
    templates: PromptTemplates,
    *,
    label: Label = "known",
    rule: KnownRule = "contains",
) -> Iterator[Row]:
    """Make the training rows of one question (Algorithm 1, lines 4 to 13).

    Args:
        question: The question.
        evidence: What the base model said.
        templates: The prompts.
        label: How a question is labelled, as for ``share_to_answer``.
        rule: When an answer is right: ``"contains"`` (the authors') or ``"exact_match"``.

    Yields:
        ``parametric prompt -> answer`` for what can be answered from memory, ``parametric prompt -> <RET>``
        and ``context prompt -> answer`` for what cannot. A question that is known in part gives
        both, each with its share as ``weight``. One without a gold passage gives no context row.
    """
    share = share_to_answer(question, evidence, label=label, rule=rule)
    answer = taught_answer(question, evidence, rule=rule)
    if share > 0:
        yield _row("parametric", question, answer, templates, known=True, weight=share)
    if share < 1:
        yield _row("parametric", question, RET, templates, known=False, weight=1 - share)
        if question.gold_passage is not None:
            yield _row("context", question, answer, templates, known=False)


def never_retrieve_row(
    question: Question, evidence: Evidence, templates: PromptTemplates, *, rule: KnownRule = "contains"
) -> Row:
    """Make the row of the never-retrieve model: ``closed-book prompt -> answer``.

    Args:
        question: The question.
        evidence: What the base model said.
        templates: The prompts.
        rule: When an answer is right.

    Returns:
        The row.
    """
    known = is_known(evidence.answer, question.answers, rule=rule)
    return _row("closed_book", question, taught_answer(question, evidence, rule=rule), templates, known=known)


def always_retrieve_row(
    question: Question, evidence: Evidence, templates: PromptTemplates, *, rule: KnownRule = "contains"
) -> Row | None:
    """Make the row of the always-retrieve model: ``context prompt -> answer``, known or not.

    Args:
        question: The question.
        evidence: What the base model said.
        templates: The prompts.
        rule: When an answer is right.

    Returns:
        The row; ``None`` for a question without a gold passage.
    """
    if question.gold_passage is None:
        return None
    known = is_known(evidence.answer, question.answers, rule=rule)
    return _row("context", question, taught_answer(question, evidence, rule=rule), templates, known=known)


def taught_answer(question: Question, evidence: Evidence, *, rule: KnownRule = "contains") -> str:
    """Choose which of several accepted answers is taught: the one that the model itself gave, else the first.

    Args:
        question: The question.
        evidence: What the base model said.
        rule: When an answer is right.

    Returns:
        An accepted answer.
    """
    for said in (evidence.answer, *evidence.samples):
        for answer in question.answers:
            if is_known(said, [answer], rule=rule):
                return answer
    return question.answers[0]


def _row(
    kind: PromptKind,
    question: Question,
    completion: str,
    templates: PromptTemplates,
    *,
    known: bool,
    weight: float = 1.0,
) -> Row:
    passages = [question.gold_passage] if kind == "context" and question.gold_passage is not None else []
    row: Row = {
        "prompt": templates.render(kind, question.text, passages),
        "completion": completion,
        "kind": kind,
        "label": "known" if known else "unknown",
        "question_id": question.id,
    }
    return row if weight == 1.0 else row | {"weight": round(weight, 6)}


def count(questions: int, rows: Iterable[Row]) -> dict[str, Any]:
    """Count what was made.

    Args:
        questions: How many questions were asked.
        rows: The rows of Algorithm 1.

    Returns:
        Questions, the known and unknown ones among them (sums of shares under the soft label), the share of
        ``<RET>`` in [0, 1], and rows a kind.
    """
    kinds: Counter[str] = Counter()
    mass = {"known": 0.0, "unknown": 0.0}
    for row in rows:
        kinds[row["kind"]] += 1
        if row["kind"] == "parametric":
            mass[row["label"]] += row.get("weight", 1.0)
    return {
        "questions": questions,
        **{label: round(sum_, 2) if sum_ % 1 else int(sum_) for label, sum_ in mass.items()},
        "ret_share": round(mass["unknown"] / questions, 4) if questions else None,
        "rows": dict(sorted(kinds.items())),
    }
