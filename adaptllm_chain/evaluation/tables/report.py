"""All tables and charts in the order in which they are read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from adaptllm_chain.evaluation.runs import Run
from adaptllm_chain.evaluation.tables.accuracy import pairs, table_1
from adaptllm_chain.evaluation.tables.cost import cost
from adaptllm_chain.evaluation.tables.data_sets import table_2
from adaptllm_chain.evaluation.tables.decision import figure_2, reliability_chart, table_3, thresholds
from adaptllm_chain.evaluation.tables.evidence import Experiment, experiments
from adaptllm_chain.evaluation.tables.passages import recall, several, table_4
from adaptllm_chain.evaluation.tables.popularity import table_5
from adaptllm_chain.reporting import Chart, Report, Section, Table

PAPER = "arXiv:2404.19705"

_INTERVALS = (
    "Intervals are 95 %: percentiles of a bootstrap over the questions (2,000 draws, seed 0, the same draws for all "
    "figures of an experiment); Wilson's interval for shares in which every question has the same outcome. (Means "
    "and differences that every draw gives alike have an interval of no width.)"
)
_CONTAINMENT = (
    "Containment, the paper's 'exact match', counts an output as right if an accepted answer stands in it, case aside. "
    "It rewards long outputs and, by accident, short aliases such as 'W'; the other metrics stand beside it for that "
    "reason."
)
_PUBLISHED = (
    "Figures marked as the paper's are of Llama-2-7B, as printed there. Their model, their passages (Contriever over "
    "all of Wikipedia) and their number of questions differ from ours where the tables say so."
)


def paper_report(runs: Sequence[Run], *, commands: Sequence[str] = ()) -> Report:
    """Make the report of the paper's evaluation, and what goes beyond it.

    Args:
        runs: The runs, as ``read_runs`` returns them.
        commands: The command lines that made them, to be shown.

    Returns:
        The report; tables that the runs do not suffice for are left out.
    """
    asked = experiments(runs)
    # Accuracy counts what failed as wrong; the rest is of the questions that no mode failed on.
    found = [one.whole for one in asked if one.whole.questions]
    single = [one for one in found if one.first.k == 1]
    adaptive = [one for one in single if one.has("adaptive")]
    sections = [
        _section("section-accuracy", "Accuracy", [table_1(asked), pairs(asked)]),
        _section("section-data", "Data sets", [table_2(asked)]),
        _section(
            "section-decision",
            "The decision",
            [table_3(single)],
            [chart for one in adaptive for chart in (figure_2(one), thresholds(one), reliability_chart(one))],
        ),
        _section("section-passages", "Passages", [table_4(found), several(found), recall(found)]),
        _section("section-popularity", "Popularity", [table_5(single)]),
        _section("section-cost", "Cost", [cost(found)]),
        Section(id="section-reading", title="How to read this", paragraphs=(_INTERVALS, _CONTAINMENT, _PUBLISHED)),
    ]
    return Report(
        title="When to retrieve: the paper's tables for this model",
        subtitle=f"The evaluation of {PAPER}: {_asked(asked)}",
        created_by=tuple(commands),
        settings=_settings(runs),
        sections=tuple(section for section in sections if section is not None),
    )


def _section(
    name: str, title: str, tables: Iterable[Table | None], charts: Iterable[Chart | None] = ()
) -> Section | None:
    shown = tuple(table for table in tables if table is not None and table.rows)
    drawn = tuple(chart for chart in charts if chart is not None)
    return Section(id=name, title=title, tables=shown, charts=drawn) if shown or drawn else None


def _asked(found: Sequence[Experiment]) -> str:
    questions = {one.first.data: one.questions for one in found}
    return ", ".join(f"{count:,} questions of {data}" for data, count in questions.items())


def _settings(runs: Sequence[Run]) -> dict[str, str | int | float | bool]:
    """Gather what all figures depend on; where runs differ, every value is named."""
    shown: dict[str, str | int | float | bool] = {}
    for name in ("model", "weights", "max_new_tokens", "batch_size", "dtype", "load_in", "on_empty"):
        values = list(dict.fromkeys(str(run.settings[name]) for run in runs))
        shown[name] = ", ".join(values)
    for name, text in runs[0].settings["templates"].items():
        shown[f"prompt: {name}"] = str(text)
    for library, version in runs[0].settings["versions"].items():
        shown[f"version: {library}"] = str(version)
    for run in runs:
        shown[f"questions: {run.data}"] = str(run.settings["questions"])
    return shown
