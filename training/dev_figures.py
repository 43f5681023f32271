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


def _share(flags: Sequence[bool], among: Sequence[bool]) -> float | None:
    chosen = [flag for flag, take in zip(flags, among, strict=True) if take]
    return sum(chosen) / len(chosen) if chosen else None
