"""The cut on P(``<RET>``) that stands beside the popularity threshold: chosen on the same questions."""

from __future__ import annotations

from adaptllm_chain.evaluation.popularity import split
from adaptllm_chain.evaluation.tables.evidence import Experiment
from adaptllm_chain.evaluation.tradeoff import at_cut
from adaptllm_chain.ret import choose_threshold

FEWEST = 4
"""Fewer questions cannot be split into 75 % and 25 %: they stay one part."""


def calibrated_cut(experiment: Experiment) -> float:
    """Choose the cut with the best accuracy on the 75 % of the questions that popularity thresholds are chosen on.

    Args:
        experiment: An experiment that ``can_choose``.

    Returns:
        The cut; questions with P(``<RET>``) at or above it retrieve.
    """
    probabilities = experiment.ret_probabilities or []
    memory, passages = experiment.from_memory, experiment.right("always_retrieve")
    rows = experiment.rows("adaptive")
    dev = split(rows)[0] if experiment.questions >= FEWEST else list(range(len(rows)))
    return choose_threshold(
        [probabilities[index] for index in dev],
        [memory[index] for index in dev],
        [passages[index] for index in dev],
    ).threshold


def at_calibrated_cut(experiment: Experiment, cut: float) -> tuple[list[bool], list[bool]]:
    """Say what a cut gives on all questions of an experiment.

    Args:
        experiment: An experiment that ``can_choose``.
        cut: The cut.

    Returns:
        Whether each question retrieves, and whether it is then right.
    """
    probabilities = experiment.ret_probabilities or []
    return at_cut(cut, probabilities, experiment.from_memory, experiment.right("always_retrieve"))
