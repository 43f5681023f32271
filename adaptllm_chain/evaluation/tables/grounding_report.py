"""AGREE's report: all its tables in the order in which they are read."""

from __future__ import annotations

from collections.abc import Sequence

from adaptllm_chain.evaluation.grounding import GroundedRun
from adaptllm_chain.evaluation.grounding.published import PUBLISHED_IMPROVEMENT
from adaptllm_chain.evaluation.tables.grounding import (
    citation_chart,
    citations,
    differences,
    effort,
    endings,
    grounded_experiments,
)
from adaptllm_chain.evaluation.tables.grounding_controlled import controlled
from adaptllm_chain.reporting import Report, Section

PAPER = "arXiv:2311.09533"

_INTERVALS = (
    "Intervals are 95 %: percentiles of a paired bootstrap over the questions (2,000 draws, seed 0, the same draws for "
    "all figures of an experiment); Wilson's interval for shares in which every question has the same outcome."
)
_JUDGE = (
    "Citation recall, precision and the grounding score are as good as the judge of entailment that the settings name. "
    "Post-hoc attribution cites what a judge links; where that judge also measures, it is held to its own standard, "
    "and its citations look better than they are. A sentence that is too long for the judge counts as not entailed. "
    "What the judge makes of statements whose right marks are known stands in the controlled experiment; the row of "
    "the extractive writer in the first table is what it grants to an answer with perfect marks."
)
_LEFT_OUT = (
    "An answer without sentences has neither recall nor precision and is left out of their means, as in ALCE; a "
    "sentence without a citation has recall 0, an answer without one precision 0."
)


def grounding_report(runs: Sequence[GroundedRun], *, commands: Sequence[str] = ()) -> Report:
    """Make the report of AGREE's evaluation.

    Args:
        runs: The runs, as ``read_grounded_runs`` returns them.
        commands: The command lines that made them, to be shown.

    Returns:
        The report; tables that the runs do not suffice for are left out.
    """
    found = grounded_experiments(runs)
    sections = [
        Section(
            id="section-citations",
            title="Citations",
            charts=tuple(map(citation_chart, found)),
            tables=(citations(found), differences(found)),
        ),
        Section(id="section-effort", title="Cost", tables=(effort(found), endings(found))),
        Section(id="section-controlled", title="The controlled experiment", tables=(controlled(found),)),
        Section(
            id="section-reading",
            title="How to read this",
            paragraphs=(_INTERVALS, _JUDGE, _LEFT_OUT, *_unread(runs), PUBLISHED_IMPROVEMENT),
        ),
    ]
    shown = [
        section.model_copy(update={"tables": tuple(table for table in section.tables if table.rows)})
        for section in sections
    ]
    asked = {one.first.data: len(one.first.judgements) for one in found}
    return Report(
        title="Grounded answers: AGREE against citing in context and afterwards",
        subtitle=f"The evaluation of {PAPER}: "
        + ", ".join(f"{count:,} questions of {data}" for data, count in asked.items()),
        created_by=tuple(commands),
        settings=_settings(runs),
        sections=tuple(section for section in shown if section.tables or section.charts or section.paragraphs),
    )


def _unread(runs: Sequence[GroundedRun]) -> list[str]:
    unread = sum(row.unread for run in runs for row in run.judgements)
    total = sum(row.sentences for run in runs for row in run.judgements)
    return [f"{unread:,} of {total:,} sentences were too long for the judge."] if unread else []


def _settings(runs: Sequence[GroundedRun]) -> dict[str, str | int | float | bool]:
    """Gather what all figures depend on; where runs differ, every value is named."""
    shown: dict[str, str | int | float | bool] = {}
    for name in (
        "model",
        "weights",
        "judge",
        "scorer",
        "k",
        "budget",
        "max_new_tokens",
        "batch_size",
        "dtype",
        "load_in",
    ):
        values = dict.fromkeys(str(run.settings[name]) for run in runs if run.settings.get(name) is not None)
        shown[name] = ", ".join(values) or "none"
    for run in runs:
        shown[f"prompt: {run.mode}"] = str(run.settings["prompt"])
        shown[f"questions: {run.data}"] = str(run.settings["questions"])
        for library, version in run.settings["versions"].items():
            shown[f"version: {library}"] = str(version)
    return shown
