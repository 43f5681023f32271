"""Table 4: gold passages against retrieved ones; several passages; how often retrieval finds an answer."""

from __future__ import annotations

from collections.abc import Sequence

from adaptllm_chain.evaluation.published import PUBLISHED_PASSAGES
from adaptllm_chain.evaluation.tables import cells
from adaptllm_chain.evaluation.tables.evidence import PASSAGES, Experiment
from adaptllm_chain.metrics import found_within
from adaptllm_chain.reporting import Cell, Row, Table


def table_4(found: Sequence[Experiment]) -> Table | None:
    """Make the paper's Table 4.

    Args:
        found: The experiments; data sets that were asked with gold passages are in it, with one passage a question.

    Returns:
        The table; ``None`` without such a data set.
    """
    with_gold = {one.key[:2] for one in found if one.first.retriever == "gold"}
    compared = [one for one in found if one.key[:2] in with_gold and one.first.k == 1]
    if not compared:
        return None
    rows = [
        Row(
            label=Cell(text=f"{one.first.trained_on}, passages {PASSAGES[one.first.retriever]}"),
            cells=(
                cells.text(one.first.data),
                cells.text(one.called(mode)),
                cells.count(one.questions),
                cells.share(one.share(one.right(mode))),
                cells.share(one.share([row.route == "retrieve" for row in one.rows(mode)])),
            ),
        )
        for one in compared
        for mode in ("adaptive", "always_retrieve")
        if one.has(mode)
    ]
    for data, printed in PUBLISHED_PASSAGES.items():
        for name, figure in (("gold", printed.gold), ("by Contriever", printed.contriever)):
            row = [cells.text(f"{data} dev"), cells.text("adaptive"), cells.NOTHING, cells.paper(figure), cells.NOTHING]
            rows.append(cells.paper_row(f"passages {name}", row))
    return Table(
        id="table-4",
        title="Table 4: gold passages against retrieved ones",
        caption="Containment with one passage a question.",
        columns=("model, passages", "data", "mode", "questions", "containment", "retrieves"),
        rows=tuple(rows),
    )


def several(found: Sequence[Experiment]) -> Table | None:
    """Compare numbers of passages a question.

    Args:
        found: The experiments; those that differ from another one in their number of passages alone are in it.

    Returns:
        The table; ``None`` if all have the same number.
    """
    groups: dict[tuple[str, str, str], list[Experiment]] = {}
    for one in found:
        groups.setdefault(one.key[:3], []).append(one)
    rows = [
        Row(
            label=Cell(text=f"{one.first.trained_on} on {one.first.data}, passages {PASSAGES[one.first.retriever]}"),
            cells=(cells.count(one.first.k), cells.text(one.called(mode)), cells.share(one.share(one.right(mode)))),
        )
        for group in groups.values()
        if len(group) > 1
        for one in sorted(group, key=lambda one: one.first.k)
        for mode in ("always_retrieve", "adaptive")
        if one.has(mode)
    ]
    if not rows:
        return None
    return Table(
        id="several-passages",
        title="Several passages a question",
        caption="Containment with the k best passages in one prompt.",
        columns=("experiment", "k", "mode", "containment"),
        rows=tuple(rows),
    )


def recall(found: Sequence[Experiment]) -> Table | None:
    """Say how often an accepted answer stands in the first passages.

    Args:
        found: The experiments; those with the mode always_retrieve are in it.

    Returns:
        The table; ``None`` without such an experiment.
    """
    most: dict[tuple[str, str], Experiment] = {}
    for one in found:
        key = (one.first.data, one.first.retriever)
        if one.has("always_retrieve") and (key not in most or one.first.k > most[key].first.k):
            most[key] = one
    if not most:
        return None
    depths = [k for k in (1, 3, 5, 10, 20) if k <= max(one.first.k for one in most.values())]
    rows = [
        Row(
            label=Cell(text=f"{data}, passages {PASSAGES[retriever]}"),
            cells=(
                cells.count(one.questions),
                *(
                    cells.share(one.share(found_within([row.hits for row in one.rows("always_retrieve")], k)))
                    if k <= one.first.k
                    else cells.NOTHING
                    for k in depths
                ),
            ),
        )
        for (data, retriever), one in most.items()
    ]
    return Table(
        id="recall",
        title="How often retrieval brings an answer",
        caption="Share of the questions with an accepted answer in one of the first k passages (containment): no "
        "reader "
        "that sees these passages alone can pass it, but for answers that it knows.",
        columns=("data, passages", "questions", *(f"recall@{k}" for k in depths)),
        rows=tuple(rows),
    )
