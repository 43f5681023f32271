"""The folder of a passage store: what is in it, how it is checked, how it takes its place at once."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from adaptllm_chain.errors import IndexFolderError
from adaptllm_chain.retrieval.identity import identity_differences

INDEX_FILE = "index.faiss"
PASSAGES_FILE = "passages.jsonl"
OFFSETS_FILE = "passages.offsets.npy"
MANIFEST_FILE = "manifest.json"
_DATA_FILES = (INDEX_FILE, PASSAGES_FILE, OFFSETS_FILE)

FORMAT = "adaptllm-chain passage store"
FORMAT_VERSION = 1
# What decides over the bytes of a store, and what its scores depend on.
_LIBRARIES = ("adaptllm-chain", "faiss-cpu", "faiss-gpu", "numpy", "sentence-transformers", "torch", "transformers")
_READ_BYTES = 1 << 20
_BUILD_AGAIN = "build_index(documents, embedding, out_dir), or `store.save(folder)` of a store in memory"


def library_versions() -> dict[str, str]:
    """List the versions of what takes part in making a store.

    Returns:
        Version by distribution; what is not installed is left out.
    """
    found = {}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def write_manifest(folder: Path, about: Mapping[str, Any]) -> None:
    """Write the manifest beside finished files; no time stands in it, so equal stores have equal bytes.

    Args:
        folder: The folder with the other files.
        about: Metric, embedder, count and the like; JSON-serialisable.
    """
    files = {
        name: {"bytes": (folder / name).stat().st_size, "sha256": sha256_of(folder / name)} for name in _DATA_FILES
    }
    manifest = {"format": FORMAT, "version": FORMAT_VERSION, **about, "libraries": library_versions(), "files": files}
    (folder / MANIFEST_FILE).write_text(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def read_manifest(folder: Path, *, check_hashes: bool = False) -> dict[str, Any]:
    """Read a manifest and hold the files against it.

    Args:
        folder: The folder of a store.
        check_hashes: Whether to read all files and compare their SHA-256; sizes are compared in any case.

    Returns:
        The manifest.

    Raises:
        IndexFolderError: If this is no store, one of a later version, or a file is missing or changed.
    """
    path = folder / MANIFEST_FILE
    if not path.is_file():
        pickled = " (its index.pkl is a pickle, which can run code, and is not read)"
        raise IndexFolderError(
            f"{folder} holds no {MANIFEST_FILE}{pickled if (folder / 'index.pkl').exists() else ''}",
            expected="a folder that FaissPassageStore.save or build_index wrote",
            hint=_BUILD_AGAIN,
        )
    try:
        manifest: Any = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise IndexFolderError(f"{path} is damaged: {error}", expected="JSON", hint=_BUILD_AGAIN) from error
    _check_format(path, manifest)
    for name in _DATA_FILES:
        _check_file(folder / name, manifest["files"][name], check_hashes=check_hashes)
    return dict(manifest)


def _check_format(path: Path, manifest: Any) -> None:
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise IndexFolderError(f"{path} belongs to something else", expected=f'"format": "{FORMAT}"', hint=_BUILD_AGAIN)
    if manifest.get("version") != FORMAT_VERSION:
        raise IndexFolderError(
            f"{path} is of version {manifest.get('version')!r}",
            expected=f"version {FORMAT_VERSION}",
            hint="pip install -U adaptllm-chain, or build the index again",
        )
    kinds = {"metric": str, "dimension": int, "count": int, "embedder": dict, "embed_title": bool, "files": dict}
    wrong = [key for key, kind in kinds.items() if not isinstance(manifest.get(key), kind)]
    if wrong or any(not isinstance(manifest["files"].get(name), dict) for name in _DATA_FILES):
        raise IndexFolderError(
            f"{path} lacks {', '.join(wrong or _DATA_FILES)}", expected="all of its entries", hint=_BUILD_AGAIN
        )


def _check_file(path: Path, expected: Mapping[str, Any], *, check_hashes: bool) -> None:
    if not path.is_file():
        raise IndexFolderError(f"{path} is missing", expected="the file that the manifest lists", hint=_BUILD_AGAIN)
    size = path.stat().st_size
    if size != expected.get("bytes"):
        raise IndexFolderError(
            f"{path} has {size} bytes",
            expected=f"{expected.get('bytes')} bytes, as the manifest says",
            hint="copy the folder again; it was cut short or changed",
        )
    if check_hashes and sha256_of(path) != expected.get("sha256"):
        raise IndexFolderError(
            f"{path} was changed since it was written",
            expected=f"SHA-256 {expected.get('sha256')}",
            hint="copy the folder again, or build it again",
        )


def check_embedder(folder: Path, stored: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Refuse to search vectors with another embedder than the one that made them.

    Args:
        folder: The folder of the store.
        stored: Identity of the embedder that made the vectors.
        given: Identity of the embedder that was passed.

    Raises:
        IndexFolderError: If they differ.
    """
    different = identity_differences(stored, given)
    if different:
        raise IndexFolderError(
            f"{folder} was made with another embedder ({'; '.join(different)})",
            expected=f"the embedder {stored.get('name') or stored.get('class')!r}",
            hint="pass that embedder, or build the index again with this one",
        )


def sha256_of(path: Path) -> str:
    """Hash a file without reading it whole.

    Args:
        path: The file.

    Returns:
        64 hexadecimal digits.
    """
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_READ_BYTES):
            digest.update(block)
    return digest.hexdigest()


def check_may_replace(folder: Path) -> None:
    """Refuse to put a store where something else lies.

    Args:
        folder: Where the store is to go.

    Raises:
        IndexFolderError: If that is a file, or a folder that is neither empty nor a store.
    """
    above = next((parent for parent in folder.absolute().parents if parent.exists()), None)
    if above is not None and not above.is_dir():
        raise IndexFolderError(
            f"{above} is a file", expected="a folder to put the index in", hint="choose another folder"
        )
    if not folder.exists():
        return
    ours = {*_DATA_FILES, MANIFEST_FILE}
    others = (
        sorted(file.name for file in folder.iterdir() if file.name not in ours) if folder.is_dir() else [folder.name]
    )
    if others:
        raise IndexFolderError(
            f"{folder} holds something else, which would be lost: {', '.join(others[:5])}",
            expected="a new or empty folder, or one with a passage store and nothing more",
            hint="choose another folder",
        )


@contextmanager
def replaced_folder(folder: Path, staging: Path) -> Iterator[Path]:
    """Fill a folder beside its place, then move it there; a reader never sees half a store.

    Args:
        folder: Where the store is to go.
        staging: A folder on the same disk; what it holds is thrown away.

    Yields:
        The folder to fill.
    """
    check_may_replace(folder)
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    try:
        yield staging
        for file in staging.iterdir():
            _flush(file)
        old = staging.with_name(f"{staging.name}.old")
        if folder.exists():
            shutil.rmtree(old, ignore_errors=True)
            folder.rename(old)
        staging.rename(folder)
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _flush(path: Path) -> None:
    """Wait until a file is on disk: a rename must not get there before what it names."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
