"""Token log-probabilities, whatever the server that reported them calls them.

Shapes that are read (LangChain passes them on as ``generation_info`` or ``response_metadata``):

* chat completions of OpenAI and vLLM: ``logprobs.content[]`` of ``{token, logprob, top_logprobs[]}``;
* Ollama, and others that leave out the ``content`` level: ``logprobs[]`` of the same;
* completions of OpenAI, vLLM and llama-cpp-python: ``logprobs`` of ``{tokens, token_logprobs, top_logprobs}``;
* llama.cpp's own server: ``completion_probabilities[]``, before and after its change of names.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, TypeGuard


@dataclass(frozen=True, slots=True)
class Position:
    """What is known of one position of an output.

    Attributes:
        token: The token that was emitted.
        probability: The probability of that token; ``None`` when it was not reported.
        listed: The most probable tokens there with their probabilities, ``None`` for one that was listed
            without a usable number; empty when none were reported.
    """

    token: str
    probability: float | None
    listed: Mapping[str, float | None]


def read_positions(info: Mapping[str, Any]) -> list[Position]:
    """Read the positions out of what a model reported beside its text.

    Args:
        info: A ``generation_info`` or ``response_metadata``.

    Returns:
        The positions in order; empty when nothing was reported in a known shape.
    """
    logprobs = info.get("logprobs")
    if isinstance(logprobs, Mapping):
        if isinstance(logprobs.get("tokens"), Sequence):
            return _read_columns(logprobs)
        logprobs = logprobs.get("content")
    if _is_list(logprobs):
        return _read_rows(logprobs)
    rows = info.get("completion_probabilities")
    return _read_rows(rows) if _is_list(rows) else []


def _is_list(value: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _read_rows(rows: Iterable[Any]) -> list[Position]:
    positions = []
    for row in rows:
        if not isinstance(row, Mapping):
            return []
        token = _token_of(row)
        listed = _first(row, "top_logprobs", "top_probs", "probs") or ()
        tops = {_token_of(top): _chance_of(top) for top in listed}
        chance = _chance_of(row)
        positions.append(Position(token, tops.get(token) if chance is None else chance, tops))
    return positions


def _read_columns(logprobs: Mapping[str, Any]) -> list[Position]:
    tokens = logprobs["tokens"]
    chosen = logprobs.get("token_logprobs") or []
    listed = logprobs.get("top_logprobs") or []
    positions = []
    for index, token in enumerate(tokens):
        logprob = chosen[index] if index < len(chosen) else None
        tops = (listed[index] if index < len(listed) else None) or {}
        positions.append(
            Position(
                token=str(token),
                probability=_from_logprob(logprob),
                listed={str(name): _from_logprob(value) for name, value in tops.items()},
            )
        )
    return positions


def _token_of(row: Mapping[str, Any]) -> str:
    return str(_first(row, "token", "content", "tok_str") or "")


def _chance_of(row: Mapping[str, Any]) -> float | None:
    if (logprob := row.get("logprob")) is not None:
        return _from_logprob(logprob)
    return usable(row.get("prob"))


def _from_logprob(logprob: object) -> float | None:
    number = usable(logprob)
    # A certain token may be reported as just above 0.
    return None if number is None else math.exp(min(number, 0.0))


def usable(number: object) -> float | None:
    """Read a reported number.

    Args:
        number: What was reported.

    Returns:
        The number; ``None``, unknown, for NaN, infinity and what is no number.
    """
    if isinstance(number, bool) or not isinstance(number, Real) or math.isnan(number) or number == math.inf:
        return None
    return float(number)


def _first(row: Mapping[str, Any], *names: str) -> Any:
    return next((row[name] for name in names if row.get(name) is not None), None)
