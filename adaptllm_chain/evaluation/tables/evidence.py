"""Runs put side by side: one experiment is one model with one way of finding passages, in several modes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.evaluation.estimate import Estimate
from adaptllm_chain.evaluation.judgement import Judgement
from adaptllm_chain.evaluation.resampling import Resamples
from adaptllm_chain.evaluation.runs import Run, same_questions, slug
from adaptllm_chain.evaluation.tradeoff import from_memory

PASSAGES = {"given": "found before", "gold": "gold", "index": "found in the index"}
"""How tables call where passages come from."""

MODES = ("never_retrieve", "always_retrieve", "popularity", "adaptive")
"""The order of modes in tables, which is the paper's."""


@dataclass(frozen=True)
class Experiment:
    """One model on one data set with one retriever, in several modes.

    Attributes:
        runs: By mode; all of the same questions in the same order.
        left_out: How many questions were left out because a mode failed on them.
    """

    runs: dict[str, Run]
    left_out: int = 0

    @cached_property
    def whole(self) -> Experiment:
        """The experiment without the questions on which a mode failed: of these it is not known what was decided."""
        failed = [any(flags) for flags in zip(*([row.failed for row in self.rows(m)] for m in self.runs), strict=True)]
        if not any(failed):
            return self
        kept = {
            mode: run.model_copy(
                update={"judgements": tuple(row for row, lost in zip(run.judgements, failed, strict=True) if not lost)}
            )
            for mode, run in self.runs.items()
        }
        return Experiment(kept, left_out=sum(failed))

    @cached_property
    def first(self) -> Run:
        """Any of the runs, for what they have in common."""
        return next(iter(self.runs.values()))

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What tells experiments apart: training set, data set, retriever, passages a question."""
        return self.first.trained_on, self.first.data, self.first.retriever, self.first.k

    @property
    def label(self) -> str:
        """How tables call it."""
        failed = f", {self.left_out} that failed left out" if self.left_out else ""
        return f"{self.first.trained_on} on {self.first.data}, {self.passages}{failed}"

    def called(self, mode: str) -> str:
        """Say how tables call a mode: with its threshold, where one decided.

        Args:
            mode: The mode, which must have run.

        Returns:
            The name.
        """
        threshold = self.runs[mode].settings["policy"].get("threshold")
        if threshold is None:
            return mode
        return f"{mode} (P(<RET>) ≥ {threshold:g})" if mode == "adaptive" else f"{mode} (≥ {threshold:g})"

    @property
    def slug(self) -> str:
        """How identifiers call it: small letters, digits and hyphens."""
        trained_on, data, retriever, k = self.key
        return f"{slug(trained_on)}--{slug(data)}--{retriever}-{k}"

    @property
    def passages(self) -> str:
        """Where its passages come from, and how many a question gets."""
        several = f", {self.first.k} a question" if self.first.k > 1 else ""
        return f"passages {PASSAGES[self.first.retriever]}{several}"

    @property
    def questions(self) -> int:
        """How many questions were asked."""
        return len(self.first.judgements)

    @cached_property
    def resamples(self) -> Resamples:
        """The draws that all its intervals come from."""
        return Resamples(self.questions)

    def rows(self, mode: str) -> Sequence[Judgement]:
        """Look up what a mode was judged.

        Args:
            mode: The mode, which must have run.

        Returns:
            One judgement a question.
        """
        return self.runs[mode].judgements

    def right(self, mode: str) -> list[bool]:
        """Say which questions a mode has right.

        Args:
            mode: The mode, which must have run.

        Returns:
            One flag a question, by containment.
        """
        return [row.containment for row in self.rows(mode)]

    def has(self, *modes: str) -> bool:
        """Say whether modes were run.

        Args:
            *modes: The modes.

        Returns:
            Whether all of them were.
        """
        return set(modes) <= set(self.runs)

    @property
    def by_token(self) -> bool:
        """Whether the adaptive mode followed the output, as in the paper, and not a threshold."""
        return self.has("adaptive") and self.runs["adaptive"].settings["policy"].get("threshold") is None

    @property
    def one_model(self) -> bool:
        """Whether one model ran in all modes, so that their answers are those of one chain with other thresholds."""
        return len({(str(run.settings["weights"]), str(run.settings["model"])) for run in self.runs.values()}) == 1

    @property
    def can_choose(self) -> bool:
        """Whether it is known what any threshold on P(``<RET>``) would have given."""
        three = self.has("adaptive", "never_retrieve", "always_retrieve")
        return three and self.by_token and self.one_model and self.ret_probabilities is not None

    @property
    def asked(self) -> list[bool]:
        """Which questions the adaptive mode sent to retrieval."""
        return [row.route == "retrieve" for row in self.rows("adaptive")]

    @property
    def from_memory(self) -> list[bool]:
        """Which questions are right from memory, as the chain answers below a threshold."""
        return from_memory(self.rows("adaptive"), self.rows("never_retrieve"))

    @property
    def ret_probabilities(self) -> list[float] | None:
        """P(``<RET>``) of every question; ``None`` if the model does not tell all of them."""
        known = [row.ret_probability for row in self.rows("adaptive") if row.ret_probability is not None]
        return known if len(known) == self.questions else None

    def share(self, flags: Sequence[bool], among: Sequence[bool] | None = None) -> Estimate | None:
        """Estimate a share with its interval.

        Args:
            flags: One a question.
            among: Which questions count; all by default.

        Returns:
            The share; ``None`` if no question counts.
        """
        return self.resamples.share(flags, among)


def experiments(runs: Sequence[Run]) -> list[Experiment]:
    """Put runs together that differ in their mode alone.

    Args:
        runs: The runs, each with a name of its own.

    Returns:
        The experiments, in the order of their names, so that the order of files does not matter.

    Raises:
        InvalidInputError: If runs of one experiment answered other questions, or in another order.
    """
    groups: dict[tuple[str, str, str, int], dict[str, Run]] = {}
    for run in runs:
        groups.setdefault((run.trained_on, run.data, run.retriever, run.k), {})[run.mode] = run
    made = []
    for _, group in sorted(groups.items()):
        ordered = {mode: group[mode] for mode in MODES if mode in group}
        if not same_questions(list(ordered.values())):
            raise InvalidInputError(
                f"the modes of {Experiment(ordered).label} answered other questions, or in another order",
                expected="the same questions in the same order",
                hint="run adaptllm evaluate for all modes at once",
            )
        made.append(Experiment(ordered))
    return made
