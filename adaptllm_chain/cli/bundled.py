"""The files that are shipped for the demo, and their index in the user's cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from langchain_core.embeddings import Embeddings

from adaptllm_chain.cli.console import note, progress_bar
from adaptllm_chain.errors import DataFileError, IndexFolderError
from adaptllm_chain.llms.embedded import EMBEDDED

_DEMO = Path(__file__).resolve().parents[1] / "demo"
CORPUS = _DEMO / "corpus"
QUESTIONS = _DEMO / "questions.txt"
_STALE_S = 86_400


def cache_folder() -> Path:
    """Find the folder for what can be made again.

    Returns:
        ``$XDG_CACHE_HOME/adaptllm``, or ``~/.cache/adaptllm``; it need not exist.
    """
    given = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification: a relative path is to be ignored.
    root = Path(given) if given and Path(given).is_absolute() else Path.home() / ".cache"
    return root / "adaptllm"


def bundled_index_folder() -> Path:
    """Name the cached index of the bundled corpus.

    Returns:
        A folder whose name changes with the corpus, where it lies, and the embedder; it need not exist.
    """
    digest = hashlib.sha256(f"{EMBEDDED}\n{CORPUS}\n".encode())
    for file in _corpus_files():
        digest.update(f"{file.name}\n".encode() + file.read_bytes())
    return cache_folder() / f"demo-{digest.hexdigest()[:16]}"


def ensure_bundled_index(embedder: Embeddings) -> Path:
    """Index the bundled corpus unless that was done before.

    Args:
        embedder: The embedded embedder.

    Returns:
        The folder of the index.
    """
    folder = bundled_index_folder()
    if _is_good(folder, embedder):
        return folder
    # Made beside its place, so that two commands that are started together do not meet.
    staging = folder.with_name(f"{folder.name}.{os.getpid()}")
    _remove_stale(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(staging, ignore_errors=True)
        index_bundled(staging, embedder)
        if _is_good(folder, embedder):  # another command was quicker
            shutil.rmtree(staging, ignore_errors=True)
            return folder
        shutil.rmtree(folder, ignore_errors=True)
        staging.rename(folder)
    except OSError as error:
        if _is_good(folder, embedder):
            shutil.rmtree(staging, ignore_errors=True)
            return folder
        note(f"the cache {folder.parent} cannot be used ({error.strerror}): the index is made for this time only")
        folder = Path(tempfile.mkdtemp(prefix="adaptllm-")) / "index"
        index_bundled(folder, embedder)
        return folder
    note(f"indexed the bundled corpus into {folder}")
    return folder


def _remove_stale(folder: Path) -> None:
    """Remove what commands left that were killed: their number is that of no process, or they are a day old."""
    for other in folder.parent.glob("demo-*.*"):
        number = other.name.split(".")[1]
        with suppress(OSError):
            old = time.time() - other.stat().st_mtime > _STALE_S
            if number.isdecimal() and (old or not _runs(int(number))):
                shutil.rmtree(other, ignore_errors=True)


def _runs(process: int) -> bool:
    if os.name != "posix":  # elsewhere os.kill ends a process
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def index_bundled(out: Path, embedder: Embeddings) -> None:
    """Index the bundled corpus.

    Args:
        out: The folder of the index; one that is there already is left as it is if it is the same, and else refused.
        embedder: The embedder.
    """
    from adaptllm_chain.cli.indexing import IndexSettings, index_files

    with progress_bar("passages") as bar:
        index_files(_corpus_files(), out, embedder, IndexSettings(), bar)


def _corpus_files() -> list[Path]:
    files = sorted(CORPUS.glob("*.md"))
    if not files:
        raise DataFileError(
            f"the bundled corpus is not in {CORPUS}",
            expected="the articles that are shipped with adaptllm-chain",
            hint="pip install --force-reinstall --no-deps adaptllm-chain, or --index with an index of your own",
        )
    return files


def _is_good(folder: Path, embedder: Embeddings) -> bool:
    """Whether the index is there, whole, and made with this embedder; else it is made again."""
    from adaptllm_chain.retrieval.folder import check_embedder, read_manifest
    from adaptllm_chain.retrieval.identity import identity_of

    try:
        check_embedder(folder, read_manifest(folder)["embedder"], identity_of(embedder))
    except IndexFolderError:
        return False
    return True
