"""The records that pass between rooms: a question, a decision, an answer.

Passages are LangChain ``Document`` objects everywhere; their ``metadata["title"]`` holds the title.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from langchain_core.documents import Document

# Pydantic reads the schema of a TypedDict on Python < 3.12 only from typing_extensions.
from typing_extensions import TypedDict

Route = Literal["direct", "retrieve"]
PromptKind = Literal["parametric", "context", "closed_book"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question of a data set.

    Attributes:
        id: The identifier in its source; unique within a file.
        text: The question as the source spells it.
        answers: All accepted answers; never empty, order as in the source.
        gold_passage: The passage that the source marks as holding the answer.
        given_passages: Passages that some retriever found before, best first.
        popularity: Monthly page views of the subject (PopQA's ``s_pop``).
        relation: The kind of fact that is asked for (PopQA's ``prop``).
        metadata: Whatever else the source holds, unchanged.
    """

    id: str
    text: str
    answers: tuple[str, ...]
    gold_passage: Document | None = None
    given_passages: tuple[Document, ...] = ()
    popularity: float | None = None
    relation: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetSignal:
    """What is known of the probability that a model's output starts with ``<RET>``.

    Attributes:
        probability: In [0, 1]; ``None`` when nothing is known.
        kind: ``"exact"``: of the whole marker. ``"first_piece"``: of the marker's first token, an
            upper estimate used as a stand-in. ``"upper_bound"``: the marker was not among the
            reported log-probabilities, and this is the most it can have had. ``"judged"``: no
            property of the output, but a decision model's probability that retrieval is needed.
            ``"unknown"``: the model reported nothing.
    """

    probability: float | None = None
    kind: Literal["exact", "first_piece", "upper_bound", "judged", "unknown"] = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Whether a question was answered from memory or with retrieval, and why.

    Attributes:
        route: ``"direct"`` or ``"retrieve"``.
        rule: Which rule decided: ``token``, ``probability``, ``always``, ``never``, ``popularity``,
            ``decision_model``.
        reason: One readable sentence.
        signal: What the model's first output, or a decision model, said about retrieval.
        threshold: The cut that was applied, for the rules that have one.
    """

    route: Route
    rule: Literal["token", "probability", "always", "never", "popularity", "decision_model"]
    reason: str
    signal: RetSignal = field(default_factory=RetSignal)
    threshold: float | None = None


class AdaptiveAnswer(TypedDict, total=False):
    """The chain's result: the keys of LangChain's retrieval chain, and the decision.

    Keys of a mapping that was passed as input are carried over, as LangChain's chain does.
    """

    input: str
    context: list[Document]
    answer: str
    retrieved: bool
    ret_probability: float | None
    decision: Decision
