"""Every format, cut at every byte: refused with that byte, or read as far as it is whole."""

from __future__ import annotations

import gzip
import json
import logging
import zlib
from pathlib import Path
from typing import Any

import pytest
from qa_files import POPQA_COLUMNS, lines, table, write

from adaptllm_chain.errors import DataFileError, InvalidInputError
from adaptllm_chain.qa_data import FORMATS, CutFileError, ReadReport, read_many, read_questions
from adaptllm_chain.records import Question

TEXTS = ("où est le phare", 'who said "fog"', "which bell, if any")
ANSWERS = (["à Moss", "Moss"], ["Ada"], ["the tall one", "№ 2"])
PASSAGES = ("Là-bas.", "Ada said \\ so.", "The tall one.")
_ROWS = list(zip(TEXTS, ANSWERS, PASSAGES, strict=True))
_CONTEXTS = [[{"title": "T", "text": passage, "isgold": True}] for passage in PASSAGES]


def _squad() -> dict[str, Any]:
    def paragraph(number: int) -> dict[str, Any]:
        entries = [
            {"id": f"{number}{part}", "question": TEXTS[part], "answers": [{"text": ANSWERS[part][0]}]}
            for part in range(2)
        ]
        return {"qas": entries, "context": PASSAGES[number]}

    articles = [{"title": f"Título {at}", "paragraphs": [paragraph(at), paragraph(at + 1)]} for at in (0, 1)]
    for number, article in enumerate(articles):
        for paragraph_ in article["paragraphs"]:
            for entry in paragraph_["qas"]:
                entry["id"] += str(number)
    return {"version": "1.1", "data": articles}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


WHOLE = {
    "authors": _json({f"é{at}": {"question": q, "possible_answers": a} for at, (q, a, _) in enumerate(_ROWS)}),
    "nq_open": "".join(_json({"question": q, "answer": a}) + "\n" for q, a, _ in _ROWS),
    "nq_open_oracle": lines(
        [{"question": q, "answers": a, "ctxs": c} for (q, a, _), c in zip(_ROWS, _CONTEXTS, strict=True)]
    ),
    "dpr": _json(
        [{"question": q, "answers": a, "positive_ctxs": c} for (q, a, _), c in zip(_ROWS, _CONTEXTS, strict=True)]
    ),
    "squad": _json(_squad()),
    "popqa": table(
        [POPQA_COLUMNS, *([str(at), "s", "p", "o", "7", "8", q, _json(a)] for at, (q, a, _) in enumerate(_ROWS))]
    ),
    "jsonl": "".join(_json({"question": q, "answers": a, "context": p}) + "\n" for q, a, p in _ROWS),
    "json": _json([{"question": q, "answer": at + 17} for at, q in enumerate(TEXTS)]),
    # A cell with a line break of its own, and free text in the last column.
    "csv": table([["question", "context", "answer"], *([q, f"{p}\n2", a[0]] for q, a, p in _ROWS)], ","),
}
BY_LINE = ("nq_open", "nq_open_oracle", "jsonl", "popqa", "csv")


def test_every_format_is_cut() -> None:
    assert set(WHOLE) == set(FORMATS)


def read(path: Path, format_name: str, **choices: Any) -> list[Question] | DataFileError:
    try:
        return list(read_questions(path, format_name, **choices))
    except DataFileError as error:
        return error


# To look at the format as well takes twice as long, so it is done at fewer places.
@pytest.mark.parametrize(("given", "step"), [("named", 1), ("auto", 5)])
@pytest.mark.parametrize("name", WHOLE)
def test_a_cut_file_is_refused_with_the_byte_or_read_as_far_as_it_is_whole(
    tmp_path: Path, name: str, given: str, step: int
) -> None:
    whole = WHOLE[name].encode()
    format_name = name if given == "named" else "auto"
    full = list(read_questions(write(tmp_path, whole), format_name))
    assert len(full) >= 3
    most = 0
    for end in range(1, len(whole), step):
        path = write(tmp_path, whole[:end])
        found = read(path, format_name, on_bad_row="skip")
        if isinstance(found, CutFileError):
            assert found.byte == end
            assert f"at byte {end}" in found.problem
            assert 'on_cut="keep"' in str(found)
        elif isinstance(found, DataFileError):
            # A header, whole, and nothing below it.
            assert whole[:end].count(b"\n") == 1
            assert "no usable question" in str(found) or "no known format" in str(found)
        else:
            # The one thing that nobody can see: a cut between two lines.
            assert name in BY_LINE
            assert whole[:end].endswith((b"\n", b"}", b']"'))
            assert found == full[: len(found)]
        kept = read(path, format_name, on_cut="keep")
        if isinstance(kept, DataFileError):
            assert "on_cut" not in str(kept)
            kept = []
        assert kept == full[: len(kept)]
        assert len(kept) >= most
        most = len(kept)
    # Of a list only the bracket is missing, of lines the last one; the same for SQuAD's paragraphs.
    assert most >= len(full) - 1


@pytest.mark.parametrize(("level", "step"), [(0, 7), (9, 1)])
@pytest.mark.parametrize("name", WHOLE)
def test_a_cut_gzip_file_is_refused_with_the_byte_inside(tmp_path: Path, name: str, level: int, step: int) -> None:
    compressed = gzip.compress(WHOLE[name].encode(), compresslevel=level)
    full = list(read_questions(write(tmp_path, compressed), name))
    kept: list[Question] | DataFileError = []
    for end in [*range(2, len(compressed), step), len(compressed) - 1]:
        inside = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(compressed[:end])
        path = write(tmp_path, compressed[:end])
        for format_name in (name, "auto"):
            found = read(path, format_name, on_bad_row="skip")
            assert isinstance(found, CutFileError)
            assert found.byte == len(inside)
            assert f"at byte {len(inside)} of the decompressed data" in found.problem
        kept = read(path, name, on_cut="keep")
        assert isinstance(kept, DataFileError) or kept == full[: len(kept)]
    # The checksum alone was missing: all questions are there.
    assert kept == full


def test_a_cut_is_reported_beside_what_is_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    whole = WHOLE["jsonl"].encode()
    cut = write(tmp_path, whole[:-3], "cut.jsonl")
    report = ReadReport()
    with caplog.at_level(logging.WARNING):
        questions = read_many([cut, write(tmp_path, whole, "whole.jsonl")], on_cut="keep", report=report)
    assert len(questions) == 3
    assert (report.questions, report.rows, report.skipped) == (5, 5, 0)
    assert report.cuts == [f"{cut}: the file ends in the middle of line 3, at byte {len(whole) - 3}"]
    assert "kept what is whole" in caplog.text


def test_a_broken_row_is_no_cut(tmp_path: Path) -> None:
    rows = ['{"question": "a", "answer": ["b"]}', '{"question": "c", "answer', '{"question": "d", "answer": ["e"]}']
    path = write(tmp_path, "\n".join(rows) + "\n")
    with pytest.raises(DataFileError, match="line 2: not JSON at byte") as caught:
        list(read_questions(path, on_cut="keep"))
    assert not isinstance(caught.value, CutFileError)
    # Wrong in its middle is broken, also at the end of a file without a last newline.
    path = write(tmp_path, rows[0] + '\n{"question": "c",, "answer": ["b"]}')
    assert len(list(read_questions(path, on_bad_row="skip"))) == 1


@pytest.mark.parametrize(
    ("last", "refused"),
    [
        ("who sings\tEve", True),
        ('who sings\t["Eve"', True),
        ('who sings\t["Eve"]', False),
        ("who sings\tEve\r", False),
        ("who sings", True),
    ],
)
def test_a_last_row_without_a_newline(tmp_path: Path, last: str, refused: bool) -> None:
    path = write(tmp_path, "question\tanswers\nwho rows\tCy\n" + last)
    assert len(list(read_questions(path, on_cut="keep"))) == (1 if refused else 2)
    if refused:
        with pytest.raises(
            CutFileError, match=r"row of line 3, which has no newline behind it[\s\S]*put a newline behind it"
        ):
            list(read_questions(path))
    else:
        assert list(read_questions(path))[1].answers == ("Eve",)


def test_a_squad_article_without_its_title_is_not_whole(tmp_path: Path) -> None:
    document = _squad()
    turned = [{"paragraphs": article["paragraphs"], "title": article["title"]} for article in document["data"]]
    whole = _json({"data": turned}).encode()
    full = list(read_questions(write(tmp_path, whole)))
    end = whole.index(b'"paragraphs"', 100) + whole[whole.index(b'"paragraphs"', 100) :].index(b"context") + 20
    assert list(read_questions(write(tmp_path, whole[:end]), on_cut="keep")) == full[:4]
    with pytest.raises(CutFileError, match=rf"at byte {end}\b"):
        list(read_questions(write(tmp_path, whole[:end])))


def test_a_number_at_the_end_of_the_file_may_go_on(tmp_path: Path) -> None:
    with pytest.raises(CutFileError, match=r"at byte 3\b"):
        list(read_questions(write(tmp_path, "[12"), "json"))


def test_a_file_of_which_nothing_is_whole(tmp_path: Path) -> None:
    path = write(tmp_path, WHOLE["dpr"][:40])
    with pytest.raises(DataFileError, match=r"at byte 41; no question before that is whole") as caught:
        read_questions(path, on_cut="keep")
    assert "on_cut" not in str(caught.value)
    with pytest.raises(DataFileError, match="no usable question"):
        list(read_questions(path, "dpr", on_cut="keep"))


def test_an_unknown_choice(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"on_cut is 'skip'[\s\S]*'raise' or 'keep'"):
        read_questions(write(tmp_path, WHOLE["csv"]), on_cut="skip")  # type: ignore[arg-type]
