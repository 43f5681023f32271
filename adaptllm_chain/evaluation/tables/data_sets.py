"""Table 2: the data sets."""

from __future__ import annotations

from collections.abc import Sequence

from adaptllm_chain.evaluation.published import PUBLISHED_STATISTICS
from adaptllm_chain.evaluation.tables import cells
from adaptllm_chain.evaluation.tables.evidence import Experiment
from adaptllm_chain.reporting import Cell, Row, Table


def table_2(found: Sequence[Experiment]) -> Table:
    """Make the paper's Table 2.

    Args:
        found: The experiments.

    Returns:
        The table: a row a data set.
    """
    rows = []
    for name, statistics in {one.first.data: one.first.settings["statistics"] for one in found}.items():
        rows.append(
            Row(
                label=Cell(text=name),
                cells=(
                    cells.count(statistics["questions"]),
                    cells.number(statistics["words_per_question"]),
                    cells.number(statistics["words_per_answer"]),
                    cells.number(statistics["words_per_first_answer"]),
                    cells.number(statistics["answers_per_question"]),
                    cells.count(statistics["duplicates"]),
                ),
            )
        )
    for published, printed in PUBLISHED_STATISTICS.items():
        means = (printed.words_per_question, printed.words_per_answer)
        row = [cells.count(printed.questions), *map(cells.number, means), *[cells.NOTHING] * 3]
        rows.append(cells.paper_row(published, row, model=None))
    return Table(
        id="table-2",
        title="Table 2: data sets",
        caption="Words are what white space separates. The paper does not say whether its words an answer are of all "
        "accepted answers or of one.",
        columns=(
            "data",
            "questions",
            "words a question",
            "words an answer",
            "words of the first answer",
            "answers a question",
            "duplicates",
        ),
        rows=tuple(rows),
    )
