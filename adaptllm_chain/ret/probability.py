"""How probable it was that an output starts with the marker, from what the model reported."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args, get_type_hints

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.records import RetSignal
from adaptllm_chain.ret.marker import RET
from adaptllm_chain.ret.token_logprobs import Position, read_positions, usable

# How tokenizers write white space inside a token when a server reports tokens undecoded.
_SPACE = " \t\r\n▁ĠĊ"
# The tokens by which Qwen and DeepSeek, Mistral, and gpt-oss begin the answer.
_THOUGHTS_END = ("</think>", "[/THINK]", "<|message|>")
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
    * nothing reported, or NaN: ``"unknown"``. No ratio is ever made up.

    White space before the first piece is passed over, and so are the thoughts of a reasoning model,
    which some servers leave among the log-probabilities though they take them out of the text.

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
    positions = _answer([position for info in infos for position in read_positions(info)])
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
    reported = info["ret_probability"]
    kind = info.get("ret_probability_kind", "exact")
    if isinstance(reported, float) and math.isnan(reported):
        return RetSignal()
    probability = usable(reported)
    if kind not in _KINDS or probability is None or not -_ROUNDING <= probability <= 1 + _ROUNDING:
        raise InvalidInputError(
            f"the model reported ret_probability={reported!r} of kind {kind!r}",
            expected=f"a number in [0, 1] and one of {_KINDS}",
        )
    return RetSignal(probability=_clamp(probability), kind=kind)


def _answer(positions: Sequence[Position]) -> Sequence[Position]:
    """Leave out what a reasoning model thought before it answered."""
    ends = (index for index, position in enumerate(positions) if any(end in position.token for end in _THOUGHTS_END))
    return positions[max(ends, default=-1) + 1 :]


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
    listed = {first.token: first.probability, **first.listed}
    chances = {token: chance for token, chance in listed.items() if chance is not None}
    begun = {token for token in listed if (piece := _piece(token)) and _begins(piece, marker)}
    unnumbered = begun - chances.keys()
    # Where a listed piece of the marker has no number, nothing is known, and no bound holds either.
    if not chances or unnumbered & first.listed.keys():
        return RetSignal()
    chance = math.fsum(chances[token] for token in begun - unnumbered)
    if begun and not unnumbered:
        whole = all(_piece(token).startswith(marker) for token in begun)
        return RetSignal(probability=_clamp(chance), kind="exact" if whole else "first_piece")
    bounds = [1.0 - math.fsum(chances.values())]
    top = {token: chance for token, chance in first.listed.items() if chance is not None}
    if top:
        # A sampled token may have been added below the top ones: it bounds nothing.
        ranked = [chance for token, chance in top.items() if token != first.token]
        bounds.append(min(ranked or top.values()))
    return RetSignal(probability=_clamp(chance + min(bounds)), kind="upper_bound")


def _piece(token: str) -> str:
    return token.strip(_SPACE).casefold()


def _begins(piece: str, marker: str) -> bool:
    return marker.startswith(piece) or piece.startswith(marker)


def _clamp(probability: float) -> float:
    return min(max(probability, 0.0), 1.0)
