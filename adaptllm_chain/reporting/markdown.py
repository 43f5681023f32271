"""Text in Markdown that stays text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from adaptllm_chain.reporting.document import Cell
from adaptllm_chain.reporting.wording import word

# What begins something anywhere in a line: code, emphasis, links, HTML, tables, headings, mathematics, entities.
_ANYWHERE: Final = re.compile(r"([\\`*_{}\[\]<>#|~$&!])")
# What begins something at the start of a line only: lists and underlined headings.
_AT_START: Final = re.compile(r"^( ?)(?:([-+=])(?=[-= ]|$)|(\d+)([.)])(?= |$))")
_FENCE: Final = re.compile(r"`+")


class Verbatim(str):
    """Markdown that is meant as such."""

    __slots__ = ()


def as_text(value: object) -> str:
    """Escape what Markdown would take for markup.

    Args:
        value: What is to be printed.

    Returns:
        Markdown that shows the value as text, in one line; what is verbatim stays as it is.
    """
    if isinstance(value, Verbatim):
        return value
    # Four spaces at the start would make code of a line; elsewhere they do not count.
    text = re.sub(" +", " ", str(value))
    text = _ANYWHERE.sub(r"\\\1", text)
    return _AT_START.sub(_disarm, text)


def _disarm(found: re.Match[str]) -> str:
    space, sign, digits, stop = found.groups()
    return f"{space}\\{sign}" if sign else f"{space}{digits}\\{stop}"


def cell_text(cell: Cell, *, in_published_row: bool = False) -> Verbatim:
    """Write a cell of a table.

    Args:
        cell: The cell.
        in_published_row: Whether the label of the row says already that all of it is the paper's.

    Returns:
        It in one line. The brackets of an interval need no escape, and are easier to read without.
    """
    wording = word(cell)
    return Verbatim(
        replace(
            wording,
            figure=as_text(wording.figure),
            source="" if in_published_row else wording.source,
            remarks=tuple(as_text(remark) for remark in wording.remarks),
        )
    )


def fenced(lines: Sequence[str]) -> Verbatim:
    """Show lines as they are.

    Args:
        lines: The lines.

    Returns:
        A fenced block of code; the fence is longer than any in the lines.
    """
    longest = max((len(run) for text in lines for run in _FENCE.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return Verbatim("\n".join([fence, *lines, fence]))
