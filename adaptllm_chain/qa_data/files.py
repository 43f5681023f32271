"""Opening a data file, plain or gzip, and turning what breaks underneath into a readable error."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from adaptllm_chain.errors import DataFileError

_GZIP_MAGIC = b"\x1f\x8b"


def is_gzip(path: Path) -> bool:
    """Say whether a file is compressed, by its first two bytes: names lie after a download.

    Args:
        path: The file.

    Returns:
        Whether it starts as gzip does.
    """
    with path.open("rb") as stream:
        return stream.read(2) == _GZIP_MAGIC


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Open a data file for reading, decompressing on the way.

    Args:
        path: The file, plain or gzip.

    Yields:
        A stream of the file's decompressed bytes.

    Raises:
        DataFileError: The file cannot be opened, or its compressed data are damaged or cut.
    """
    try:
        with gzip.open(path, "rb") if is_gzip(path) else path.open("rb") as stream:
            yield stream  # type: ignore[misc]  # GzipFile reads like a binary file
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataFileError(
            f"{path}: the compressed file is damaged or was cut: {error}",
            expected="a complete gzip file",
            hint=f"gzip --test {path}, then fetch it again",
        ) from error
    except OSError as error:
        raise DataFileError(
            f"{path}: cannot be read: {error.strerror or error}", expected="a readable data file"
        ) from error
