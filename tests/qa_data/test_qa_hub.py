"""Declared data sets, from upstream files and from a stand-in for the hub."""

from __future__ import annotations

import builtins
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from qa_files import CONTENTS, DPR, NQ_OPEN, POPQA_COLUMNS, POPQA_ROWS, SQUAD, write

from adaptllm_chain.errors import DataFileError, InvalidInputError, MissingExtraError
from adaptllm_chain.qa_data import (
    DATASETS,
    FORMATS,
    ReadReport,
    catalogue,
    load_data_set,
    read_many,
    read_questions,
)


def test_what_is_declared() -> None:
    assert {name: part.in_paper for name, one in DATASETS.items() for part in one.splits.values() if part.in_paper} == {
        "nq": 58_880,
        "squad": 87_599,
        "popqa": 14_282,
    }
    for name, data_set in DATASETS.items():
        assert data_set.name == name
        assert data_set.format in FORMATS
        assert data_set.licence
        assert data_set.source.startswith("https://")
        assert (data_set.hub_path is None) == (data_set.revision is None)
        assert data_set.revision is None or len(data_set.revision) == 40
        for split, part in data_set.splits.items():
            assert part.url.startswith("https://")
            assert part.for_training == (split == "train")


def _flat_squad() -> Iterator[dict[str, Any]]:
    for article in SQUAD["data"]:  # type: ignore[union-attr]
        for paragraph in article["paragraphs"]:  # type: ignore[index]
            for entry in paragraph["qas"]:
                texts = [answer["text"] for answer in entry["answers"]]
                starts = [answer["answer_start"] for answer in entry["answers"]]
                yield {
                    "id": entry["id"],
                    "title": article["title"],  # type: ignore[index]
                    "context": paragraph["context"],
                    "question": entry["question"],
                    "answers": {"text": texts, "answer_start": starts},
                }


def _popqa() -> list[dict[str, Any]]:
    numbers = {"id", "s_pop", "o_pop"}
    rows = [dict(zip(POPQA_COLUMNS, row, strict=True)) for row in POPQA_ROWS]
    return [{name: int(value) if name in numbers else value for name, value in row.items()} for row in rows]


ON_HUB = {"nq_open": NQ_OPEN, "squad": list(_flat_squad()), "popqa": _popqa()}
SPLIT = {"nq_open": "train", "squad": "validation", "popqa": "test"}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """A hub with tiny data sets in the columns of the real ones, declared as they are."""
    datasets = pytest.importorskip("datasets", reason="needs the extra 'train'")
    calls: list[dict[str, Any]] = []

    def load_dataset(path: str, name: str | None = None, **options: Any) -> Any:
        calls.append({"path": path, "name": name, **options})
        one = next(one for one in DATASETS.values() if one.hub_path == path)
        return datasets.Dataset.from_list(ON_HUB[one.name])

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    declare(monkeypatch, {name: len(rows) for name, rows in ON_HUB.items()})
    return calls


def declare(monkeypatch: pytest.MonkeyPatch, sizes: dict[str, int]) -> None:
    for name, size in sizes.items():
        data_set = DATASETS[name]
        splits = {split: replace(part, questions=size) for split, part in data_set.splits.items()}
        monkeypatch.setitem(catalogue.DATASETS, name, replace(data_set, splits=splits))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ON_HUB)
def test_the_hub_gives_the_questions_of_the_file(tmp_path: Path, name: str, asked: list[dict[str, Any]]) -> None:
    path = write(tmp_path, CONTENTS[name])
    from_file = load_data_set(name, SPLIT[name], path=path)
    assert asked == []
    assert load_data_set(name, SPLIT[name]) == from_file
    assert list(read_questions(f"hub:{name}:{SPLIT[name]}")) == from_file
    assert read_many([Path(f"hub:{name}:{SPLIT[name]}")]) == from_file
    declared = DATASETS[name]
    # No trust_remote_code among them.
    assert asked == 3 * [
        {
            "path": declared.hub_path,
            "name": declared.hub_config,
            "split": SPLIT[name],
            "revision": declared.revision,
        }
    ]


def test_files_and_data_sets_are_read_as_one(tmp_path: Path, asked: list[dict[str, Any]]) -> None:
    questions = read_many([write(tmp_path, CONTENTS["nq_open"], "mine.jsonl"), "hub:nq_open:train", "hub:popqa"])
    assert [question.id for question in questions] == ["1", "2", "401", "402"]
    assert len(read_many(["hub:nq_open:train", "hub:nq_open:train"], deduplicate=False)) == 4


def test_another_number_of_rows_is_refused_with_both_numbers(
    tmp_path: Path, asked: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(monkeypatch, {"popqa": 14_267})
    path = write(tmp_path, CONTENTS["popqa"])
    message = r"holds 2 questions, but popqa:test has 14,267 at revision 098765c\w+ \(the paper counts 14,282\)"
    with pytest.raises(DataFileError, match=rf"hub:popqa:test: {message}[\s\S]*check=False"):
        load_data_set("popqa")
    with pytest.raises(DataFileError, match=rf"file\.data: {message}"):
        load_data_set("popqa", path=path)
    with pytest.raises(DataFileError, match=message):
        read_questions("hub:popqa:test")
    assert len(load_data_set("popqa", check=False)) == len(load_data_set("popqa", path=path, check=False)) == 2


def test_skipped_rows_count_for_the_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(monkeypatch, {"nq": 3})
    path = write(tmp_path, json.dumps([*DPR, {"question": "q", "answers": [], "positive_ctxs": []}]))
    report = ReadReport()
    assert len(load_data_set("nq", "train", path=path, on_bad_row="skip", report=report)) == 2
    assert report.skipped == 1
    cut = write(tmp_path, path.read_bytes()[:-5])
    with pytest.raises(DataFileError, match="holds 2 questions, but nq:train has 3"):
        load_data_set("nq", "train", path=cut, on_cut="keep")
    assert len(load_data_set("nq", "train", path=cut, on_cut="keep", check=False)) == 2


def test_a_broken_row_on_the_hub_is_named(asked: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ON_HUB, "nq_open", [*NQ_OPEN, {"question": "", "answer": ["x"]}])
    declare(monkeypatch, {"nq_open": 3})
    with pytest.raises(DataFileError, match="hub:nq_open:train: row 3: 'question' is empty"):
        list(read_questions("hub:nq_open:train"))
    assert len(load_data_set("nq_open", "train", on_bad_row="skip")) == 2


def test_a_hub_that_cannot_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets", reason="needs the extra 'train'")

    def fail(*_: object, **__: object) -> None:
        raise ConnectionError("Couldn't reach the Hub\nat all")

    monkeypatch.setattr(datasets, "load_dataset", fail)
    with pytest.raises(DataFileError) as caught:
        read_questions("hub:squad:train")
    text = str(caught.value)
    assert "rajpurkar/squad at revision 7b6d24c" in text
    assert "Couldn't reach the Hub\n" in text
    assert "download https://rajpurkar.github.io/SQuAD-explorer/dataset/train-v1.1.json" in text
    assert 'load_data_set("squad", "train", path="train-v1.1.json")' in text


def test_what_is_not_on_the_hub() -> None:
    with pytest.raises(DataFileError, match=r"not on the hub[\s\S]*biencoder-nq-train\.json\.gz"):
        read_questions("hub:nq:train")


def test_without_datasets(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def no_datasets(name: str, *rest: Any, **options: Any) -> Any:
        if name == "datasets":
            raise ImportError(name)
        return real(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", no_datasets)
    with pytest.raises(MissingExtraError, match=r"pip install 'adaptllm-chain\[train\]'"):
        read_questions("hub:popqa:test")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("hub:squid:train", "unknown data set 'squid'"),
        ("hub:squad:test", r"squad has no split 'test'[\s\S]*train or validation"),
        ("hub:squad", "squad has several splits, and none was named"),
        ("hub:", "unknown data set ''"),
    ],
)
def test_a_name_that_means_nothing(name: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        read_questions(name)


def test_a_data_set_has_its_own_format(asked: list[dict[str, Any]]) -> None:
    with pytest.raises(InvalidInputError, match="own format"):
        read_questions("hub:popqa:test", "jsonl")
    with pytest.raises(InvalidInputError, match="own format"):
        read_questions("hub:popqa:test", columns={"question": "q"})
    assert asked == []
    assert len(list(read_questions("hub:popqa:test", "popqa"))) == 2
