"""Figures in words: the one place that says how a number, an interval and a cell are written."""

from __future__ import annotations

from dataclasses import dataclass

from adaptllm_chain.reporting.document import Cell, Setting, Unit

NOTHING = "\N{EN DASH}"
PAPER = "paper"
_MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """A cell in words, in the parts that a page sets differently.

    Attributes:
        figure: The figure with its unit, the text in its place, or a dash for nothing.
        interval: ``"[34.7, 39.0]"``, in the unit of the figure; empty without one.
        source: ``"paper"`` if the figure is the paper's; otherwise empty.
        remarks: What the figure counts, and the note.
    """

    figure: str
    interval: str = ""
    source: str = ""
    remarks: tuple[str, ...] = ()

    def __str__(self) -> str:
        remarks = "; ".join(filter(None, (self.source, *self.remarks)))
        return " ".join(filter(None, (self.figure, self.interval, f"({remarks})" if remarks else "")))


def word(cell: Cell) -> Wording:
    """Put a cell into words.

    Args:
        cell: The cell; shares are written in per cent, with one decimal.

    Returns:
        Its parts; together for example ``"36.8 % [34.7, 39.0] (184 of 500)"``.
    """
    interval = ""
    if cell.text is not None:
        figure = cell.text if cell.text.strip() else NOTHING
    elif cell.value is None:
        figure = NOTHING
    else:
        figure = number(cell.value, cell.unit)
        if cell.low is not None and cell.high is not None:
            interval = f"[{_digits(cell.low, cell.unit)}, {_digits(cell.high, cell.unit)}]"
    return Wording(
        figure=figure,
        interval=interval,
        source=PAPER if cell.published and figure != NOTHING else "",
        remarks=tuple(filter(None, (_counted(cell.count, cell.total), cell.note))),
    )


def number(value: float, unit: Unit) -> str:
    """Write a number with its unit.

    Args:
        value: The number; a share, in [0, 1], for per cent.
        unit: Its unit.

    Returns:
        For example ``"36.8 %"``, ``"0.512"``, ``"14,267"``, ``"1.50 s"``.
    """
    sign = {"percent": " %", "seconds": " s"}.get(unit, "")
    return _digits(value, unit) + sign


def setting(value: Setting) -> str:
    """Write the value of a setting.

    Args:
        value: The value.

    Returns:
        Itself as text; yes or no for a flag.
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _digits(value: float, unit: Unit) -> str:
    match unit:
        case "percent":
            text = f"{100 * value:.1f}"
        case "count":
            text = f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"
        case "seconds":
            text = f"{value:,.2f}"
        case "number":
            text = _three_decimals(value)
        case "none":
            text = f"{value:,}"
    if not text.strip("-0.,"):
        text = text.removeprefix("-")  # what rounds to nothing has no sign
    return text.replace("-", _MINUS)


def _three_decimals(value: float) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    text = f"{value:,.3f}"
    # A probability of 0.00004 is not 0.
    return f"{value:.1e}" if value and not text.strip("-0.") else text


def _counted(count: int | None, total: int | None) -> str:
    if count is None:
        return "" if total is None else f"of {total:,}"
    return f"{count:,}" if total is None else f"{count:,} of {total:,}"
