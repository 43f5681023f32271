"""Readers: files and folders in, documents out, one at a time.

DPR's Wikipedia passages (Karpukhin et al. 2020, ``psgs_w100.tsv``: columns id, text, title) are known by
their header and marked as whole, so that ``split_into_passages`` leaves them as they are.
"""

from __future__ import annotations

import csv
import json
import logging
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from langchain_core.documents import Document

from adaptllm_chain.errors import DataFileError, InvalidInputError, missing_extra

logger = logging.getLogger(__name__)

# In the metadata of a document that is a passage already; taken out by `split_into_passages`.
WHOLE_PASSAGE = "whole_passage"

_DPR_HEADER = ["id", "text", "title"]
_COLUMN_NAMES: dict[str, tuple[str, ...]] = {
    "text": ("text", "page_content", "contents", "content", "passage", "body"),
    "title": ("title", "heading"),
    "id": ("id", "_id", "docid", "doc_id", "pid", "passage_id"),
}
_JSON_TEXT_KEYS = ("text", "page_content", "contents")
_JSON_ID_KEYS = ("id", "_id")
_ROWS = (".jsonl", ".csv", ".tsv")
_LONGEST_CELL = 1 << 27
_HEADING = re.compile(r"^#{1,6}[ \t]+(.+?)[ \t]*#*[ \t]*$", re.MULTILINE)
_HTML_SILENT = ("script", "style", "noscript", "template", "title")
_HTML_BLOCKS = (
    *("address", "article", "aside", "blockquote", "dd", "div", "dl", "dt", "fieldset", "figcaption", "figure"),
    *("footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "option"),
    *("p", "pre", "section", "table", "td", "th", "tr", "ul"),
)


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file that gave no passages.

    Attributes:
        path: The file.
        reason: Why, in a few words.
    """

    path: Path
    reason: str


@dataclass(frozen=True, slots=True)
class _Options:
    columns: Mapping[str, str]
    encoding: str
    # Whether a row keeps the id that it brings: files that follow may number their rows alike.
    own_ids: bool = True


def read_passages_source(
    paths: str | Path | Iterable[str | Path],
    *,
    columns: Mapping[str, str] | None = None,
    encoding: str = "utf-8",
    skipped: list[SkippedFile] | None = None,
) -> Iterator[Document]:
    """Read files, and all files in folders, one document at a time.

    Read are ``.txt``, ``.md``, ``.html``, ``.htm`` and ``.pdf`` (a document a file) and ``.jsonl``, ``.csv`` and
    ``.tsv`` (a document a row). In folders, hidden files are passed over, and so are others, which are reported.

    Args:
        paths: Files and folders; a folder is read with all below it, in the order of the names.
        columns: Which column of a table holds ``"text"``, ``"title"`` and ``"id"``; guessed from the header
            where it is not said. For ``.jsonl``, which keys.
        encoding: Of all files but HTML, which names its own, and PDF.
        skipped: A list that files without passages are added to; they are also logged.

    Yields:
        Documents with ``metadata["title"]`` and ``metadata["source"]``. ``id`` is the source for a file, the
        row's own id or source and line number for a row.

    Raises:
        DataFileError: If a path does not exist, or a file cannot be read as what its name says.
        InvalidInputError: If a file that was named is of an unknown kind, or ``columns`` has an unknown key.
    """
    options = _Options(_checked_columns(columns), encoding)
    skipped = [] if skipped is None else skipped
    seen: set[Path] = set()
    for given in [paths] if isinstance(paths, str | Path) else paths:
        before = len(skipped)
        for file in _files(Path(given), skipped):
            # A file may be named beside the folder it lies in.
            if file.resolve() in seen:
                continue
            seen.add(file.resolve())
            for document in _read_file(file, options, skipped, named=file == Path(given)):
                yield document
                if file.suffix.lower() in _ROWS and options.own_ids:
                    options = replace(options, own_ids=False)
        if len(skipped) > before:
            names = ", ".join(str(file.path) for file in skipped[before : before + 5])
            logger.warning("%s: %d files gave no passages: %s ...", given, len(skipped) - before, names)


def _checked_columns(columns: Mapping[str, str] | None) -> Mapping[str, str]:
    unknown = sorted(set(columns or {}) - set(_COLUMN_NAMES))
    if unknown:
        raise InvalidInputError(f"columns has the key {unknown[0]!r}", expected=f"keys out of {sorted(_COLUMN_NAMES)}")
    return columns or {}


def _files(path: Path, skipped: list[SkippedFile]) -> Iterator[Path]:
    """List the files to read; a file that was named must be of a kind that is known."""
    if path.is_file():
        if path.suffix.lower() not in _READERS:
            raise InvalidInputError(
                f"{path} is of no kind that is read",
                expected=f"one of {', '.join(_READERS)}",
                hint="name the file with its right suffix, or convert it to .txt",
            )
        yield path
        return
    if not path.is_dir():
        raise DataFileError(f"{path} does not exist", expected="a file or a folder", hint=f"ls {path.parent}")
    for file in sorted(path.rglob("*")):
        hidden = any(part.startswith(".") for part in file.relative_to(path).parts)
        if not hidden and file.is_symlink() and file.is_dir():
            skipped.append(SkippedFile(file, "a link to a folder, which is not followed: name it"))
        if hidden or not file.is_file():
            continue
        if file.suffix.lower() in _READERS:
            yield file
        else:
            skipped.append(SkippedFile(file, f"suffix {file.suffix!r}"))


def _read_file(path: Path, options: _Options, skipped: list[SkippedFile], *, named: bool) -> Iterator[Document]:
    """Read a file; one that cannot be read is an error if it was named, and is passed over in a folder."""
    empty = True
    try:
        for document in _documents(path, options):
            if document.page_content.strip():
                empty = False
                yield document
    except DataFileError as error:
        if named:
            raise
        skipped.append(SkippedFile(path, error.problem if empty else f"read in part: {error.problem}"))
        return
    if empty:
        skipped.append(SkippedFile(path, "no text"))


def _documents(path: Path, options: _Options) -> Iterator[Document]:
    try:
        yield from _READERS[path.suffix.lower()](path, options)
    except UnicodeDecodeError as error:
        raise DataFileError(
            f"{path} is not {options.encoding}: {error.reason} at byte {error.start}",
            expected=f"text in {options.encoding}",
            hint=f"encoding='latin-1', or: iconv -f latin1 -t utf-8 '{path}' > fixed{path.suffix}",
        ) from error
    except OSError as error:
        raise DataFileError(
            f"{path} cannot be read: {error.strerror or error}", expected="a file that you may read"
        ) from error


def _read_text(path: Path, options: _Options) -> str:
    # A byte order mark is no part of the text.
    return path.read_text(encoding=options.encoding).removeprefix("\ufeff")


def _file_document(path: Path, text: str, title: str | None) -> Document:
    title = " ".join((title or "").split()) or path.stem
    # A title that opens the text would become a passage of its own where a long paragraph follows: one that
    # wins every search for the title and says nothing. It travels in the metadata and is embedded from there.
    first, _, rest = text.lstrip().partition("\n")
    if rest.strip() and " ".join(first.strip("#").split()) == title:
        text = rest
    return Document(id=path.as_posix(), page_content=text, metadata={"title": title, "source": path.as_posix()})


def _read_txt(path: Path, options: _Options) -> Iterator[Document]:
    yield _file_document(path, _read_text(path, options), None)


def _read_markdown(path: Path, options: _Options) -> Iterator[Document]:
    text = _read_text(path, options)
    heading = _HEADING.search(text)
    yield _file_document(path, text, heading.group(1) if heading else None)


def _read_html(path: Path, options: _Options) -> Iterator[Document]:
    try:
        from bs4 import BeautifulSoup, XMLParsedAsHTMLWarning
    except ImportError as error:
        raise missing_extra("beautifulsoup4", "files") from error
    with warnings.catch_warnings():
        # XHTML is read as HTML on purpose.
        warnings.simplefilter("ignore", XMLParsedAsHTMLWarning)
        content = path.read_bytes()
        if not content.strip():  # of which bs4 says that its encoding is wrong
            return
        soup = BeautifulSoup(content, "html.parser")
    if soup.contains_replacement_characters:
        raise DataFileError(
            f"{path} does not say its encoding, or not the right one",
            expected="UTF-8, or <meta charset=...>",
            hint=f"iconv -f latin1 -t utf-8 '{path}' > fixed.html",
        )
    title = soup.title.get_text() if soup.title else None
    for tag in soup(_HTML_SILENT):
        tag.decompose()
    # Words of two blocks must not run together, and a word half in bold must stay one.
    for tag in soup("br"):
        tag.replace_with("\n")
    for tag in soup(_HTML_BLOCKS):
        tag.insert_before("\n")
        tag.insert_after("\n")
    lines = (" ".join(line.split()) for line in soup.get_text().splitlines())
    yield _file_document(path, "\n".join(line for line in lines if line), title)


def _read_pdf(path: Path, options: _Options) -> Iterator[Document]:
    try:
        from pypdf import PdfReader
        from pypdf.errors import PyPdfError
    except ImportError as error:
        raise missing_extra("pypdf", "files") from error
    try:
        reader = PdfReader(path)
        title = reader.metadata.title if reader.metadata else None
        text = "\n\n".join(page.extract_text() for page in reader.pages)
    except (PyPdfError, ValueError, KeyError, ImportError) as error:
        raise DataFileError(
            f"{path} cannot be read as PDF: {error}", expected="a PDF that is complete and not encrypted"
        ) from error
    yield _file_document(path, text, title)


def _read_jsonl(path: Path, options: _Options) -> Iterator[Document]:
    with path.open(encoding=options.encoding) as file:
        for number, line in enumerate(file, start=1):
            if line.strip("\ufeff \t\r\n"):
                yield _json_document(
                    path, number, line.removeprefix("\ufeff"), options.columns, own_ids=options.own_ids
                )


def _json_document(path: Path, number: int, line: str, columns: Mapping[str, str], *, own_ids: bool) -> Document:
    expected = f"an object with one of the keys {', '.join(_JSON_TEXT_KEYS)}"
    try:
        row: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataFileError(f"{path}, line {number} is not JSON: {error}", expected=expected) from error
    if not isinstance(row, dict):
        raise DataFileError(f"{path}, line {number} is a {type(row).__name__}", expected=expected)
    if "\\ud" in line.lower() and any("\ud800" <= sign <= "\udfff" for sign in json.dumps(row, ensure_ascii=False)):
        raise DataFileError(f"{path}, line {number} has half a surrogate pair", expected="text that UTF-8 can hold")
    text_key = columns.get("text") or next((key for key in _JSON_TEXT_KEYS if key in row), None)
    if text_key is None or not isinstance(row.get(text_key), str):
        raise DataFileError(
            f"{path}, line {number} has no text; its keys are {sorted(row)}",
            expected=expected if "text" not in columns else f"text under the key {columns['text']!r}",
            hint="columns={'text': 'the key that holds it'}",
        )
    id_key = columns.get("id") or next((key for key in _JSON_ID_KEYS if key in row), "id")
    title_key = columns.get("title", "title")
    own = row.get("metadata") if isinstance(row.get("metadata"), dict) else {}
    rest = {key: value for key, value in row.items() if key not in {text_key, id_key, title_key, "metadata"}}
    metadata = {**rest, **(own or {})}
    title = row.get(title_key) or metadata.pop("title", None) or path.stem
    return _row_document(path, number, row[text_key], str(title), row.get(id_key), metadata, own_ids=own_ids)


def _row_document(
    path: Path, number: int, text: str, title: str, row_id: object, metadata: Mapping[str, Any], *, own_ids: bool
) -> Document:
    source = path.as_posix()
    if not isinstance(row_id, str | int | float | None):
        raise DataFileError(f"{path}, line {number} has the id {row_id!r}", expected="text or a number")
    if row_id is None or row_id == "":
        name = f"{source}:{number}"
    else:
        name = str(row_id) if own_ids else f"{source}:id={row_id}"
    return Document(id=name, page_content=text, metadata={**metadata, "title": title, "source": source})


def _read_table(path: Path, options: _Options) -> Iterator[Document]:
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    # csv's limit on the length of a cell holds for the whole process; articles are longer than its default.
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_CELL))
    with path.open(encoding=options.encoding, newline="") as file:
        rows = csv.reader(file, delimiter=delimiter, strict=True)
        try:
            header = [name.removeprefix("\ufeff").strip() for name in next(rows, [])]
            if not header:
                return
            place = _columns(path, header, options.columns)
            whole = header == _DPR_HEADER
            for row in rows:
                if row:
                    yield _table_document(path, rows.line_num, header, row, place, whole=whole, own_ids=options.own_ids)
        except csv.Error as error:
            raise DataFileError(
                f"{path}, line {rows.line_num}: {error}",
                expected=f"cells separated by {delimiter!r}, with quotes doubled inside quotes",
            ) from error


def _columns(path: Path, header: list[str], given: Mapping[str, str]) -> dict[str, int]:
    """Find the columns: those that were named, and those whose names are usual."""
    lower = [name.lower() for name in header]
    place = {}
    for role, names in _COLUMN_NAMES.items():
        if role in given:
            if given[role] not in header:
                raise DataFileError(
                    f"{path} has no column {given[role]!r}; its columns are {header}",
                    expected=f"the column that holds the {role}",
                    hint=f"columns={{{role!r}: {header[0]!r}}}",
                )
            place[role] = header.index(given[role])
            continue
        known = next((name for name in names if name in lower), None)
        if known is not None:
            place[role] = lower.index(known)
    if "text" not in place:
        raise DataFileError(
            f"{path}: none of the columns {header} is known to hold the text",
            expected=f"a header with one of {', '.join(_COLUMN_NAMES['text'])}",
            hint=f"columns={{'text': {header[-1]!r}}}",
        )
    return place


def _table_document(
    path: Path, number: int, header: list[str], row: list[str], place: Mapping[str, int], *, whole: bool, own_ids: bool
) -> Document:
    if len(row) != len(header):
        raise DataFileError(
            f"{path}, line {number} has {len(row)} cells", expected=f"{len(header)}, as the header has: {header}"
        )
    used = set(place.values())
    metadata: dict[str, Any] = {name: row[at] for at, name in enumerate(header) if at not in used}
    title = (row[place["title"]] if "title" in place else "") or path.stem
    if whole:
        metadata[WHOLE_PASSAGE] = True
    row_id = row[place["id"]] if "id" in place else None
    return _row_document(path, number, row[place["text"]], title, row_id, metadata, own_ids=own_ids)


_READERS: dict[str, Callable[[Path, _Options], Iterator[Document]]] = {
    ".txt": _read_txt,
    ".md": _read_markdown,
    ".html": _read_html,
    ".htm": _read_html,
    ".pdf": _read_pdf,
    ".jsonl": _read_jsonl,
    ".csv": _read_table,
    ".tsv": _read_table,
}
