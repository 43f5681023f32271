"""Where the environments of servers are that cannot live in ours; ``make servers`` makes them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.conftest import ROOT


def python_of(name: str) -> Path | None:
    """Find the Python of a server's environment.

    Args:
        name: ``"llamacpp"`` or ``"vllm"``: the folder is ``.venv-NAME`` in the repository, or what the variable
            ``ADAPTLLM_NAME_VENV`` says.
    """
    folder = Path(os.environ.get(f"ADAPTLLM_{name.upper()}_VENV", ROOT / f".venv-{name}"))
    python = folder / "bin" / "python"
    return python if python.is_file() else None


def needs(name: str) -> pytest.MarkDecorator:
    """Skip tests where a server's environment is not there."""
    return pytest.mark.skipif(
        python_of(name) is None,
        reason=f"no environment .venv-{name} (make servers makes it) and no ADAPTLLM_{name.upper()}_VENV",
    )
