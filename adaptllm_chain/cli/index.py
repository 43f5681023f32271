"""``adaptllm index``: from files to an index that ``adaptllm ask`` searches."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adaptllm_chain.cli.console import note, progress_bar
from adaptllm_chain.cli.options import whole_number
from adaptllm_chain.errors import DataFileError
from adaptllm_chain.llms.embedded import EMBEDDED

if TYPE_CHECKING:
    from adaptllm_chain.cli.indexing import Indexed

DEVICES = ("auto", "cpu", "cuda")
METRICS = ("inner_product", "l2")
_COLUMN_ROLES = ("text", "title", "id")
_SHOWN_SKIPPED = 10


def add_parser(subparsers: Any) -> None:
    """Add the command.

    Args:
        subparsers: What ``ArgumentParser.add_subparsers`` returned.
    """
    parser = subparsers.add_parser(
        "index",
        help="make an index of your own files",
        description="Reads files and folders (.txt .md .html .pdf .jsonl .csv .tsv, psgs_w100.tsv), splits them into "
        "passages, embeds these, and writes a folder for `adaptllm ask --index`. A run that was stopped goes on "
        "where it was when the same command is given again.",
    )
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="files, and folders with all below them")
    parser.add_argument(
        "--passages-of",
        action="append",
        default=[],
        metavar="FILE",
        help="a question file, whose gold passages and found passages are indexed as they are; repeatable. Takes what "
        "adaptllm evaluate --data takes",
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder of the index")
    parser.add_argument(
        "--embeddings",
        default=EMBEDDED,
        metavar="E",
        help="'embedded' (all-MiniLM-L6-v2, the default), 'contriever' (facebook/contriever-msmarco), a folder, or "
        "the name of a sentence-transformers model",
    )
    parser.add_argument("--device", choices=DEVICES, default="auto", help="auto: a GPU if there is one")
    parser.add_argument("--batch-size", type=whole_number, default=32, metavar="N", help="passages a forward pass")
    parser.add_argument("--metric", choices=METRICS, default="inner_product", help="default: inner_product")
    parser.add_argument("--words", type=whole_number, default=100, metavar="N", help="the most words of a passage")
    parser.add_argument(
        "--chunk-size",
        type=whole_number,
        default=1000,
        metavar="N",
        help="passages that a kill can cost (default 1000)",
    )
    parser.add_argument(
        "--column",
        action="append",
        default=[],
        type=_column,
        metavar="ROLE=NAME",
        help="which column or JSON key holds text, title or id, where that is not plain: --column text=body",
    )
    parser.add_argument(
        "--encoding", type=_encoding, default="utf-8", metavar="E", help="of text files (default utf-8)"
    )
    parser.add_argument("--restart", action="store_true", help="throw away unfinished work or a finished index")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Make the index.

    Args:
        arguments: The parsed options.

    Returns:
        0.

    Raises:
        AdaptLLMError: If it cannot be made.
    """
    from adaptllm_chain.cli.embedder_loading import load_embedder
    from adaptllm_chain.cli.indexing import IndexSettings, index_files
    from adaptllm_chain.retrieval.folder import check_may_replace

    started = time.perf_counter()
    out = Path(os.path.abspath(arguments.out))  # noqa: PTH100 - "." and ".." have no name of their own
    _check_paths([*arguments.paths, *(Path(file) for file in arguments.passages_of if not file.startswith("hub:"))])
    check_may_replace(out)
    unfinished = out.with_name(f"{out.name}.building")
    try:
        note(f"loading the embedder {arguments.embeddings}")
        embedder = load_embedder(arguments.embeddings, device=arguments.device, batch_size=arguments.batch_size)
        if unfinished.is_dir() and not arguments.restart:
            note(f"going on with the unfinished work in {unfinished}")
        settings = IndexSettings(
            metric=arguments.metric,
            words=arguments.words,
            chunk_size=arguments.chunk_size,
            columns=dict(arguments.column),
            encoding=arguments.encoding,
            resume=not arguments.restart,
            passages_of=tuple(arguments.passages_of),
        )
        with progress_bar("passages") as bar:
            indexed = index_files(arguments.paths, out, embedder, settings, bar)
    except KeyboardInterrupt:
        if unfinished.is_dir():
            note(f"\nwhat is done lies in {unfinished}: give the same command again to go on")
        raise
    print(_summary(indexed, arguments.out, time.perf_counter() - started))
    return 0


def _summary(indexed: Indexed, out: Path, seconds: float) -> str:
    report = indexed.report
    size = sum(file.stat().st_size for file in report.folder.iterdir())
    lines = [f"{out}: {report.passages} passages of {indexed.files} files, {size / 1e6:.1f} MB, {seconds:.1f} s"]
    if report.already_built:
        lines.append("the index was complete already: nothing was done")
    elif report.chunks_resumed:
        lines.append(f"{report.chunks_resumed} of {report.chunks} chunks were taken over from a run that was stopped")
    if indexed.skipped:
        lines.append(f"skipped {len(indexed.skipped)} files:")
        lines += [f"  {file.path} ({file.reason})" for file in indexed.skipped[:_SHOWN_SKIPPED]]
        if len(indexed.skipped) > _SHOWN_SKIPPED:
            lines.append(f"  and {len(indexed.skipped) - _SHOWN_SKIPPED} more")
    lines.append(f'now: adaptllm ask --index {out} "…"')
    return "\n".join(lines)


def _column(text: str) -> tuple[str, str]:
    role, separator, name = text.partition("=")
    if role not in _COLUMN_ROLES or not separator or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not ROLE=NAME with a role out of {', '.join(_COLUMN_ROLES)}")
    return role, name


def _encoding(text: str) -> str:
    try:
        "a".encode(text)  # codecs knows base64 and the like too, which are no encodings of text
    except (LookupError, UnicodeError) as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no encoding of text that Python knows") from error
    return text


def _check_paths(paths: Sequence[Path]) -> None:
    """Find a mistyped path now, not after the hours that the one before it takes."""
    if not paths:
        raise DataFileError("nothing to index was named", expected="files, folders, or --passages-of FILE")
    for path in paths:
        if not path.exists():
            raise DataFileError(f"{path} does not exist", expected="a file or a folder", hint=f"ls {path.parent}")
