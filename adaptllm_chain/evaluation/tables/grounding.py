"""AGREE's tables out of judged answers: citations, what differs, what it costs, how test-time adaptation ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.evaluation.estimate import Estimate
from adaptllm_chain.evaluation.grounding import EXTRACTIVE, PUBLISHED_GROUNDING, SYSTEMS, GroundedJudgement, GroundedRun
from adaptllm_chain.evaluation.resampling import Resamples
from adaptllm_chain.evaluation.runs import same_questions, slug
from adaptllm_chain.evaluation.tables import cells
from adaptllm_chain.reporting import Cell, Chart, Point, Row, Series, Table

# The first against the second.
_COMPARED = (
    ("agree", "in_context"),
    ("agree", "post_hoc"),
    ("agree_adapted", "in_context"),
    ("agree_adapted", "post_hoc"),
    ("agree_adapted", "agree"),
)
_ORDER = (*SYSTEMS, EXTRACTIVE)

Measure = Callable[[GroundedJudgement], float | None]


def _recall(row: GroundedJudgement) -> float | None:
    return row.recall


def _precision(row: GroundedJudgement) -> float | None:
    return row.precision


def _grounding(row: GroundedJudgement) -> float | None:
    return row.grounding


def _correct(row: GroundedJudgement) -> float | None:
    return float(row.containment)


@dataclass(frozen=True)
class GroundedExperiment:
    """The systems over one data set with one tuned model.

    Attributes:
        runs: By system; all of the same questions in the same order.
    """

    runs: dict[str, GroundedRun]

    @cached_property
    def first(self) -> GroundedRun:
        """Any of the runs, for what they have in common."""
        return next(iter(self.runs.values()))

    @property
    def label(self) -> str:
        """How tables call it."""
        return f"{self.first.trained_on} on {self.first.data}"

    @property
    def slug(self) -> str:
        """How identifiers call it: small letters, digits and hyphens."""
        return f"{slug(self.first.trained_on)}--{slug(self.first.data)}-{self.first.k}"

    @cached_property
    def resamples(self) -> Resamples:
        """The draws that all its intervals come from."""
        return Resamples(len(self.first.judgements))

    def mean(self, system: str, measure: Measure) -> Estimate | None:
        """Average a measure over the answers that have it.

        Args:
            system: The system, which must have run.
            measure: The measure.

        Returns:
            The mean; ``None`` if no answer has it.
        """
        return self._averaged(list(map(measure, self.runs[system].judgements)))

    def difference(self, first: str, second: str, measure: Measure) -> Estimate | None:
        """Average by how much one system exceeds another, over the questions where both have the measure.

        Args:
            first: A system that has run.
            second: Another.
            measure: The measure.

        Returns:
            The mean difference, with its paired interval.
        """
        pairs = self._pairs(first, second, measure)
        return self._averaged([None if pair is None else pair[0] - pair[1] for pair in pairs])

    def relative(self, first: str, second: str, measure: Measure) -> float | None:
        """Say by what part of the second system's mean the first exceeds it, over the same questions.

        Args:
            first: A system that has run.
            second: Another.
            measure: The measure.

        Returns:
            0.2 for 20 % more; ``None`` where the second has nothing.
        """
        pairs = [pair for pair in self._pairs(first, second, measure) if pair is not None]
        base = sum(behind for _, behind in pairs)
        return sum(ahead - behind for ahead, behind in pairs) / base if base else None

    def _pairs(self, first: str, second: str, measure: Measure) -> list[tuple[float, float] | None]:
        """Put the values of two systems together; ``None`` where one has none."""
        values = [list(map(measure, self.runs[system].judgements)) for system in (first, second)]
        return [
            None if ahead is None or behind is None else (ahead, behind) for ahead, behind in zip(*values, strict=True)
        ]

    def _averaged(self, values: Sequence[float | None]) -> Estimate | None:
        known = [value is not None for value in values]
        return self.resamples.mean([0.0 if value is None else value for value in values], known)


def grounded_experiments(runs: Sequence[GroundedRun]) -> list[GroundedExperiment]:
    """Put runs together that differ in their system alone.

    Args:
        runs: The runs, each with a name of its own.

    Returns:
        The experiments, in the order of their names.

    Raises:
        InvalidInputError: If runs of one experiment answered other questions, or in another order.
    """
    groups: dict[tuple[str, str, int], dict[str, GroundedRun]] = {}
    for run in runs:
        groups.setdefault((run.trained_on, run.data, run.k), {})[run.mode] = run
    made = []
    for _, group in sorted(groups.items()):
        experiment = GroundedExperiment({system: group[system] for system in _ORDER if system in group})
        if not same_questions(list(experiment.runs.values())):
            raise InvalidInputError(
                f"the systems of {experiment.label} answered other questions, or in another order",
                expected="the same questions in the same order",
                hint="run adaptllm evaluate --suite agree for all systems at once",
            )
        made.append(experiment)
    return made


def called(system: str) -> str:
    """Say how tables call a system.

    Args:
        system: Its name.

    Returns:
        Its title.
    """
    return "extractive writer" if system == EXTRACTIVE else SYSTEMS[system].title


def citations(found: Sequence[GroundedExperiment]) -> Table:
    """Make the table of AGREE's measures.

    Args:
        found: The experiments.

    Returns:
        The table: a row a system.
    """
    rows = [_measured(one, system) for one in found for system in one.runs]
    for printed in PUBLISHED_GROUNDING:
        shown = [cells.NOTHING] * 9
        shown[0] = cells.text(printed.data)
        shown[4] = Cell(text=f"{printed.citation_f1:.1f} %", note=printed.source)
        shown[6] = Cell(text=f"{printed.em_recall:.1f} %", note="recall of short answers")
        rows.append(cells.paper_row(printed.system, shown, model=printed.model))
    return Table(
        id="citations",
        title="Citations and answers",
        caption="Citation recall and precision as ALCE (arXiv:2305.14627) defines them, averaged over the answers that "
        "have sentences; their harmonic mean (F1); the grounding score, which is the mean over sentences of the best "
        "score with any passage; correct: an accepted answer stands in the answer, case and marks aside.",
        columns=(
            "system",
            "data",
            "answers with sentences",
            "citation recall",
            "citation precision",
            "citation F1",
            "grounding score",
            "correct",
            "no citation",
            "marks that point nowhere",
        ),
        rows=tuple(rows),
    )


def _measured(experiment: GroundedExperiment, system: str) -> Row:
    rows = experiment.runs[system].judgements
    answered = [row.sentences > 0 for row in rows]
    recall, precision = experiment.mean(system, _recall), experiment.mean(system, _precision)
    return Row(
        label=Cell(text=called(system)),
        cells=(
            cells.text(experiment.label),
            Cell(value=sum(answered), total=len(rows), unit="count"),
            cells.share(recall),
            cells.share(precision),
            cells.NOTHING if recall is None or precision is None else _f1(recall.value, precision.value),
            cells.share(experiment.mean(system, _grounding)),
            cells.share(experiment.resamples.share([row.containment for row in rows])),
            cells.share(experiment.resamples.share([row.citations == 0 for row in rows], answered)),
            cells.count(sum(row.rejected for row in rows)),
        ),
    )


def _f1(recall: float, precision: float) -> Cell:
    both = recall + precision
    return Cell(value=2 * recall * precision / both if both else 0.0, unit="percent")


def differences(found: Sequence[GroundedExperiment]) -> Table:
    """Compare AGREE with each baseline, and with itself without test-time adaptation.

    Args:
        found: The experiments.

    Returns:
        The table: paired differences with intervals, and relative ones.
    """
    rows = []
    for one in found:
        for first, second in _COMPARED:
            if first in one.runs and second in one.runs:
                compared = [cells.share(one.difference(first, second, m)) for m in (_recall, _precision)]
                relative = [_part(one.relative(first, second, m)) for m in (_recall, _precision)]
                rows.append(
                    Row(
                        label=Cell(text=f"{called(first)} against {called(second)}"),
                        cells=(
                            cells.text(one.label),
                            compared[0],
                            relative[0],
                            compared[1],
                            relative[1],
                            cells.share(one.difference(first, second, _grounding)),
                            cells.share(one.difference(first, second, _correct)),
                        ),
                    )
                )
    return Table(
        id="differences",
        title="What tuning and test-time adaptation change",
        caption="Differences of the means on the questions that both answered with sentences (correct: on all), "
        "in points, with paired bootstrap intervals; relative: as a part of the second system's mean.",
        columns=(
            "systems",
            "data",
            "citation recall",
            "relative",
            "citation precision",
            "relative",
            "grounding score",
            "correct",
        ),
        rows=tuple(rows),
    )


def _part(value: float | None) -> Cell:
    return cells.NOTHING if value is None else Cell(value=value, unit="percent")


def effort(found: Sequence[GroundedExperiment]) -> Table:
    """Say what a question costs.

    Args:
        found: The experiments.

    Returns:
        The table: model calls, searches, tokens and seconds a question, a row a system.
    """
    return Table(
        id="effort",
        title="What a question costs",
        caption="Means a question, over those that did not fail. An answer that another system had made already counts "
        "as a call; the seconds of such a system are left out (adaptllm evaluate --time-each-mode measures them).",
        columns=("system", "data", "model calls", "searches", "tokens read", "tokens written", "seconds", "failed"),
        rows=tuple(_spent(one, system) for one in found for system in one.runs if system != EXTRACTIVE),
    )


def _spent(experiment: GroundedExperiment, system: str) -> Row:
    run = experiment.runs[system]
    total = len(run.judgements)
    answered = [row for row in run.judgements if not row.failed]
    return Row(
        label=Cell(text=called(system)),
        cells=(
            cells.text(experiment.label),
            cells.number(fmean(row.calls for row in answered) if answered else None),
            cells.number(fmean(row.searches for row in answered) if answered else None),
            cells.number(run.cost.prompt_tokens / total if run.cost.prompt_tokens else None),
            cells.number(run.cost.completion_tokens / total if run.cost.completion_tokens else None),
            cells.NOTHING
            if run.seconds is None
            else Cell(value=run.seconds.seconds / run.seconds.questions, unit="seconds"),
            cells.count(total - len(answered)),
        ),
    )


def endings(found: Sequence[GroundedExperiment]) -> Table:
    """Say how test-time adaptation ended.

    Args:
        found: The experiments.

    Returns:
        The table: a row an experiment in which it ran.
    """
    rows = []
    for one in found:
        for system in one.runs:
            ended = [row.stopped for row in one.runs[system].judgements]
            if system != EXTRACTIVE and any(ended):
                shares = [
                    one.resamples.share([end == how for end in ended]) for how in ("supported", "budget", "nothing_new")
                ]
                again = one.resamples.share([row.calls > 1 for row in one.runs[system].judgements])
                rows.append(Row(label=Cell(text=one.label), cells=(cells.share(again), *map(cells.share, shares))))
    return Table(
        id="endings",
        title="How test-time adaptation ended",
        caption="Share of the questions for which the model was asked more than once, and why it was not asked again.",
        columns=("data", "asked again", "every sentence cites a passage", "model calls used up", "nothing new found"),
        rows=tuple(rows),
    )


def citation_chart(experiment: GroundedExperiment) -> Chart:
    """Draw citation recall and precision of the systems.

    Args:
        experiment: The experiment.

    Returns:
        The chart.
    """
    systems = [system for system in experiment.runs if system != EXTRACTIVE]
    series = tuple(
        Series(name=name, points=tuple(_bars(experiment, systems, measure)))
        for name, measure in (("citation recall", _recall), ("citation precision", _precision))
    )
    best = max(systems, key=lambda system: _value(experiment.mean(system, _recall)), default=None)
    finding = f"highest for {called(best)}" if best else "of no system"
    return Chart(
        id=f"citations-{experiment.slug}",
        title=f"Citations: {experiment.label}",
        alt=f"Citation recall and precision by system; recall is {finding}.",
        kind="bars",
        x_label="system",
        y_label="mean over answers",
        y_unit="percent",
        series=series,
        data=Table(
            id=f"citations-{experiment.slug}-data",
            title=f"Citations: {experiment.label}",
            caption="The numbers of the chart.",
            columns=("system", "citation recall", "citation precision"),
            rows=tuple(
                Row(
                    label=Cell(text=called(system)),
                    cells=tuple(cells.share(experiment.mean(system, measure)) for measure in (_recall, _precision)),
                )
                for system in systems
            ),
        ),
    )


def _bars(experiment: GroundedExperiment, systems: Sequence[str], measure: Measure) -> Iterable[Point]:
    for place, system in enumerate(systems):
        estimate = experiment.mean(system, measure)
        if estimate is not None:
            yield Point(x=place, y=estimate.value, low=estimate.low, high=estimate.high, label=called(system))


def _value(estimate: Estimate | None) -> float:
    return 0.0 if estimate is None else estimate.value
