"""From figures to cells: the one place that says how ours and the paper's are written into tables."""

from __future__ import annotations

from collections.abc import Sequence

from adaptllm_chain.evaluation.estimate import Estimate
from adaptllm_chain.reporting import Cell, Row

NOTHING = Cell()
PAPER_MODEL = "Llama-2-7B"


def text(words: str | None) -> Cell:
    """Write words.

    Args:
        words: The words.

    Returns:
        The cell; that for nothing if there are none.
    """
    return Cell(text=words) if words else NOTHING


def share(estimate: Estimate | None) -> Cell:
    """Write a share or a mean of shares, with its interval.

    Args:
        estimate: The figure in [0, 1] (or [-1, 1] for a difference), or nothing.

    Returns:
        The cell, in per cent.
    """
    if estimate is None:
        return NOTHING
    return Cell(
        value=estimate.value,
        low=estimate.low,
        high=estimate.high,
        count=estimate.count,
        total=estimate.total,
        unit="percent",
    )


def number(value: float | None, *, low: float | None = None, high: float | None = None) -> Cell:
    """Write a plain number.

    Args:
        value: The number, or nothing.
        low: Lower end of its interval.
        high: Upper end of its interval.

    Returns:
        The cell.
    """
    return NOTHING if value is None else Cell(value=value, low=low, high=high, unit="number")


def count(value: int) -> Cell:
    """Write a count.

    Args:
        value: The count.

    Returns:
        The cell.
    """
    return Cell(value=value, unit="count")


def paper(per_cent: float) -> Cell:
    """Write a share that the paper prints.

    Args:
        per_cent: The share as printed there.

    Returns:
        The cell, marked as the paper's; with its two decimals, for rounding them again would change some.
    """
    return Cell(text=f"{per_cent:.2f} %", published=True)


def paper_row(label: str, cells: Sequence[Cell], *, model: str | None = PAPER_MODEL) -> Row:
    """Make a row of the paper's own figures.

    Args:
        label: What it is about.
        cells: The cells.
        model: The paper's model; ``None`` where no model is concerned.

    Returns:
        The row, marked as the paper's.
    """
    return Row(
        label=Cell(text=label if model is None else f"{label} ({model})", published=True),
        cells=tuple(cell.model_copy(update={"published": True}) for cell in cells),
        published=True,
    )
