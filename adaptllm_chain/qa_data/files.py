"""Opening a data file, plain or gzip, and turning what breaks underneath into a readable error."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from adaptllm_chain.errors import DataFileError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_GZIP_MAGIC = b"\x1f\x8b"
_BUFFER = 1 << 17


def is_gzip(path: Path) -> bool:
    """Say whether a file is compressed, by its first two bytes: names lie after a download.

    Args:
        path: The file.

    Returns:
        Whether it starts as gzip does.
    """
    with path.open("rb") as stream:
        return stream.read(2) == _GZIP_MAGIC


class _Decompressed(io.RawIOBase):
    """What a gzip file holds, as far as it goes.

    ``GzipFile`` raises where the file was cut, and takes along what its buffer held before. Here
    the data end quietly, and ``was_cut`` tells.
    """

    def __init__(self, compressed: gzip.GzipFile) -> None:
        self._compressed = compressed
        self.cut = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer)
        try:
            # read1 hands out what there is before it looks for more.
            data = self._compressed.read1(len(view))
        except EOFError:
            self.cut = True
            return 0
        view[: len(data)] = data
        return len(data)


def is_compressed(stream: IO[bytes]) -> bool:
    """Say whether a stream of ``open_bytes`` is decompressed on the way.

    Args:
        stream: The stream.

    Returns:
        Whether its bytes are not those of the file.
    """
    return isinstance(getattr(stream, "raw", None), _Decompressed)


def was_cut(stream: IO[bytes]) -> bool:
    """Say whether a stream of ``open_bytes``, read to its end, ended because its gzip file was cut.

    Args:
        stream: The stream.

    Returns:
        Whether data or the checksum behind them are missing; a plain file cannot tell.
    """
    raw = getattr(stream, "raw", None)
    return isinstance(raw, _Decompressed) and raw.cut


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Open a data file for reading, decompressing on the way.

    Args:
        path: The file, plain or gzip.

    Yields:
        A stream of the file's decompressed bytes; that of a cut gzip file ends where the file
        does, and ``was_cut`` tells.

    Raises:
        DataFileError: The file cannot be opened, or its compressed data are damaged.
    """
    try:
        if is_gzip(path):
            with gzip.open(path, "rb") as compressed, io.BufferedReader(_Decompressed(compressed), _BUFFER) as stream:
                yield stream
        else:
            with path.open("rb") as stream:
                yield stream
    except (zlib.error, gzip.BadGzipFile) as error:
        raise DataFileError(
            f"{path}: the compressed file is damaged: {error}",
            expected="a complete gzip file",
            hint=f"gzip --test {path}, then fetch it again",
        ) from error
    except OSError as error:
        raise DataFileError(
            f"{path}: cannot be read: {error.strerror or error}", expected="a readable data file"
        ) from error
