"""The figures of a run: half by half, mode by mode, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import comb
from typing import Any

from adaptllm_chain.evaluation import Estimate, Prediction, wilson_share
from adaptllm_chain.metrics import auc, contains_answer
from training.made_up_world.surface import surface_auc
from training.made_up_world.world import Entity, Fact, select

MODES = ("never_retrieve", "always_retrieve", "adaptive")
_HALVES: Mapping[str, Callable[[Fact], bool]] = {
    "all": lambda fact: True,
    "known": lambda fact: fact.entity.half == "known",
    "unknown": lambda fact: fact.entity.half == "unknown",
}


def summarise_world(
    facts: Sequence[Fact],
    labels: Mapping[str, str],
    predictions: Mapping[str, Sequence[Prediction]],
    reading: Sequence[Prediction],
    found: Sequence[Sequence[str]],
) -> dict[str, Any]:
    """Work out all figures.

    Args:
        facts: All facts of the world.
        labels: Algorithm 1's label of each training question.
        predictions: By mode, one for each test fact, in order.
        reading: The same, given the right passage.
        found: What the best retrieved passage states, for each test fact.

    Returns:
        JSON-serialisable figures.
    """
    test = select(facts, side="test")
    right = {mode: [contains_answer(row.answer, row.answers) for row in rows] for mode, rows in predictions.items()}
    right["oracle"] = [never or always for never, always in zip(right[MODES[0]], right[MODES[1]], strict=True)]
    flags = {
        **{f"right_{mode}": marks for mode, marks in right.items()},
        "asked_for_retrieval": [row.route == "retrieve" for row in predictions["adaptive"]],
        "recall_at_1": [fact.id in stated for fact, stated in zip(test, found, strict=True)],
        "right_given_the_right_passage": [contains_answer(row.answer, row.answers) for row in reading],
    }
    probabilities = [row.ret_probability or 0.0 for row in predictions["adaptive"]]
    unknown = [fact.entity.half == "unknown" for fact in test]
    return {
        "test": {
            half: {"questions": sum(map(belongs, test))}
            | {
                name: _share(mark for mark, fact in zip(marks, test, strict=True) if belongs(fact))
                for name, marks in flags.items()
            }
            for half, belongs in _HALVES.items()
        },
        "decision_auc": round(auc(probabilities, unknown), 4),
        "decision_is_true_half": _share(
            asked == is_unknown for asked, is_unknown in zip(flags["asked_for_retrieval"], unknown, strict=True)
        ),
        "adaptive_against": {mode: compare(right["adaptive"], right[mode]) for mode in MODES[:2]},
        "algorithm1": label_figures(facts, labels),
        "guess_rate": _share(_guesses(facts)),
        "surface_auc": round(_surface(facts), 4),
    }


def compare(ours: Sequence[bool], theirs: Sequence[bool]) -> dict[str, Any]:
    """Compare two modes on the same questions with the exact sign test (McNemar's).

    Args:
        ours: Whether each answer of one mode is right.
        theirs: The same of the other mode.

    Returns:
        Questions that only one of them got right, and the two-sided p-value.
    """
    won = sum(a and not b for a, b in zip(ours, theirs, strict=True))
    lost = sum(b and not a for a, b in zip(ours, theirs, strict=True))
    tail = sum(comb(won + lost, k) for k in range(min(won, lost) + 1)) / 2 ** (won + lost)
    return {"only_adaptive_right": won, "only_other_right": lost, "p_value": min(1.0, 2 * tail)}


def label_figures(facts: Sequence[Fact], labels: Mapping[str, str]) -> dict[str, Any]:
    """Hold Algorithm 1's labels against the truth.

    Args:
        facts: All facts.
        labels: The label of each training question.

    Returns:
        How many labels are the true half, of all and half by half.
    """
    train = select(facts, side="train")
    return {
        half: _share(labels[fact.id] == fact.entity.half for fact in train if belongs(fact))
        for half, belongs in _HALVES.items()
    }


def _share(flags: Iterable[bool]) -> dict[str, Any] | None:
    share = wilson_share(list(flags))
    return None if share is None else {key: round(value, 4) for key, value in share.model_dump().items()}


def _guesses(facts: Sequence[Fact]) -> Iterable[bool]:
    """Answer each unknown test question with the commonest value of its relation in the known half."""
    for fact in select(facts, half="unknown", side="test"):
        known = [other.value for other in select(facts, half="known") if other.relation == fact.relation]
        yield max(sorted(set(known)), key=known.count) == fact.value


def _surface(facts: Sequence[Fact]) -> float:
    def split(side: Any) -> tuple[list[str], list[bool]]:
        entities: dict[Entity, None] = {fact.entity: None for fact in select(facts, side=side)}
        return [entity.name for entity in entities], [entity.half == "unknown" for entity in entities]

    return surface_auc(*split("train"), *split("test"))


def render(figures: Mapping[str, Any]) -> str:
    """Write the figures as a table in Markdown.

    Args:
        figures: What ``summarise_world`` returned.

    Returns:
        The table: per cent with 95 % intervals.
    """
    names = [name for name in figures["test"]["all"] if name != "questions"]
    lines = ["| | all | known half | unknown half |", "|---|---|---|---|"]
    lines.append("| questions | " + " | ".join(str(figures["test"][half]["questions"]) for half in _HALVES) + " |")
    for name in names:
        cells = [Estimate.model_validate(figures["test"][half][name]) for half in _HALVES]
        lines.append(f"| {name.replace('_', ' ')} | " + " | ".join(map(str, cells)) + " |")
    for mode, row in figures["adaptive_against"].items():
        won, lost = row["only_adaptive_right"], row["only_other_right"]
        lines.append(f"\nadaptive against {mode}: {won} to {lost}, p = {row['p_value']:.2g}")
    lines.append(f"\nAUC of P(<RET>), unknown against known half: {figures['decision_auc']:.3f}")
    lines.append(f"labels of Algorithm 1 that are the true half: {figures['algorithm1']['all']['value']:.1%}")
    lines.append(
        f"guess rate {figures['guess_rate']['value']:.1%}; AUC of the names alone {figures['surface_auc']:.3f}"
    )
    return "\n".join(lines)
