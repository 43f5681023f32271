"""The notebooks run, and what they hold is what running them gives."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import ROOT

nbformat = pytest.importorskip("nbformat", reason="the test extra brings nbclient and nbformat")
nbclient = pytest.importorskip("nbclient", reason="the test extra brings nbclient and nbformat")

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def texts(notebook: Any) -> list[str]:
    """The Markdown that code cells show; pictures are left out, since fonts differ between machines."""
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    return [output["data"]["text/markdown"] for output in outputs if "text/markdown" in output.get("data", {})]


def test_there_is_one() -> None:
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of jupyter's own packages
def test_running_it_again_gives_what_it_holds(path: Any) -> None:
    stored = nbformat.read(path, as_version=4)
    again = nbformat.from_dict(stored)
    nbclient.NotebookClient(
        again, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}
    ).execute()
    assert texts(again) == texts(nbformat.read(path, as_version=4))
    assert texts(again), "it shows tables"
