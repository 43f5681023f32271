"""Token log-probabilities, whatever the server that reported them calls them.

Shapes that are read (LangChain passes them on as ``generation_info`` or ``response_metadata``):

* chat completions of OpenAI and vLLM: ``logprobs.content[]`` of ``{token, logprob, top_logprobs[]}``;
* Ollama, and others that leave out the ``content`` level: ``logprobs[]`` of the same, as mappings or, from
  langchain-ollama, as pydantic models;
* completions of OpenAI, vLLM and llama-cpp-python: ``logprobs`` of ``{tokens, token_logprobs, top_logprobs}``;
* llama.cpp's own server: ``completion_probabilities[]``, before and after its change of names.

vLLM's ``logprob_token_ids`` puts the tokens that were asked for where the most probable ones are otherwise. Its
``return_tokens_as_token_ids`` puts numbers in place of the tokens' texts: nothing can be read there.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, TypeGuard

from pydantic import BaseModel

# vLLM's way of writing a token without its text.
_NUMBERED = re.compile(r"token_id:\d+")


@dataclass(frozen=True, slots=True)
class Position:
    """What is known of one position of an output.

    Attributes:
        token: The token that was emitted.
        probability: The probability of that token; ``None`` when it was not reported, as for one that was
            sampled from below those that the server lists.
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
        The positions in order; empty when nothing was reported in a known shape, or token ids without texts.
    """
    positions = _read(info)
    return [] if any(_NUMBERED.fullmatch(position.token) for position in positions) else positions


def _read(info: Mapping[str, Any]) -> list[Position]:
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
    for reported in rows:
        row = reported.model_dump() if isinstance(reported, BaseModel) else reported
        if not isinstance(row, Mapping):
            return []
        token = _token_of(row)
        listed = _first(row, "top_logprobs", "top_probs", "probs") or ()
        tops = {_token_of(top): _chance_of(top) for top in listed}
        positions.append(_position(token, _chance_of(row), tops))
    return positions


def _read_columns(logprobs: Mapping[str, Any]) -> list[Position]:
    tokens = logprobs["tokens"]
    chosen = logprobs.get("token_logprobs") or []
    listed = logprobs.get("top_logprobs") or []
    positions = []
    for index, token in enumerate(tokens):
        logprob = chosen[index] if index < len(chosen) else None
        named = listed[index] if index < len(listed) else None
        tops = {str(name): _from_logprob(value) for name, value in named.items()} if isinstance(named, Mapping) else {}
        positions.append(_position(str(token), _from_logprob(logprob), tops))
    return positions


def _position(token: str, chance: float | None, tops: Mapping[str, float | None]) -> Position:
    # What was emitted had a chance: the -9999 of OpenAI and vLLM stands for "less than those that are listed".
    return Position(token, chance or tops.get(token) or None, tops)


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
