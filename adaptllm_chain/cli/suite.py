"""Running a whole suite of experiments: ``adaptllm evaluate --suite``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from adaptllm_chain.cli.console import note, progress_bar
from adaptllm_chain.cli.data_options import read_arguments
from adaptllm_chain.errors import InvalidInputError

if TYPE_CHECKING:
    from adaptllm_chain.evaluation import Planned, Suite

REPORT_FOLDER = "report"


def run_suite(arguments: argparse.Namespace) -> int:
    """Run every experiment of a suite that there is data for, then make the report.

    Args:
        arguments: The parsed options of ``adaptllm evaluate`` with ``suite``.

    Returns:
        0, or 1 if some questions failed.
    """
    from adaptllm_chain.cli import report
    from adaptllm_chain.cli.measuring import check_retriever, measure
    from adaptllm_chain.cli.model_loading import LastModel
    from adaptllm_chain.evaluation import SUITES

    suite = SUITES[arguments.suite]
    if arguments.index is not None:
        check_retriever(str(arguments.index), "--index")
    files = named_files(arguments.data, suite)
    adapters = {"never_retrieve": arguments.never_adapter, "always_retrieve": arguments.always_adapter}
    planned = [one for one in suite.experiments if one.data in files and _has_passages(one, files, arguments)]
    if not planned:
        raise InvalidInputError("there is no experiment to run", expected=f"--data with {_choices(suite)}")
    index = open_index(arguments, list(files.values())) if any(one.retriever == "index" for one in planned) else None
    failed: list[str] = []
    models = LastModel()
    for number, one in enumerate(planned, start=1):
        note(f"experiment {number} of {len(planned)}: {one.folder}")
        own = argparse.Namespace(**vars(arguments))
        own.data, own.name, own.k = [files[one.data]], suite.data[one.data], one.k
        own.out = arguments.out / one.folder
        own.retriever = str(index) if one.retriever == "index" else one.retriever
        for mode, rows in measure(own, one.modes, adapters, models).items():
            failed += [f"{one.folder}, {mode}: {row.question!r}: {row.error}" for row in rows if row.error is not None]
    folders = [arguments.out / one.folder for one in planned]
    code = report.run(argparse.Namespace(folders=folders, out=arguments.out / REPORT_FOLDER))
    if failed:
        note(f"{len(failed)} questions failed and count as wrong; the first: {failed[0]}")
    return 1 if failed else code


def named_files(given: Sequence[str], suite: Suite) -> dict[str, str]:
    """Read which file is which data set of a suite.

    Args:
        given: What was typed: ``NAME=FILE``.
        suite: The suite.

    Returns:
        The files, by name.

    Raises:
        InvalidInputError: If a name is missing, unknown, or given twice.
    """
    files: dict[str, str] = {}
    for text in given:
        name, separator, file = text.partition("=")
        if not separator or name not in suite.data or not file:
            raise InvalidInputError(
                f"--data {text!r} does not say which data set of the suite it is",
                expected=_choices(suite),
                hint=" ".join(f"--data {known}=FILE" for known in suite.data),
            )
        if name in files:
            raise InvalidInputError(
                f"--data {name} is given twice: {files[name]} and {file}",
                expected="one file a data set",
                hint="put both into one file, or run the suite twice with another --out",
            )
        files[name] = file
    return files


def _choices(suite: Suite) -> str:
    return ", ".join(f"{name}=FILE" for name in suite.data)


def _has_passages(one: Planned, files: dict[str, str], arguments: argparse.Namespace) -> bool:
    """Say whether a file brings the passages that an experiment needs; files need not bring both kinds."""
    from adaptllm_chain.qa_data import read_questions

    if one.retriever == "index":
        return True
    found = any(
        question.gold_passage is not None if one.retriever == "gold" else bool(question.given_passages)
        for question in read_questions(files[one.data], **read_arguments(arguments))
    )
    if not found:
        note(f"{one.folder}: left out, since {files[one.data]} has no {one.retriever} passages")
    return found


def open_index(arguments: argparse.Namespace, files: Sequence[str]) -> Path:
    """Find the index that was named, or make one of all passages in the files.

    Args:
        arguments: ``index``, ``embeddings``, ``device`` and ``out``.
        files: The question files.

    Returns:
        The folder of the index.
    """
    if arguments.index is not None:
        folder: Path = arguments.index
        return folder
    from adaptllm_chain.cli.embedder_loading import embedder_device, load_embedder
    from adaptllm_chain.cli.indexing import IndexSettings, index_files
    from adaptllm_chain.llms.embedded import EMBEDDED

    name = arguments.embeddings or EMBEDDED
    out: Path = arguments.out / "index"
    note(f"indexing all passages of the files into {out} (embedder: {name})")
    embedder = load_embedder(name, device=embedder_device(arguments.device))
    with progress_bar("passages") as bar:
        index_files([], out, embedder, IndexSettings(passages_of=tuple(files)), bar)
    return out
