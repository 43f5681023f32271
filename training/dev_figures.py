"""What an adapter does on the questions that were kept out of training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from training.rows import Row


def dev_figures(llm: Any, rows: Sequence[Row]) -> dict[str, Any]:
    """Measure an adapter on the parametric rows of the dev side.

    Args:
        llm: The model with its adapter.
        rows: The dev rows.

    Returns:
        Counts, the share that asks for retrieval, how P(``<RET>``) ranks unknown questions above known ones
        (area under the curve), and how many direct answers are right.
    """
    from adaptllm_chain.metrics import auc
    from adaptllm_chain.ret.marker import is_request, read_spelling

    # Under a soft label a question has two rows; the one that weighs more says what it is.
    heaviest: dict[str, Row] = {}
    for row in rows:
        if row["kind"] == "parametric":
            known = heaviest.setdefault(row["prompt"], row)
            if row.get("weight", 1.0) > known.get("weight", 1.0):
                heaviest[row["prompt"]] = row
    parametric = list(heaviest.values())
    if not parametric:
        return {"questions": 0}
    result = llm.generate([row["prompt"] for row in parametric])
    outputs = [generations[0] for generations in result.generations]
    asked = [is_request(read_spelling(output.text)) for output in outputs]
    unknown = [row["label"] != "known" for row in parametric]
    probabilities = [output.generation_info["ret_probability"] for output in outputs]
    both_classes = len(set(unknown)) == 2
    return {
        "questions": len(parametric),
        "known": unknown.count(False),
        "ret_share": sum(asked) / len(asked),
        "ret_share_of_known": _share(asked, [not flag for flag in unknown]),
        "ret_share_of_unknown": _share(asked, unknown),
        "auc": auc(probabilities, unknown) if both_classes else None,
        "ret_probability_quantiles": [sorted(probabilities)[int(q * (len(probabilities) - 1))] for q in _QUANTILES],
    }


_QUANTILES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)


def citing_figures(llm: Any, rows: Sequence[Row], max_new_tokens: int) -> dict[str, Any]:
    """Measure how an adapter cites on the grounded rows of the dev side.

    Whether a citation is right is for a judge of entailment to say, in an evaluation. Here stands what needs none:
    whether the adapter writes the form that it was taught, and as often as its rows do.

    Args:
        llm: The model with its adapter.
        rows: The grounded dev rows, at least one.
        max_new_tokens: The most tokens of an answer.

    Returns:
        Counts, shares in [0, 1] of sentences that cite and of answers that list unsupported statements, each beside
        that of the rows themselves, and the marks that point nowhere.
    """
    from adaptllm_chain.agree.response import parse_response

    texts = llm.batch([row["prompt"] for row in rows], max_new_tokens=max_new_tokens)
    passages = [row["passages"] for row in rows]
    answers = [parse_response(text, count) for text, count in zip(texts, passages, strict=True)]
    taught = [parse_response(row["completion"], count) for row, count in zip(rows, passages, strict=True)]
    return {
        "questions": len(rows),
        "sentences": sum(len(answer.sentences) for answer in answers),
        "cited_share": _cited_share(answers),
        "cited_share_taught": _cited_share(taught),
        "unsupported_share": sum(bool(answer.unsupported) for answer in answers) / len(answers),
        "unsupported_share_taught": sum(bool(answer.unsupported) for answer in taught) / len(taught),
        "rejected_citations": sum(answer.rejected for answer in answers),
    }


def _cited_share(answers: Sequence[Any]) -> float | None:
    sentences = [cited for answer in answers for cited in answer.sentences]
    return _share([bool(cited["citations"]) for cited in sentences], [True] * len(sentences))


def _share(flags: Sequence[bool], among: Sequence[bool]) -> float | None:
    chosen = [flag for flag, take in zip(flags, among, strict=True) if take]
    return sum(chosen) / len(chosen) if chosen else None
