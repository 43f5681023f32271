"""Reading a large JSON document value by value with the standard library.

DPR's training file is 8 GB in one list. ``json.load`` would hold all of it; this cursor holds one
element, and it knows the byte at which a damaged file breaks.
"""

from __future__ import annotations

import codecs
import json
import re
from pathlib import Path
from typing import IO, Any

from adaptllm_chain.errors import DataFileError

_FIRST_READ = 1 << 16
_SPACE = " \t\r\n"
# What is left of a literal, a number or an escape when the text ends inside of it.
_CUT_TOKEN = re.compile(r"[\w\\.+-]*\s*\Z")


class JsonCursor:
    """A position in a stream of JSON text.

    Args:
        stream: The bytes, UTF-8 with or without a byte order mark.
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
                cut = error.msg.startswith("Unterminated") or bool(_CUT_TOKEN.match(self._text, error.pos))
                if self._ended or not cut:
                    raise self._broken(error.pos, cut=cut) from error
            except RecursionError as error:
                raise self._broken(self._at, cut=False) from error
            else:
                # A number that touches the end of the buffer may go on behind it.
                if end < len(self._text) or self._ended:
                    self._at = end
                    return value
            # Doubling keeps the total work linear however long one value is.
            self._read_more(size)
            size *= 2

    def finish(self) -> None:
        """Check that nothing follows.

        Raises:
            DataFileError: Something does.
        """
        if self.peek():
            raise self._broken(self._at, cut=False)

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
            cut = self._ended and pending > 0
            raise _not_json(self._path, place, cut=cut, what="not UTF-8 text") from error
        self._at = 0

    def _broken(self, position: int, *, cut: bool) -> DataFileError:
        # For a cut file the end is the useful place: the parser itself points at the string's start.
        end = len(self._text) if cut else position
        place = self._bytes_before + len(self._text[:end].encode())
        return _not_json(self._path, place, cut=cut and self._ended, what="not JSON")


def _not_json(path: Path, place: int, *, cut: bool, what: str) -> DataFileError:
    if cut:
        return DataFileError(
            f"{path}: the file ends in the middle of a JSON value, at byte {place}",
            expected="a complete JSON file",
            hint="fetch or write it again: it was cut",
        )
    return DataFileError(f"{path}: {what} at byte {place}", expected="a complete JSON file, in UTF-8")
