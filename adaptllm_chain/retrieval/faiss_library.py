"""The one owner of faiss: making, reading, writing and moving its indexes."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, get_args

from adaptllm_chain.errors import IndexFolderError, InvalidInputError, UnsupportedHardwareError, missing_extra
from adaptllm_chain.retrieval.arrays import FloatMatrix, np

Metric = Literal["inner_product", "l2"]

# faiss.write_index, IndexFlat: 4 letters, the dimension (int32), the number of vectors (int64), ...
_COUNT_AT = 8
_FLOAT_BYTES = 4
_COUNT = struct.Struct("<q")


def load_faiss() -> Any:
    """Import faiss.

    Returns:
        The module, of whichever build is installed.

    Raises:
        MissingExtraError: If there is none.
    """
    try:
        import faiss
    except ImportError as error:
        raise missing_extra("faiss", "cpu") from error
    return faiss


def check_metric(metric: str) -> None:
    """Refuse an unknown metric.

    Args:
        metric: What was passed.

    Raises:
        InvalidInputError: If it is none of ours.
    """
    if metric not in get_args(Metric):
        raise InvalidInputError(
            f"metric is {metric!r}",
            expected=f"one of {get_args(Metric)}",
            hint="for cosine similarity, use an embedder that normalises, and 'inner_product'",
        )


def flat_index(metric: Metric, dimension: int) -> Any:
    """Make an empty exact index.

    Args:
        metric: ``"inner_product"`` or ``"l2"``.
        dimension: Numbers a vector.

    Returns:
        A faiss ``IndexFlatIP`` or ``IndexFlatL2``.
    """
    faiss = load_faiss()
    return faiss.IndexFlatIP(dimension) if metric == "inner_product" else faiss.IndexFlatL2(dimension)


def metric_of(index: Any) -> Metric:
    """Name the metric of an index.

    Args:
        index: Any faiss index.

    Returns:
        ``"inner_product"`` or ``"l2"``.

    Raises:
        InvalidInputError: If it has another metric.
    """
    faiss = load_faiss()
    if index.metric_type == faiss.METRIC_INNER_PRODUCT:
        return "inner_product"
    if index.metric_type == faiss.METRIC_L2:
        return "l2"
    raise InvalidInputError(
        f"the index has faiss's metric number {index.metric_type}", expected="METRIC_INNER_PRODUCT or METRIC_L2"
    )


def read_index(path: Path, *, mmap: bool) -> Any:
    """Read an index. Nothing in such a file can run code.

    Args:
        path: The file.
        mmap: Whether to leave the vectors on disk until a search touches them.

    Returns:
        The index.

    Raises:
        IndexFolderError: If it is damaged.
    """
    faiss = load_faiss()
    # IO_FLAG_MMAP alone maps inverted lists only; the _IFC one maps flat codes, and older builds lack it.
    flags = (faiss.IO_FLAG_MMAP | getattr(faiss, "IO_FLAG_MMAP_IFC", 0) | faiss.IO_FLAG_READ_ONLY) if mmap else 0
    try:
        return faiss.read_index(str(path), flags)
    except RuntimeError as error:
        raise IndexFolderError(
            f"{path} cannot be read: {str(error).splitlines()[0]}",
            expected="an index that faiss wrote, complete",
            hint="copy the folder again, or build it again",
        ) from error


def write_index(index: Any, path: Path) -> None:
    """Write an index; one that is on a GPU is brought to the CPU first, for only that form has a file format.

    Args:
        index: Any faiss index.
        path: The file.
    """
    load_faiss().write_index(on_cpu(index), str(path))


def write_flat_index(path: Path, metric: Metric, dimension: int, count: int, blocks: Iterable[FloatMatrix]) -> None:
    """Write the file of a flat index block by block, so that it may be larger than memory.

    Args:
        path: The file.
        metric: ``"inner_product"`` or ``"l2"``.
        dimension: Numbers a vector.
        count: How many vectors the blocks hold together.
        blocks: The vectors in order; float32, each of shape ``[n, dimension]``.

    Raises:
        IndexFolderError: If the blocks hold another number of vectors, or faiss does not read the file back.
    """
    faiss = load_faiss()
    # The header is faiss's own, of an index of one vector, with the two counts in it replaced.
    one = flat_index(metric, dimension)
    one.add(np.zeros((1, dimension), dtype=np.float32))
    header = bytearray(bytes(faiss.serialize_index(one))[: -dimension * _FLOAT_BYTES])
    _COUNT.pack_into(header, _COUNT_AT, count)
    _COUNT.pack_into(header, len(header) - _COUNT.size, count * dimension)
    written, last = 0, None
    with path.open("wb") as file:
        file.write(header)
        for block in blocks:
            file.write(np.ascontiguousarray(block, dtype=np.float32).data)
            written += len(block)
            last = block[-1] if len(block) else last
    read = read_index(path, mmap=True)
    same_end = last is None or np.array_equal(read.reconstruct(int(read.ntotal) - 1), last)
    if written != count or read.ntotal != count or not same_end:
        raise IndexFolderError(
            f"{path}: {written} of {count} vectors were written, faiss {faiss.__version__} reads {read.ntotal}",
            expected="the same number, and the same vectors",
            hint="report this version of faiss",
        )


def remove_rows(index: Any, rows: list[int]) -> None:
    """Remove vectors from a flat index; those behind them move up.

    Args:
        index: The index.
        rows: Row numbers.

    Raises:
        InvalidInputError: If this kind of index cannot do that.
    """
    faiss = load_faiss()
    if not isinstance(index, faiss.IndexFlatCodes):
        raise InvalidInputError(
            f"passages cannot be removed from or replaced in a {type(index).__name__}",
            expected="a flat index on the CPU",
            hint="store.to_cpu(), or build the index again without them",
        )
    index.remove_ids(np.asarray(rows, dtype=np.int64))


def vectors_of(index: Any, rows: list[int]) -> list[list[float]]:
    """Read vectors back out of an index.

    Args:
        index: The index.
        rows: Row numbers.

    Returns:
        One vector a row.

    Raises:
        InvalidInputError: If this kind of index cannot do that.
    """
    try:
        return [index.reconstruct(row).tolist() for row in rows]
    except RuntimeError as error:
        raise InvalidInputError(
            f"a {type(index).__name__} does not give its vectors back: {str(error).splitlines()[0]}",
            expected="a flat index, or one with a direct map",
            hint="index.make_direct_map(), for inverted lists",
        ) from error


def to_gpu(index: Any, device: int) -> tuple[Any, Any]:
    """Copy an index to a GPU.

    Args:
        index: An index on the CPU.
        device: The number of the GPU.

    Returns:
        The index on the GPU, and the resources that must live as long as it does.

    Raises:
        UnsupportedHardwareError: If this build of faiss knows no GPU, or there is none of that number.
    """
    faiss = load_faiss()
    if not hasattr(faiss, "StandardGpuResources"):
        raise UnsupportedHardwareError(
            f"the installed faiss {faiss.__version__} is a build for the CPU",
            expected="faiss-gpu (Linux on x86_64, CUDA 12), and not faiss-cpu beside it: both are the module 'faiss'",
            hint="pip uninstall -y faiss-cpu && pip install 'adaptllm-chain[gpu]'",
        )
    present = faiss.get_num_gpus()
    if not 0 <= device < present:
        raise UnsupportedHardwareError(
            f"GPU {device} was asked for, faiss sees {present}",
            expected=f"a number from 0 to {present - 1}" if present else "a GPU and its driver",
            hint="nvidia-smi -L",
        )
    resources = faiss.StandardGpuResources()
    return faiss.index_cpu_to_gpu(resources, device, index), resources


def on_cpu(index: Any) -> Any:
    """Bring an index to the CPU if it is not there.

    Args:
        index: Any faiss index.

    Returns:
        An index on the CPU; the same object if it was there already.
    """
    faiss = load_faiss()
    gpu_index = getattr(faiss, "GpuIndex", None)
    if gpu_index is not None and isinstance(index, gpu_index):
        return faiss.index_gpu_to_cpu(index)
    return index
