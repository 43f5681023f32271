"""A picture of matplotlib's as part of a page: its colours the page's, its identifiers its own."""

from __future__ import annotations

import re
from typing import Final

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.reporting.palette import DAY

_HEAD: Final = re.compile(r'.*?<svg\b[^>]*?viewBox="([^"]*)"[^>]*>', re.DOTALL)
_IDENTIFIER: Final = re.compile(r'(\bid="|url\(#|href="#)')
# So that the letters of all pictures are as large as those of the tables.
_PIXELS_A_POINT: Final = 1.4


def inline(svg: bytes, name: str) -> str:
    """Make a picture part of a page.

    Args:
        svg: The picture, as :func:`adaptllm_chain.reporting.draw` makes it.
        name: The chart's id. All identifiers of the picture begin with it and a dot, which no other id of the page has;
            what describes the picture is the element ``NAME.alt``.

    Returns:
        The ``<svg>`` element. The page is to define the colours of the palette as CSS variables.

    Raises:
        InvalidInputError: If it is no picture of ours.
    """
    text = svg.decode()
    head = _HEAD.match(text)
    if head is None:
        raise InvalidInputError(f"the picture of {name!r} is no SVG with a viewBox", expected="what draw() returned")
    body = text[head.end() :].rstrip().replace("xlink:href", "href")
    body = _IDENTIFIER.sub(rf"\g<1>{name}.", body)
    for colour, hexadecimal in DAY.items():
        body = body.replace(f": {hexadecimal}", f": var(--{colour})")
    width = _PIXELS_A_POINT * float(head[1].split()[2])
    return f'<svg viewBox="{head[1]}" style="max-width: {width:.0f}px" role="img" aria-labelledby="{name}.alt">{body}'
