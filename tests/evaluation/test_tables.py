"""Every table against figures worked out by hand from eight judged questions."""

from __future__ import annotations

import math
import random

import pytest

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.evaluation import Judgement, Run
from adaptllm_chain.evaluation.tables import paper_report
from adaptllm_chain.reporting import Cell, Chart, Report, Table
from tests.evaluation import hand_made


def tables(runs: list[Run]) -> dict[str, Table]:
    return {table.id: table for section in paper_report(runs).sections for table in section.tables}


def charts(runs: list[Run]) -> dict[str, Chart]:
    report = paper_report(runs)
    return {chart.id.split("-mill-nq")[0]: chart for chart in report.charts}


def ours(table: Table) -> dict[str, tuple[Cell, ...]]:
    return {str(row.label.text): row.cells for row in table.rows if not row.published}


def value(cell: Cell) -> float:
    assert cell.value is not None
    return cell.value


@pytest.fixture(scope="module")
def made() -> dict[str, Table]:
    return tables(hand_made.all_runs())


def test_table_1(made: dict[str, Table]) -> None:
    rows = ours(made["table-1"])
    assert list(rows) == ["mill-nq: never_retrieve", "mill-nq: always_retrieve", "mill-nq: adaptive"]
    assert [value(cells[3]) for cells in rows.values()] == [3 / 8, 6 / 8, 6 / 8]
    assert [value(cells[5]) for cells in rows.values()] == [0, 0, 0]
    assert [value(cells[6]) for cells in rows.values()] == [3 / 16, 6 / 16, 6 / 16]
    for cells in rows.values():
        assert cells[3].low is not None
        assert cells[3].high is not None
        assert cells[3].low <= value(cells[3]) <= cells[3].high
    published = [row for row in made["table-1"].rows if row.published]
    assert [row.cells[3].text for row in published] == [
        f"{per_cent} %" for per_cent in (21.43, 35.86, 36.77, 21.22, 36.59, 38.15)
    ]


def test_pairs(made: dict[str, Table]) -> None:
    rows = ours(made["pairs"])
    difference, only_first, only_second, p_value = rows["adaptive against always_retrieve"][1:]
    assert (value(difference), value(only_first), value(only_second), p_value.text) == (0, 1, 1, "1")
    # 0, 1 and 3 are won, none is lost: p = 2 / 2**3.
    difference, only_first, only_second, p_value = rows["adaptive against never_retrieve"][1:]
    assert (value(difference), value(only_first), value(only_second), p_value.text) == (3 / 8, 3, 0, "0.25")


def test_table_2(made: dict[str, Table]) -> None:
    assert [cell.value for cell in ours(made["table-2"])["eight"]] == [8, 6.5, 2.0, 1.5, 1.25, 0]


def test_table_3(made: dict[str, Table]) -> None:
    (cells,) = ours(made["table-3"]).values()
    # It asks for 0 to 3: reads three of them right, memory none. Of 4 to 7 passages give 5, 6, 7 and memory 4, 6, 7.
    assert [value(cell) for cell in cells] == [4 / 8, 3 / 4, 0, 3 / 4, 3 / 4, 1.0]
    assert [cell.total for cell in cells[:5]] == [8, 4, 4, 4, 4]


def test_table_5_against_brute_force(made: dict[str, Table]) -> None:
    rows = ours(made["table-5"])
    drawn = set(random.Random(0).sample(range(8), 6))
    test = [n for n in range(8) if n not in drawn]

    def right(n: int, threshold: float) -> bool:
        return n in (hand_made.NEVER_RIGHT if hand_made.POPULARITIES[n] >= threshold else hand_made.ALWAYS_RIGHT)

    cuts = sorted({*hand_made.POPULARITIES, math.inf})
    best = max(cuts, key=lambda cut: (sum(right(n, cut) for n in drawn), -cut))
    cells = rows["popularity threshold"]
    assert cells[1].value == best
    assert value(cells[2]) == sum(hand_made.POPULARITIES[n] < best for n in test) / 2
    assert value(cells[3]) == sum(right(n, best) for n in test) / 2
    assert value(rows["adaptive"][3]) == sum(n in hand_made.ADAPTIVE_RIGHT for n in test) / 2
    assert value(rows["adaptive"][2]) == sum(n in hand_made.ASKED for n in test) / 2
    assert "2 relations" in str(rows["popularity threshold, by relation"][1].text)
    assert "P(<RET>)" in str(rows["adaptive, cut chosen on the 75 %"][1].text)


def test_figure_2() -> None:
    (series,) = charts(hand_made.all_runs())["figure-2"].series
    assert [point.y for point in series.points] == [1, 1, 0, 0]
    assert [round(point.x) for point in series.points] == [18, 178, 1778, 177828], "the middles of half decades"
    data = charts(hand_made.all_runs())["figure-2"].data
    assert [str(row.label.text) for row in data.rows] == [
        "10 to 32",
        "100 to 316",
        "1,000 to 3,162",
        "100,000 to 316,228",
    ]
    assert [value(row.cells[2]) for row in data.rows] == [1, 0.5, 0.5, 1]


def test_a_popularity_of_nothing_has_a_bin_of_its_own() -> None:
    rows = [row.model_copy(update={"popularity": 0.0 if row.id in "01" else 5.0}) for row in hand_made.adaptive()]
    data = charts([hand_made.run_of("adaptive", rows)])["figure-2"].data
    assert [str(row.label.text) for row in data.rows] == ["0", "3 to 10"]


def best_by_brute_force() -> tuple[float, float]:
    """Try every cut on the six drawn questions; of the best, that which retrieves least."""
    drawn = sorted(random.Random(0).sample(range(8), 6))

    def outcome(cut: float, questions: list[int]) -> tuple[int, int]:
        retrieves = {n for n in questions if hand_made.PROBABILITIES[n] >= cut}
        memory = {4, 6, 7}
        right = sum(n in (hand_made.ALWAYS_RIGHT if n in retrieves else memory) for n in questions)
        return right, -len(retrieves)

    cuts = [*hand_made.PROBABILITIES, 1.0]
    best = max(cuts, key=lambda cut: outcome(cut, drawn))
    right, retrieved = outcome(best, list(range(8)))
    return -retrieved / 8, right / 8


def test_thresholds() -> None:
    chart = charts(hand_made.all_runs())["thresholds"]
    (series,) = chart.series
    assert (series.points[0].x, series.points[0].y) == (0, 3 / 8)
    assert (series.points[-1].x, series.points[-1].y) == (1, 6 / 8)
    marks = {mark.name.split(":")[0]: (mark.x, mark.y) for mark in chart.marks}
    assert marks["token rule"] == (0.5, 6 / 8)
    assert marks["oracle"] == (None, 7 / 8)
    assert marks["never"] == (0, 3 / 8)
    assert marks["always"] == (1, 6 / 8)
    assert marks["cut chosen on 75 %, on all"] == best_by_brute_force()


def test_no_thresholds_without_the_token_rule_or_without_probabilities() -> None:
    never, always = (
        hand_made.run_of("never_retrieve", hand_made.never()),
        hand_made.run_of("always_retrieve", hand_made.always()),
    )
    by_cut = hand_made.run_of("adaptive", hand_made.adaptive(), policy={"threshold": 0.5})
    assert "thresholds" not in charts([never, always, by_cut])
    silent = [row.model_copy(update={"ret_probability": None}) for row in hand_made.adaptive()]
    made = [never, always, hand_made.run_of("adaptive", silent)]
    assert "thresholds" not in charts(made)
    (cells,) = ours(tables(made)["table-3"]).values()
    assert cells[-1].value is None


def test_modes_with_models_of_their_own_say_nothing_of_thresholds() -> None:
    own = hand_made.run_of("always_retrieve", hand_made.always(), weights="another")
    runs = [
        own,
        hand_made.run_of("never_retrieve", hand_made.never()),
        hand_made.run_of("adaptive", hand_made.adaptive()),
    ]
    assert "thresholds" not in charts(runs)
    assert "adaptive, cut chosen on the 75 %" not in ours(tables(runs)["table-5"])


def test_passages() -> None:
    all_right = [row.model_copy(update={"containment": True}) for row in hand_made.adaptive()]
    runs = [
        hand_made.run_of("adaptive", hand_made.adaptive()),
        hand_made.run_of("adaptive", all_right, retriever="gold", passages="f"),
        hand_made.run_of("always_retrieve", hand_made.always(1), retriever="index", passages="1"),
        hand_made.run_of("always_retrieve", hand_made.always(5), retriever="index", passages="1", k=5),
    ]  # fmt: skip
    made = tables(runs)
    table_4 = ours(made["table-4"])
    assert value(table_4["mill-nq, passages gold"][3]) == 1
    assert value(table_4["mill-nq, passages found before"][3]) == 6 / 8
    several = [row.cells for row in made["several-passages"].rows]
    assert [(value(k), mode.text, value(right)) for k, mode, right in several] == [
        (1, "always_retrieve", 6 / 8),
        (5, "always_retrieve", 6 / 8),
    ]
    (cells,) = ours(made["recall"]).values()
    assert made["recall"].columns[2:] == ("recall@1", "recall@3", "recall@5")
    assert [value(cell) for cell in cells[1:]] == [4 / 8, 5 / 8, 5 / 8]


def test_cost(made: dict[str, Table]) -> None:
    cells = ours(made["cost"])["adaptive"]
    assert [cell.value for cell in cells[1:]] == [0.5, 1.5, 100, 5, 0.5, 4]


def test_modes_that_answered_other_questions_are_refused() -> None:
    others = [row.model_copy(update={"id": f"x{row.id}"}) for row in hand_made.never()]
    with pytest.raises(InvalidInputError, match="other questions"):
        paper_report([hand_made.run_of("adaptive", hand_made.adaptive()), hand_made.run_of("never_retrieve", others)])


def test_one_mode_alone_makes_a_report() -> None:
    report = paper_report([hand_made.run_of("never_retrieve", hand_made.never())])
    assert [section.id for section in report.sections] == [
        f"section-{name}" for name in ("accuracy", "data", "cost", "reading")
    ]


def test_the_order_of_files_does_not_matter() -> None:
    runs = hand_made.all_runs()
    reports: list[Report] = [paper_report(runs), paper_report(runs[::-1])]
    assert reports[0].sections == reports[1].sections


def failing(rows: list[Judgement], *numbers: int) -> list[Judgement]:
    lost = {"containment": False, "route": "direct", "ret_probability": None, "failed": True}
    return [row.model_copy(update=lost) if int(row.id) in numbers else row for row in rows]


def test_a_question_that_failed_is_wrong_and_decided_nothing() -> None:
    runs = [
        hand_made.run_of("adaptive", failing(hand_made.adaptive(), 0)),
        hand_made.run_of("always_retrieve", hand_made.always()),
        hand_made.run_of("never_retrieve", hand_made.never()),
    ]
    made = tables(runs)
    assert value(ours(made["table-1"])["mill-nq: adaptive"][3]) == 5 / 8
    ((label, cells),) = ours(made["table-3"]).items()
    # Of 1 to 7 it asked for 1, 2 and 3.
    assert [value(cell) for cell in cells] == [3 / 7, 2 / 3, 0, 3 / 4, 3 / 4, 1.0]
    assert "1 that failed left out" in label
    assert "thresholds" in charts(runs)


def test_where_every_question_failed_only_accuracy_is_told() -> None:
    made = tables([hand_made.run_of("adaptive", failing(hand_made.adaptive(), *range(8)))])
    assert value(ours(made["table-1"])["mill-nq: adaptive"][3]) == 0
    assert set(made) == {"table-1", "table-2"}


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_few_questions(size: int) -> None:
    made = [run.model_copy(update={"judgements": run.judgements[:size]}) for run in hand_made.all_runs()]
    assert value(ours(tables(made)["table-1"])["mill-nq: adaptive"][2]) == size


def test_a_threshold_stands_beside_the_mode() -> None:
    runs = [
        hand_made.run_of("adaptive", hand_made.adaptive(), policy={"threshold": 0.55}),
        hand_made.run_of("popularity", hand_made.never(), policy={"threshold": 1000.0}),
    ]
    labels = list(ours(tables(runs)["table-1"]))
    assert labels == ["mill-nq: popularity (≥ 1000)", "mill-nq: adaptive (P(<RET>) ≥ 0.55)"]
