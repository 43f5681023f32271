from __future__ import annotations

import gzip
import json
import logging
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from qa_files import AUTHORS, CONTENTS, POPQA_COLUMNS, lines, table, write

from adaptllm_chain.errors import DataFileError
from adaptllm_chain.qa_data import ReadReport, read_questions
from adaptllm_chain.qa_data import json_cursor as cursor_module
from adaptllm_chain.qa_data.json_sources import json_rows


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"question": "q"}, r"'answers' or 'answer'.* is missing"),
        ({"answers": ["a"]}, "'question' is missing"),
        ({"question": " ", "answers": ["a"]}, "'question' is empty"),
        ({"question": 5, "answers": ["a"]}, "'question' is a int"),
        ({"question": "q", "answers": []}, "holds no answer"),
        ({"question": "q", "answers": "[]"}, "holds no answer"),
        ({"question": "q", "answers": ""}, "empty answer"),
        ({"question": "q", "answers": ["a", " "]}, "empty answer"),
        ({"question": "q", "answers": float("nan")}, "missing value"),
        ({"question": "q", "answers": [float("nan")]}, "missing value"),
        ({"question": "q", "answers": "nan"}, "missing value"),
        ({"question": "q", "answers": None}, "is missing"),
        ({"question": "q", "answers": True}, "holds a bool"),
        ({"question": "q", "answers": [["a"]]}, "holds a list"),
        ({"question": "q", "answers": ["a"], "s_pop": "many"}, "'s_pop' is not a number"),
        ({"question": "q", "answers": ["a"], "s_pop": float("nan")}, "not a finite number"),
        ({"question": "q", "answers": ["a"], "context": 3}, "a passage is a int"),
        (["q", "a"], "the record is a list"),
    ],
)
def test_a_broken_row_is_named_or_skipped(
    tmp_path: Path, row: object, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(tmp_path, lines([{"question": "good", "answers": ["a"]}, row]))
    with pytest.raises(DataFileError, match=rf"file\.data: line 2: .*{message}"):
        list(read_questions(path, "jsonl"))
    report = ReadReport()
    with caplog.at_level(logging.WARNING):
        assert [question.text for question in read_questions(path, on_bad_row="skip", report=report)] == ["good"]
    assert (report.questions, report.skipped) == (1, 1)
    assert "line 2" in report.problems[0]
    assert "skipped 1 broken rows" in caplog.text


def test_a_broken_first_row_does_not_hide_the_format(tmp_path: Path) -> None:
    path = write(tmp_path, "{oops\n" + CONTENTS["nq_open"])
    assert len(list(read_questions(path, on_bad_row="skip"))) == 2
    with pytest.raises(DataFileError, match="line 1: not JSON at byte 1 "):
        list(read_questions(path))


def test_answers_that_look_like_something_else_are_kept(tmp_path: Path) -> None:
    rows = [{"question": "a", "answers": "[1]"}, {"question": "b", "answers": ["nan", "Nan"]}]
    python_list = {"question": "c", "answers": ["['x', \"y's\"]"]}
    found = [question.answers for question in read_questions(write(tmp_path, lines([*rows, python_list])))]
    assert found == [("[1]",), ("nan", "Nan"), ("x", "y's")]


def test_a_repeated_id_is_a_broken_row(tmp_path: Path) -> None:
    path = write(tmp_path, lines([{"id": "x", "question": text, "answers": ["a"]} for text in ("one", "two")]))
    with pytest.raises(DataFileError, match=r"line 2: the id 'x' occurs a second time"):
        list(read_questions(path))
    assert [question.text for question in read_questions(path, on_bad_row="skip")] == ["one"]


def test_a_repeated_key_of_a_json_object_is_seen(tmp_path: Path) -> None:
    member = json.dumps(AUTHORS["17"])
    path = write(tmp_path, f'{{"17": {member}, "17": {member}}}')
    with pytest.raises(DataFileError, match=r"row 2 \(key '17'\): the id '17' occurs a second time"):
        list(read_questions(path))


def test_no_usable_question_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match="no usable question"):
        list(read_questions(write(tmp_path, "[]")))
    with pytest.raises(DataFileError, match="1 broken rows"):
        list(read_questions(write(tmp_path, lines([{"question": "q"}])), "jsonl", on_bad_row="skip"))


def test_a_table_with_a_missing_cell_or_an_open_quote(tmp_path: Path) -> None:
    good = "1\ts\tp\to\t5\t6\tq?\ta\n"
    header = table([POPQA_COLUMNS])
    path = write(tmp_path, header + "2\ts\tp\n" + good)
    with pytest.raises(DataFileError, match="line 2: 3 cells under 8 column names"):
        list(read_questions(path))
    assert len(list(read_questions(path, on_bad_row="skip"))) == 1
    path = write(tmp_path, header + good + '3\ts\tp\to\t5\t6\t"q?\ta\n' + good.replace("1", "4", 1))
    with pytest.raises(DataFileError, match=r"a quote that opens in the row of line 3, at byte"):
        list(read_questions(path, on_bad_row="skip"))
    assert len(list(read_questions(path, on_cut="keep"))) == 1
    path = write(tmp_path, header + good + good.replace("1", "3", 1).replace("q?", '"q"?'))
    with pytest.raises(DataFileError, match=r"line 3: not a row of separated columns"):
        list(read_questions(path))


def test_json_that_is_wrong_rather_than_cut(tmp_path: Path) -> None:
    with pytest.raises(DataFileError, match=r"not JSON at byte 1\b"):
        list(read_questions(write(tmp_path, "[oops]"), "json"))
    with pytest.raises(DataFileError, match="not JSON at byte"):
        list(read_questions(write(tmp_path, CONTENTS["dpr"] + "]"), "dpr"))
    with pytest.raises(DataFileError, match="not UTF-8 text at byte 3"):
        list(read_questions(write(tmp_path, b'[{"\xff": 1}]'), "json"))
    with pytest.raises(DataFileError, match="not JSON at byte"):
        list(read_questions(write(tmp_path, "[" * 200_000), "json"))


def test_a_damaged_gzip_file_is_refused(tmp_path: Path) -> None:
    damaged = bytearray(gzip.compress(CONTENTS["json"].encode()))
    damaged[-5] ^= 1
    with pytest.raises(DataFileError, match="compressed file is damaged: CRC"):
        list(read_questions(write(tmp_path, bytes(damaged)), "json"))


def test_squad_without_its_tree_is_refused(tmp_path: Path) -> None:
    for document in ({"data": 1}, {"data": [{"title": "t"}]}, {"data": [{"paragraphs": [{"context": "c"}]}]}, []):
        with pytest.raises(DataFileError, match="has no list named"):
            list(read_questions(write(tmp_path, json.dumps(document)), "squad"))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
documents = st.lists(st.dictionaries(st.text(max_size=3), json_values, max_size=3), max_size=4) | st.dictionaries(
    st.text(max_size=3), st.dictionaries(st.text(max_size=3), json_values, max_size=3), max_size=4
)


@given(documents, st.sampled_from([1, 2, 3, 7]), st.booleans(), st.sampled_from([None, 2]))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_streamed_json_equals_json_loads(
    tmp_path: Path, document: object, size: int, ascii_only: bool, indent: int | None
) -> None:
    path = write(tmp_path, json.dumps(document, ensure_ascii=ascii_only, indent=indent).encode(errors="surrogatepass"))
    with pytest.MonkeyPatch.context() as patch:
        # Tiny reads cut every kind of token in the middle.
        patch.setattr(cursor_module, "_FIRST_READ", size)
        rows = list(json_rows(path))
    assert [row.data for row in rows] == (list(document.values()) if isinstance(document, dict) else document)
    if isinstance(document, dict):
        assert [row.default_id for row in rows] == list(document)
