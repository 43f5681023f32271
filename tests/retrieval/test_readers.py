from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document

from adaptllm_chain.errors import DataFileError, InvalidInputError
from adaptllm_chain.retrieval import SkippedFile, read_passages_source, split_into_passages

DPR = 'id\ttext\ttitle\n1\t"The ""Grey Mill"" stands by the Orla."\tGrey Mill\n2\tIt was built of oak.\tGrey Mill\n'


def pdf(path: Path, text: str, title: str | None) -> None:
    """Write a PDF of one page by hand: pypdf itself cannot write text."""
    stream = f"BT /F1 12 Tf 20 100 Td ({text}) Tj ET".encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<</Type /Page /Parent 2 0 R /MediaBox [0 0 400 200] /Contents 4 0 R /Resources <</Font <</F1 5 0 R>>>>>>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Title (%s) >>" % (title or "").encode(),
    ]
    content, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, start=1):
        places.append(len(content))
        content += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(content)
    content += b"xref\n0 7\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % place for place in places)
    info = b" /Info 6 0 R" if title else b""
    content += b"trailer << /Size 7 /Root 1 0 R%s >>\nstartxref\n%d\n%%%%EOF\n" % (info, start)
    path.write_bytes(content)


def read(path: Path, **kwargs: object) -> list[Document]:
    return list(read_passages_source(path, **kwargs))  # type: ignore[arg-type]


def test_a_folder_is_read_in_order_and_what_is_skipped_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "b.txt").write_text("\ufeffPlain words.", encoding="utf-8")
    (tmp_path / "a.md").write_text("intro\n\n## The *Heading* ##\n\ntext")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "c.HTML").write_text(
        "<html><head><title> Big\n Title </title><style>p{}</style></head><body><p>Par<b>is</b> is</p>"
        "<p>large<br>and old</p><script>no()</script></body></html>"
    )
    pdf(tmp_path / "d.pdf", "Words in a file", "Paper")
    pdf(tmp_path / "e.pdf", "No title here", None)
    (tmp_path / "photo.png").write_bytes(b"x")
    (tmp_path / "empty.txt").write_text(" \n")
    (tmp_path / ".hidden.txt").write_text("secret")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "x.txt").write_text("secret")
    skipped: list[SkippedFile] = []
    found = read(tmp_path, skipped=skipped)
    assert [(d.metadata["title"], d.page_content) for d in found] == [
        ("The *Heading*", "intro\n\n## The *Heading* ##\n\ntext"),
        ("b", "Plain words."),
        ("Paper", "Words in a file"),
        ("e", "No title here"),
        ("Big Title", "Paris is\nlarge\nand old"),
    ]
    assert [d.metadata["source"] for d in found] == [d.id for d in found]
    assert [(file.path.name, file.reason) for file in skipped] == [
        ("empty.txt", "no text"),
        ("photo.png", "suffix '.png'"),
    ]
    assert "2 files gave no passages" in caplog.text


def test_files_named_twice_are_read_once(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("words")
    assert len(list(read_passages_source([tmp_path / "a.txt", tmp_path]))) == 1


def test_an_unknown_kind_that_was_named_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.docx").write_bytes(b"x")
    with pytest.raises(InvalidInputError, match=r"\.txt, \.md, \.html"):
        read(tmp_path / "a.docx")
    with pytest.raises(DataFileError, match="does not exist"):
        read(tmp_path / "nothing")


def test_dpr_passages_are_known_by_their_header_and_stay_whole(tmp_path: Path) -> None:
    (tmp_path / "any_name.tsv").write_text(DPR)
    found = list(split_into_passages(read(tmp_path / "any_name.tsv"), words=2))
    assert [(d.id, d.page_content) for d in found] == [
        ("1", 'The "Grey Mill" stands by the Orla.'),
        ("2", "It was built of oak."),
    ]
    assert found[0].metadata == {"title": "Grey Mill", "source": str(tmp_path / "any_name.tsv"), "ordinal": 0}


def test_tables_are_read_by_their_header(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('\ufeffTitle,Content,year\nMill,"two\nlines",1900\n,plain,1901\n', encoding="utf-8")
    first, second = read(path)
    assert (first.page_content, first.metadata["title"], first.metadata["year"]) == ("two\nlines", "Mill", "1900")
    assert (second.metadata["title"], second.id) == ("t", f"{path.as_posix()}:4")
    assert next(split_into_passages([first])).id == f"{path.as_posix()}:3#0"
    path.write_text("a,b\nx,y\n")
    with pytest.raises(DataFileError, match=r"columns=\{'text': 'b'\}"):
        read(path)
    assert read(path, columns={"text": "b", "id": "a"})[0].id == "x"
    with pytest.raises(DataFileError, match="no column 'zzz'"):
        read(path, columns={"text": "zzz"})
    with pytest.raises(InvalidInputError, match="body"):
        read(path, columns={"body": "a"})


def test_broken_tables_name_the_line(tmp_path: Path) -> None:
    path = tmp_path / "t.tsv"
    path.write_text("id\ttext\n1\ta\n2\n")
    with pytest.raises(DataFileError, match="line 3 has 1 cells"):
        read(path)
    path.write_text('id\ttext\n1\t"never closed\n')
    with pytest.raises(DataFileError, match="line 2"):
        read(path)
    path.write_text("text\n" + "long " * 50_000 + "\n")
    assert len(read(path)[0].page_content) == 250_000


def test_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    rows = [
        {"id": 7, "text": "seven", "title": "Number", "year": 1},
        {"page_content": "eight", "metadata": {"title": "Inner", "lang": "en"}},
        {"contents": "nine"},
    ]
    path.write_text("\ufeff" + "\n\n".join(json.dumps(row) for row in rows) + "\n", encoding="utf-8")
    found = read(path)
    assert [d.page_content for d in found] == ["seven", "eight", "nine"]
    assert [d.id for d in found] == ["7", f"{path.as_posix()}:3", f"{path.as_posix()}:5"]
    assert [d.metadata["title"] for d in found] == ["Number", "Inner", "p"]
    assert found[0].metadata["year"] == 1
    assert found[1].metadata["lang"] == "en"


@pytest.mark.parametrize(
    ("line", "message"),
    [("{", "line 2 is not JSON"), ("[1]", "line 2 is a list"), ('{"body": "x"}', "body"), ('{"text": 3}', "no text")],
)
def test_broken_json_lines_name_the_line(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text(f'{{"text": "fine"}}\n{line}\n')
    with pytest.raises(DataFileError, match=message):
        read(path)


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.jsonl", "a.csv"])
def test_a_wrong_encoding_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(
        'text\n{"text": "caf\xe9"}'.encode("latin-1") if name != "a.jsonl" else b'{"text": "\xe9"}'
    )
    with pytest.raises(DataFileError, match="iconv"):
        read(tmp_path / name)
    assert read(tmp_path / name, encoding="latin-1")


def test_html_says_its_own_encoding(tmp_path: Path) -> None:
    path = tmp_path / "a.htm"
    path.write_bytes(b'<meta charset="iso-8859-1"><p>caf\xe9</p>')
    assert read(path)[0].page_content == "caf\u00e9"
    path.write_text("<div>one</div>two<p>three</p>four")
    assert read(path)[0].page_content.split() == ["one", "two", "three", "four"]
    path.write_bytes(b'<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><body>fine</body></html>')
    assert read(path)[0].page_content == "fine"


def test_a_broken_pdf_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(b"no pdf at all")
    with pytest.raises(DataFileError, match="cannot be read as PDF"):
        read(tmp_path / "a.pdf")


def test_reading_is_lazy(tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").write_text('{"text": "one"}\n{broken\n')
    source = read_passages_source(tmp_path / "p.jsonl")
    assert next(source).page_content == "one"


# -- splitting --------------------------------------------------------------------------------------

spaces = st.sampled_from([" ", "\n", "\n\n", "\t", "\u00a0", "\r\n", "\u2028", "  ", "\x0b", "\x1c"])
words = st.text(st.characters(exclude_categories=["Cs", "Zs", "Zl", "Zp", "Cc"]), min_size=1, max_size=6)


@given(st.lists(st.tuples(words, spaces), max_size=120), st.integers(1, 12))
@settings(max_examples=150, deadline=None)
def test_no_word_is_lost_and_no_passage_is_too_long(pieces: list[tuple[str, str]], limit: int) -> None:
    text = "".join(word + space for word, space in pieces)
    found = list(split_into_passages([Document(id="d", page_content=text)], words=limit))
    assert [word for passage in found for word in passage.page_content.split()] == text.split()
    assert all(1 <= len(passage.page_content.split()) <= limit for passage in found)
    assert [passage.id for passage in found] == [f"d#{n}" for n in range(len(found))]


def test_blocks_are_of_a_hundred_words_and_end_with_paragraphs() -> None:
    text = " ".join(f"w{n}" for n in range(250)) + "\n\n" + "tail " * 30
    found = list(split_into_passages([Document(page_content=text, metadata={"title": "T", "source": "s"})]))
    assert [len(passage.page_content.split()) for passage in found] == [100, 100, 50, 30]
    assert [passage.metadata for passage in found] == [{"title": "T", "source": "s", "ordinal": n} for n in range(4)]
    assert [p.id for p in found] == [
        p.id for p in split_into_passages([Document(page_content=text, metadata={"source": "s"})])
    ]
    with pytest.raises(InvalidInputError, match="words is 0"):
        list(split_into_passages([], words=0))


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("a.md", "# The mill\n\nIt stands.", "It stands."),
        ("b.md", "## The mill ##\nIt stands.", "It stands."),
        ("c.md", "# The mill", "# The mill"),
        ("d.md", "Before.\n\n# The mill\n\nAfter.", "Before.\n\n# The mill\n\nAfter."),
        ("e.html", "<title>The mill</title><h1>The mill</h1><p>It stands.</p>", "It stands."),
    ],
)
def test_a_title_that_opens_the_text_is_not_a_passage_of_its_own(
    tmp_path: Path, name: str, content: str, text: str
) -> None:
    (tmp_path / name).write_text(content)
    (document,) = read_passages_source([tmp_path / name])
    assert document.metadata["title"] == "The mill"
    assert document.page_content.strip() == text
