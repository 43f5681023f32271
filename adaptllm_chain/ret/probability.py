"""How probable it was that an output starts with the marker, from what the model reported."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args, get_type_hints

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.records import RetSignal
from adaptllm_chain.ret.marker import RET
from adaptllm_chain.ret.token_logprobs import Position, read_positions

# How tokenizers write white space inside a token when a server reports tokens undecoded.
_SPACE = " \t\r\n▁ĠĊ"
_KINDS = get_args(get_type_hints(RetSignal)["kind"])
_ROUNDING = 1e-6


def read_signal(*infos: Mapping[str, Any], marker: str = RET) -> RetSignal:
    """Read the probability of the marker out of what a model reported beside its text.

    A model that knows the probability says so itself, under ``ret_probability`` and
    ``ret_probability_kind``. Otherwise it is worked out from token log-probabilities:

    * the output's tokens spell the marker: ``"exact"``, the product of their probabilities;
    * a token listed for the first position begins the marker: ``"first_piece"``, its probability
      (``"exact"`` where that token is the whole marker);
    * neither: ``"upper_bound"``, since a token that is not listed is no more probable than the
      last one that is, and has no more than what the listed ones leave over;
    * nothing reported: ``"unknown"``. No ratio is ever made up.

    White space before the first piece is passed over.

    Args:
        *infos: The ``generation_info`` or ``response_metadata`` of the output, or of its stream's
            chunks in order.
        marker: How the request is spelled.

    Returns:
        What is known.
    """
    for info in infos:
        if info.get("ret_probability") is not None:
            return _own_signal(info)
    positions = [position for info in infos for position in read_positions(info)]
    spoken = [position for index, position in enumerate(positions) if _spoken(positions[: index + 1])]
    if not spoken:
        return RetSignal()
    whole = _spelled(spoken, marker.casefold())
    return whole or _from_first(spoken[0], marker.casefold())


def says_ret(infos: Iterable[Mapping[str, Any]]) -> bool:
    """Say whether a model reports that its output is the marker, whatever its text.

    A special token for the marker may have been stripped from the text.

    Args:
        infos: As for ``read_signal``.

    Returns:
        True if ``is_ret`` is set.
    """
    return any(info.get("is_ret") is True for info in infos)


def _own_signal(info: Mapping[str, Any]) -> RetSignal:
    probability = float(info["ret_probability"])
    kind = info.get("ret_probability_kind", "exact")
    if kind not in _KINDS or not -_ROUNDING <= probability <= 1 + _ROUNDING:
        raise InvalidInputError(
            f"the model reported ret_probability={probability!r} of kind {kind!r}",
            expected=f"a number in [0, 1] and one of {_KINDS}",
        )
    return RetSignal(probability=_clamp(probability), kind=kind)


def _spoken(positions: Sequence[Position]) -> bool:
    """Say whether anything but white space has been emitted up to the last of these positions."""
    return any(position.token.strip(_SPACE) for position in positions)


def _spelled(positions: Sequence[Position], marker: str) -> RetSignal | None:
    seen = ""
    product = 1.0
    for position in positions:
        if position.probability is None:
            return None
        seen = (seen + position.token).lstrip(_SPACE).casefold()
        product *= position.probability
        if seen.startswith(marker):
            return RetSignal(probability=_clamp(product), kind="exact")
        if not marker.startswith(seen):
            return None
    return None


def _from_first(first: Position, marker: str) -> RetSignal:
    chances = dict(first.listed)
    if first.probability is not None:
        chances.setdefault(first.token, first.probability)
    if not chances:
        return RetSignal()
    pieces = {token.strip(_SPACE).casefold(): 0.0 for token in chances}
    for token, chance in chances.items():
        pieces[token.strip(_SPACE).casefold()] += chance
    begun = {piece: chance for piece, chance in pieces.items() if piece and _begins(piece, marker)}
    if begun:
        whole = all(piece.startswith(marker) for piece in begun)
        return RetSignal(probability=_clamp(math.fsum(begun.values())), kind="exact" if whole else "first_piece")
    bounds = [1.0 - math.fsum(chances.values())]
    if first.listed:
        # A sampled token may have been added below the top ones: it bounds nothing.
        ranked = [chance for token, chance in first.listed.items() if token != first.token]
        bounds.append(min(ranked or first.listed.values()))
    return RetSignal(probability=_clamp(min(bounds)), kind="upper_bound")


def _begins(piece: str, marker: str) -> bool:
    return marker.startswith(piece) or piece.startswith(marker)


def _clamp(probability: float) -> float:
    return math.nan if math.isnan(probability) else min(max(probability, 0.0), 1.0)
