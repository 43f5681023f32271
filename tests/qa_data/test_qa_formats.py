from __future__ import annotations

import json
from pathlib import Path

import pytest
from qa_files import CONTENTS, DPR, PASSAGE, SQUAD, lines, table, write

from adaptllm_chain.errors import DataFileError, InvalidInputError
from adaptllm_chain.qa_data import FORMATS, ReadReport, read_questions
from adaptllm_chain.records import Question


def read(folder: Path, format_name: str) -> list[Question]:
    return list(read_questions(write(folder, CONTENTS[format_name]), format_name))


def test_every_format_has_an_example() -> None:
    assert set(CONTENTS) == set(FORMATS)


@pytest.mark.parametrize("name", CONTENTS)
@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_e4_every_format_is_recognised(tmp_path: Path, name: str, compress: bool, mark: bytes) -> None:
    named = read(tmp_path, name)
    path = write(tmp_path, mark + CONTENTS[name].encode(), "anything", compress=compress)
    assert list(read_questions(path)) == named
    assert all(question.answers for question in named)


def test_authors(tmp_path: Path) -> None:
    first, second = read(tmp_path, "authors")
    assert (first.id, first.answers) == ("17", ("1871",))
    assert first.gold_passage is not None
    assert first.gold_passage.page_content == PASSAGE
    assert first.gold_passage.metadata == {"title": "Moss Harbour"}
    assert first.metadata == {"prediction": " 1880", "needs_retrieve": True}
    assert second.answers == ("Ada Finch", "A. Finch")
    assert second.gold_passage is None
    assert second.popularity == 304.0
    assert second.given_passages[0].metadata == {"title": "", "score": 1.25}


def test_nq_open(tmp_path: Path) -> None:
    first, second = read(tmp_path, "nq_open")
    assert (first.id, second.id) == ("1", "2")
    assert second.answers == ("31 m", "31 metres")
    assert second.gold_passage is None


def test_nq_open_oracle(tmp_path: Path) -> None:
    (question,) = read(tmp_path, "nq_open_oracle")
    assert question.gold_passage is not None
    assert question.gold_passage.metadata["title"] == "Tower"
    assert [passage.metadata for passage in question.given_passages] == [{"title": "Paint", "score": 0.5}]


def test_a_passage_that_only_has_the_answer_is_gold_and_stays_given(tmp_path: Path) -> None:
    contexts = [{"title": "A", "text": "a"}, {"title": "B", "text": "b", "hasanswer": True}]
    path = write(tmp_path, lines([{"question": "q", "answers": ["b"], "ctxs": contexts}]))
    (question,) = read_questions(path)
    assert question.gold_passage is question.given_passages[1]


def test_dpr(tmp_path: Path) -> None:
    first, second = read(tmp_path, "dpr")
    assert first.gold_passage is not None
    assert first.gold_passage.metadata == {"title": "Boat", "passage_id": "9", "score": 1000.0}
    assert first.metadata == {"dataset": "tiny"}
    assert second.gold_passage is None


def test_squad(tmp_path: Path) -> None:
    (question,) = read(tmp_path, "squad")
    assert (question.id, question.answers) == ("a1", ("two tons", "two"))
    assert question.gold_passage is not None
    assert question.gold_passage.metadata["title"] == "Moss_Harbour"


def test_squad_v2_impossible_questions_are_refused_or_left_out(tmp_path: Path) -> None:
    document = json.loads(json.dumps(SQUAD))
    document["data"][0]["paragraphs"][0]["qas"].append(
        {"id": "a2", "question": "Who cast it?", "is_impossible": True, "answers": []}
    )
    path = write(tmp_path, json.dumps(document))
    with pytest.raises(DataFileError, match=r"article 1, paragraph 1, question 2.*impossible[\s\S]*on_unanswerable"):
        list(read_questions(path))
    report = ReadReport()
    assert len(list(read_questions(path, on_unanswerable="skip", report=report))) == 1
    assert (report.questions, report.unanswerable, report.skipped) == (1, 1, 0)


def test_popqa(tmp_path: Path) -> None:
    first, second = read(tmp_path, "popqa")
    assert (first.id, first.answers, first.popularity, first.relation) == ("401", ("Norland", "NL"), 77.0, "country")
    assert first.metadata == {"subj": "Moss Harbour", "obj": "Norland", "o_pop": "5"}
    assert second.text == 'What does "Ada" do?'


def test_generic_files(tmp_path: Path) -> None:
    (from_lines,) = read(tmp_path, "jsonl")
    assert (from_lines.id, from_lines.answers) == ("0", ("Eve", "Eva"))
    assert from_lines.gold_passage is not None
    (from_json,) = read(tmp_path, "json")
    assert (from_json.answers, from_json.metadata) == (("1871",), {"source": "log"})
    (from_table,) = read(tmp_path, "csv")
    assert from_table.text == "who, if any, sings"


@pytest.mark.parametrize(
    "content",
    [
        lines([{"q": "who sings", "gold": ["Eve"], "views": "12"}]),
        json.dumps([{"q": "who sings", "gold": {"text": ["Eve"]}, "views": 12}]),
        json.dumps({"k": {"q": "who sings", "gold": "Eve", "views": 12.0}}, indent=1),
        table([["q", "gold", "views"], ["who sings", '["Eve"]', "12"]]),
        table([["q", "gold", "views"], ["who sings", "Eve", "12"]], ";"),
    ],
)
def test_a_column_map(tmp_path: Path, content: str) -> None:
    columns = {"question": "q", "answers": "gold", "popularity": "views"}
    (question,) = read_questions(write(tmp_path, content), columns=columns)
    assert (question.text, question.answers, question.popularity) == ("who sings", ("Eve",), 12.0)


def test_a_column_map_for_a_fixed_format_or_an_unknown_part_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, CONTENTS["dpr"])
    with pytest.raises(InvalidInputError, match=r"'dpr'[\s\S]*jsonl"):
        read_questions(path, "dpr", columns={"question": "q"})
    with pytest.raises(InvalidInputError, match="reply"):
        read_questions(path, columns={"reply": "a"})


@pytest.mark.parametrize("content", ["just words\n", "a,b\n1,2\n", '{"a": 1}\n', '[{"a": 1}]', '{"a": {"b": 1}}'])
def test_what_cannot_be_told_lists_the_formats(tmp_path: Path, content: str) -> None:
    with pytest.raises(DataFileError) as caught:
        read_questions(write(tmp_path, content))
    assert all(name in str(caught.value) for name in FORMATS)


def test_arguments_are_checked_at_once(tmp_path: Path) -> None:
    path = write(tmp_path, CONTENTS["csv"])
    with pytest.raises(InvalidInputError, match="squid"):
        read_questions(path, "squid")
    with pytest.raises(InvalidInputError, match="on_bad_row"):
        read_questions(path, on_bad_row="ignore")  # type: ignore[arg-type]
    with pytest.raises(DataFileError, match="no such file"):
        read_questions(tmp_path / "absent.json")
    with pytest.raises(DataFileError, match="no such file"):
        read_questions(tmp_path)
    with pytest.raises(DataFileError, match="empty"):
        read_questions(write(tmp_path, " \n"))


def test_reading_is_lazy(tmp_path: Path) -> None:
    rows = [*DPR, {"question": "broken", "positive_ctxs": []}]
    questions = read_questions(write(tmp_path, json.dumps(rows)))
    assert next(questions).text == "who rows to the island"
