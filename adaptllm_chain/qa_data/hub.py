"""Declared data sets from huggingface.co, through ``datasets``, as rows like those of a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from adaptllm_chain.errors import DataFileError, missing_extra
from adaptllm_chain.qa_data.catalogue import DataSet
from adaptllm_chain.qa_data.rows import Row

# Their upstream file is a table, where all values are text.
_TABLES = frozenset({"popqa"})


def hub_rows(data_set: DataSet, split: str, *, check: bool = True) -> Iterator[Row]:
    """Fetch one split at the declared revision, or take it from the cache of ``datasets``.

    No code from the hub is run: it has these data sets as plain data.

    Args:
        data_set: The data set.
        split: The name of one of its splits.
        check: Whether to compare the number of rows with the declaration.

    Returns:
        An iterator of the rows, in the order of the hub, which is that of the upstream file; a
        row's number, from 1, is its default id.

    Raises:
        MissingExtraError: ``datasets`` is not installed.
        DataFileError: The data set is not on the hub, the hub cannot be reached, or it has
            another number of rows. The message says which file to download instead.
    """
    where = f"{data_set.name}:{split}"
    if data_set.hub_path is None:
        raise DataFileError(
            f"hub:{where}: {data_set.name} is not on the hub in this form",
            expected=f"the file of {data_set.source}",
            hint=_download(data_set, split),
        )
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise missing_extra("datasets", "train") from error
    try:
        found = load_dataset(data_set.hub_path, data_set.hub_config, split=split, revision=data_set.revision)
    # Connections, the hub's client and the file formats below each have their own errors.
    except Exception as error:
        raise DataFileError(
            f"hub:{where}: the hub did not give {data_set.hub_path} at revision {data_set.revision}: "
            f"{str(error).partition(chr(10))[0] or type(error).__name__}",
            expected="a connection to huggingface.co, or a copy in the cache of datasets",
            hint=_download(data_set, split),
        ) from error
    if check:
        check_size(data_set, split, len(found), where=f"hub:{where}")
    return _rows(found, as_text=data_set.format in _TABLES)


def check_size(data_set: DataSet, split: str, rows: int, *, where: str) -> None:
    """Compare a number of rows with the declaration.

    Args:
        data_set: The data set.
        split: The name of one of its splits.
        rows: How many rows there are.
        where: Where they are, for the message.

    Raises:
        DataFileError: It is another number.
    """
    declared = data_set.splits[split]
    if rows == declared.questions:
        return
    at_revision = f" at revision {data_set.revision}" if data_set.revision else ""
    differs = declared.in_paper not in (None, declared.questions)
    in_paper = f" (the paper counts {declared.in_paper:,})" if differs else ""
    raise DataFileError(
        f"{where}: holds {rows:,} questions, but {data_set.name}:{split} has {declared.questions:,}"
        f"{at_revision}{in_paper}",
        expected=f"the complete file {declared.file_name}",
        hint=f"{_download(data_set, split)}; load_data_set(..., check=False) takes another number",
    )


def _download(data_set: DataSet, split: str) -> str:
    part = data_set.splits[split]
    return (
        f"download {part.url} and give that file in place of the name, "
        f'or load_data_set("{data_set.name}", "{split}", path="{part.file_name}"), which checks its size'
    )


def _rows(found: Any, *, as_text: bool) -> Iterator[Row]:
    for number, record in enumerate(found, start=1):
        data: Mapping[str, Any] = record
        if as_text:
            data = {name: "" if value is None else str(value) for name, value in record.items()}
        yield Row(where=f"row {number}", default_id=str(number), data=data)
