"""The correctness rule of Algorithm 1: does the model know the answer by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, get_args

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.metrics.answers import contains_answer, exact_match

KnownRule = Literal["contains", "exact_match"]

_RULES: Mapping[KnownRule, Callable[[str, Sequence[str]], bool]] = {
    "contains": contains_answer,
    "exact_match": exact_match,
}


def is_known(prediction: str, answers: Sequence[str], rule: KnownRule = "contains") -> bool:
    """Say whether a zero-shot output counts as right when the training rows are made.

    Algorithm 1 (arXiv:2404.19705) trains on the answer where the model was right and on ``<RET>``
    where it was not. ``"contains"`` is the rule of their evaluation script, and reproduces the labels
    that they published but for about 1 % of the SQuAD training rows, where the output differs from
    the answer in the case of its letters; ``"exact_match"`` is what the paper's text says.

    Args:
        prediction: The model's output without any passage.
        answers: The accepted answers, at least one.
        rule: ``"contains"`` or ``"exact_match"``.

    Returns:
        Whether the model knows it; the authors' ``needs_retrieve`` is the opposite.

    Raises:
        InvalidInputError: There is no such rule, no accepted answer, or a blank one.
    """
    if rule not in _RULES:
        raise InvalidInputError(f"unknown rule {rule!r}", expected=" or ".join(map(repr, get_args(KnownRule))))
    return _RULES[rule](prediction, answers)
