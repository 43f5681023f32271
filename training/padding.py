"""Where a batch of unequal rows is cut, so that little of it is padding."""

from __future__ import annotations

from collections.abc import Sequence

# Fewer tokens of padding cost less than a further pass: of a Llama of 135M parameters it costs what about 11 tokens
# do in float32 (a fit through 64 to 512 tokens on one thread), and the smaller pieces use the processor less well.
_WORTH_A_PASS = 32


def cut_padding(lengths: Sequence[int], worth: int = _WORTH_A_PASS) -> list[int]:
    """Cut a batch where its padding costs more than a further pass, as where short rows follow long ones.

    Args:
        lengths: Tokens of each row, in order.
        worth: Tokens of padding that a cut has to save.

    Returns:
        How many rows each piece holds, in order.
    """

    def cost(rows: Sequence[int]) -> int:
        return len(rows) * max(rows)

    if len(lengths) < 2:
        return [len(lengths)]
    best, at = min((cost(lengths[:at]) + cost(lengths[at:]), at) for at in range(1, len(lengths)))
    if cost(lengths) - best < worth:
        return [len(lengths)]
    return [*cut_padding(lengths[:at], worth), *cut_padding(lengths[at:], worth)]
