"""Files that end before their data do, such as a download that broke off."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from adaptllm_chain.errors import DataFileError

OnCut = Literal["raise", "keep"]
"""What to do with such a file: refuse it, or keep the questions that are whole."""


class CutFileError(DataFileError):
    """A data file that ends in the middle.

    Args:
        problem: What is wrong.
        byte: How many bytes there are, which is the place where the file breaks; those of a
            compressed file are counted after decompression.
        expected: What would have been right.
        hint: What to do.
    """

    def __init__(self, problem: str, *, byte: int, expected: str | None = None, hint: str | None = None) -> None:
        super().__init__(problem, expected=expected, hint=hint)
        self.byte = byte


def cut_file(path: Path, byte: int, *, inside: str, compressed: bool, unless: str = "") -> CutFileError:
    """Build the error for a file that ends in the middle.

    Args:
        path: The file.
        byte: How many bytes there are, after decompression.
        inside: What it ends inside of.
        compressed: Whether the bytes are those of the decompressed data.
        unless: What to do if it only looks so.

    Returns:
        The error; the hint offers what is whole.
    """
    of_what = " of the decompressed data" if compressed else ""
    return CutFileError(
        f"{path}: the file ends in the middle of {inside}, at byte {byte}{of_what}",
        byte=byte,
        expected="a complete file",
        hint=f'{unless}fetch or write it again; on_cut="keep" reads the questions before the cut, which are whole',
    )
