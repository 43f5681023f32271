"""What the tests of several servers compare with."""

from __future__ import annotations

from typing import Any

import pytest

from adaptllm_chain import LocalLLM
from tests.servers.agreement import QUESTIONS, chain_of


@pytest.fixture(scope="session")
def local(embedded_llm: LocalLLM) -> list[Any]:
    """What the embedded model with the shipped adapter decides when it is loaded here."""
    return chain_of(embedded_llm).batch(QUESTIONS)
