"""Reading a large JSON document value by value with the standard library.

DPR's training file is 8 GB in one list. ``json.load`` would hold all of it; this cursor holds one
element, and it knows the byte at which a damaged file breaks.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import IO, Any

from adaptllm_chain.errors import DataFileError
from adaptllm_chain.qa_data.cut_files import cut_file
from adaptllm_chain.qa_data.files import is_compressed, was_cut

_FIRST_READ = 1 << 16
_SPACE = " \t\r\n"
# What is left of a literal, a number or an escape when the text ends inside of it.
_CUT_TOKEN = re.compile(r"[\w\\.+-]*\s*\Z")


def ends_inside(error: json.JSONDecodeError) -> bool:
    """Say whether JSON text is wrong only because it ends too early.

    Args:
        error: What the parser said of the text.

    Returns:
        Whether more text could have made it right.
    """
    return error.msg.startswith("Unterminated") or bool(_CUT_TOKEN.match(error.doc, error.pos))


class JsonCursor:
    """A position in a stream of JSON text.

    Args:
        stream: The bytes, as ``open_bytes`` gives them; UTF-8 with or without a byte order mark.
        path: The file's name, for messages.
    """

    def __init__(self, stream: IO[bytes], path: Path) -> None:
        self._stream = stream
        self._path = path
        # utf-8-sig swallows the mark, so it is counted by hand below.
        self._decode = codecs.getincrementaldecoder("utf-8-sig")()
        self._text = ""
        self._at = 0
        self._bytes_before = 0
        self._ended = False
        self._started = False

    def peek(self) -> str:
        """Look at the next character that is not white space.

        Returns:
            The character, or an empty string at the end of the file.
        """
        while True:
            while self._at < len(self._text):
                if self._text[self._at] not in _SPACE:
                    return self._text[self._at]
                self._at += 1
            if self._ended:
                return ""
            self._read_more(_FIRST_READ)

    def take(self, allowed: str) -> str:
        """Step over one punctuation character.

        Args:
            allowed: The characters that may stand here.

        Returns:
            The one that does.

        Raises:
            DataFileError: Another character stands here, or the file ends here.
        """
        character = self.peek()
        if not character or character not in allowed:
            raise self._broken(self._at, cut=not character)
        self._at += 1
        return character

    def value(self) -> Any:
        """Parse the value that starts here and step behind it.

        Returns:
            The value, as ``json.loads`` would return it.

        Raises:
            DataFileError: It is not JSON, or the file ends inside of it.
        """
        self.peek()
        size = _FIRST_READ
        while True:
            try:
                value, end = json.JSONDecoder().raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                cut = ends_inside(error)
                if self._ended or not cut:
                    raise self._broken(error.pos, cut=cut) from error
            except (RecursionError, ValueError) as error:  # nested too deeply, or a number of thousands of digits
                raise self._broken(self._at, cut=False) from error
            else:
                if end < len(self._text) or (self._ended and not _is_number(value)):
                    self._at = end
                    return value
                # A number that touches the end may go on behind it.
                if self._ended:
                    raise self._broken(end, cut=True)
            # Doubling keeps the total work linear however long one value is.
            self._read_more(size)
            size *= 2

    def members(self) -> Iterator[str]:
        """Step through the object that starts here.

        Yields:
            Each key; its value, which starts here then, must be stepped over before the next.

        Raises:
            DataFileError: It is not a JSON object, or the file ends inside of it.
        """
        self.take("{")
        if self.peek() == "}":
            self.take("}")
            return
        while True:
            key = str(self.value())
            self.take(":")
            yield key
            if self.take(",}") == "}":
                return

    def elements(self) -> Iterator[int]:
        """Step through the list that starts here.

        Yields:
            Each element's number, from 1; the element, which starts here then, must be stepped
            over before the next.

        Raises:
            DataFileError: It is not a JSON list, or the file ends inside of it.
        """
        self.take("[")
        if self.peek() == "]":
            self.take("]")
            return
        for number in count(1):
            yield number
            if self.take(",]") == "]":
                return

    def finish(self) -> None:
        """Check that nothing follows, and that a compressed file has its checksum.

        Raises:
            DataFileError: Something does, or it has not.
        """
        if self.peek():
            raise self._broken(self._at, cut=False)
        if was_cut(self._stream):
            place = self._bytes_before + len(self._text[: self._at].encode())
            raise cut_file(self._path, place, inside="the gzip data", compressed=True)

    def _read_more(self, size: int) -> None:
        chunk = self._stream.read(size)
        if not self._started:
            self._started = True
            self._bytes_before = len(codecs.BOM_UTF8) if chunk.startswith(codecs.BOM_UTF8) else 0
        self._bytes_before += len(self._text[: self._at].encode())
        self._ended = not chunk
        rest = self._text[self._at :]
        pending = len(self._decode.getstate()[0])
        try:
            self._text = rest + self._decode.decode(chunk, final=self._ended)
        except UnicodeDecodeError as error:
            place = self._bytes_before + len(rest.encode()) + error.start
            if self._ended and pending:
                raise self._cut_at(place + pending) from error
            raise _not_json(self._path, place, what="not UTF-8 text") from error
        self._at = 0

    def _broken(self, position: int, *, cut: bool) -> DataFileError:
        # For a cut file the end is the useful place: the parser itself points at the string's start.
        if cut and self._ended:
            return self._cut_at(self._bytes_before + len(self._text.encode()))
        return _not_json(self._path, self._bytes_before + len(self._text[:position].encode()), what="not JSON")

    def _cut_at(self, place: int) -> DataFileError:
        return cut_file(self._path, place, inside="a JSON value", compressed=is_compressed(self._stream))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _not_json(path: Path, place: int, *, what: str) -> DataFileError:
    return DataFileError(f"{path}: {what} at byte {place}", expected="a complete JSON file, in UTF-8")
