"""An output folder that is there as a whole or not at all."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from adaptllm_chain.errors import InvalidInputError

# Says that we made a folder, and of what; a folder without it is never replaced.
RECORD = "export.json"


def check_out(out: Path, *, overwrite: bool) -> None:
    """Make sure that a folder may be written, before the long work starts.

    Args:
        out: The folder.
        overwrite: Whether an earlier export there may be replaced.

    Raises:
        InvalidInputError: If something else is there, or an export that must stay.
    """
    out = out.resolve()
    if out.is_file() or not out.name:
        what = "a file" if out.name else "the root of the disk"
        raise InvalidInputError(f"{str(out)!r} is {what}", expected="a folder that is new or empty")
    for folder, replace in ((out, overwrite), (_part(out), True), (_old(out), True)):
        if not folder.is_dir() or not any(folder.iterdir()):
            continue
        if not (folder / RECORD).is_file():
            raise InvalidInputError(
                f"{str(folder)!r} holds something else than an export of ours",
                expected="a folder that is new or empty",
                hint="--out with another folder",
            )
        if not replace:
            raise InvalidInputError(
                f"{str(folder)!r} holds an earlier export",
                expected="a folder that is new or empty",
                hint="--overwrite to replace it, or --out with another folder",
            )


@contextmanager
def whole_folder(out: Path, record: Mapping[str, Any], *, overwrite: bool = False) -> Iterator[Path]:
    """Write a folder under another name, and give it its own once it is complete.

    Args:
        out: The folder.
        record: What it is made of; written into it as ``export.json``.
        overwrite: Whether an earlier export there may be replaced.

    Yields:
        The folder to write into. If the work fails it is removed, and ``out`` is what it was.
    """
    out = out.resolve()
    check_out(out, overwrite=overwrite)
    part, old = _part(out), _old(out)
    for left_over in (part, old):
        shutil.rmtree(left_over, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        (part / RECORD).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
        yield part
        if out.exists():
            out.replace(old)
        part.replace(out)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        if old.exists() and not out.exists():
            old.replace(out)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _part(out: Path) -> Path:
    return out.with_name(out.name + ".part")


def _old(out: Path) -> Path:
    return out.with_name(out.name + ".old")
