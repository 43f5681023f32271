"""From sampled responses and their scores to a training row: pure functions, no model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from langchain_core.documents import Document

from adaptllm_chain.agree.labelling import Scores, best_grounded, label_sentences
from adaptllm_chain.agree.prompts import GroundedPrompt
from adaptllm_chain.agree.response import sentence_texts, verbalise
from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.metrics.citation_quality import grounding_score
from adaptllm_chain.metrics.citations import CitedSentence
from training.agree.queries import Query

Row = dict[str, Any]
# One row a sentence, one column a passage; None for a response that the judge refused.
Table: TypeAlias = list[list[float]] | None

_ENDED = re.compile(r"[.!?…][\"'”\u2019»)\]]*\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """What a score has to be.

    Attributes:
        link_above: A sentence whose best score exceeds it cites that passage.
        unsupported_up_to: A sentence none of whose scores exceeds it is unsupported.
        least_grounding: A response with a lower grounding score is not kept.

    Raises:
        InvalidInputError: If they are in the wrong order.
    """

    link_above: float
    unsupported_up_to: float
    least_grounding: float = 0.0

    def __post_init__(self) -> None:
        self.label((), ())  # refuses thresholds in the wrong order, hours before there are scores

    def label(self, sentences: Sequence[str], scores: Scores) -> tuple[list[CitedSentence], list[str]]:
        """Label sentences, as ``label_sentences`` does.

        Args:
            sentences: The sentences of a response.
            scores: Their scores, one row a sentence.

        Returns:
            The sentences with their citations, and the unsupported ones.
        """
        return label_sentences(sentences, scores, link_above=self.link_above, unsupported_up_to=self.unsupported_up_to)


@dataclass(frozen=True, slots=True)
class Made:
    """What one query came to.

    Attributes:
        row: The training row; ``None`` where no response can be used.
        counts: What was counted on the way, by name.
    """

    row: Row | None
    counts: Counter[str] = field(default_factory=Counter)


def response_sentences(response: str) -> list[str]:
    """Cut a sampled response into the sentences that may be taught.

    Args:
        response: What the model said.

    Returns:
        Its sentences without marks. A last one that was not finished, since the tokens were used up, is left out
        unless it is the only one: a model would learn to stop in the middle.
    """
    sentences = sentence_texts(response)
    return sentences[:-1] if len(sentences) > 1 and not _ENDED.search(sentences[-1]) else sentences


def make_row(
    query: Query,
    passages: Sequence[Document],
    responses: Sequence[str],
    tables: Sequence[Table],
    thresholds: Thresholds,
) -> Made:
    """Keep the response that its passages support best, with citations, as what a model is to say.

    Args:
        query: The query.
        passages: The passages that were shown.
        responses: The sampled responses.
        tables: The scores of each response's ``response_sentences``; ``None`` for one that the judge refused.
        thresholds: When a sentence is linked, and when it is unsupported.

    Returns:
        The row: ``prompt``, ``completion``, ``kind`` (``"grounded"``), ``question_id``, the ``grounding`` score of
        the response, and how many ``passages`` it could cite.
    """
    counts: Counter[str] = Counter(responses=len(responses))
    usable: list[tuple[str, Scores]] = []
    labels: list[Counter[str]] = []
    for response, table in zip(responses, tables, strict=True):
        sentences = response_sentences(response)
        counts["unfinished"] += len(sentence_texts(response)) - len(sentences)
        if table is None:
            counts["refused_by_judge"] += 1
            continue
        cited, unsupported = thresholds.label(sentences, table)
        found = Counter(
            sentences=len(cited),
            linked=sum(bool(one["citations"]) for one in cited),
            unsupported=sum(one["sentence"] in unsupported for one in cited),
        )
        counts += found
        if not sentences:
            counts["empty"] += 1
            continue
        try:
            completion = verbalise(cited, unsupported)
        except InvalidInputError:
            # Its sentences could not be told apart again, which a chain would have to do.
            counts["unreadable"] += 1
            continue
        usable.append((completion, table))
        labels.append(found)
    if not usable:
        return Made(None, counts)
    best = best_grounded([table for _, table in usable])
    completion, table = usable[best]
    grounding = round(grounding_score(table), 6)
    if grounding < thresholds.least_grounding:
        counts["below_least_grounding"] += 1
        return Made(None, counts)
    counts += Counter({f"kept_{name}": number for name, number in labels[best].items()})
    counts["rows_without_citation"] += not labels[best]["linked"]
    row = {
        "prompt": GroundedPrompt().render(query.text, passages),
        "completion": completion,
        "kind": "grounded",
        "question_id": query.id,
        "grounding": grounding,
        "passages": len(passages),
    }
    return Made(row, counts)


def report(queries: int, made: Sequence[Made]) -> dict[str, Any]:
    """Add up what was counted.

    Args:
        queries: How many queries there were.
        made: What those with passages came to.

    Returns:
        Counts of queries, responses, their sentences, and the rows with theirs.
    """
    total = sum((one.counts for one in made), Counter())
    rows = [one.row for one in made if one.row is not None]
    return {
        "queries": queries,
        "without_passages": queries - len(made),
        "responses": {name: total[name] for name in ("responses", "empty", "unreadable", "refused_by_judge")},
        "sentences": _sentences(total, "") | {"unfinished": total["unfinished"]},
        "rows": {
            "rows": len(rows),
            "without_citation": total["rows_without_citation"],
            "below_least_grounding": total["below_least_grounding"],
            **_sentences(total, "kept_"),
            "mean_grounding": round(sum(row["grounding"] for row in rows) / len(rows), 4) if rows else None,
        },
    }


def _sentences(total: Counter[str], prefix: str) -> dict[str, int]:
    sentences, linked, unsupported = (total[f"{prefix}{name}"] for name in ("sentences", "linked", "unsupported"))
    return {
        "sentences": sentences,
        "linked": linked,
        "unsupported": unsupported,
        "in_between": sentences - linked - unsupported,
    }
