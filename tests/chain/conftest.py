"""Every way of running a chain, as a fixture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.chain.scenes import WAYS


@pytest.fixture(params=WAYS)
def ask(request: pytest.FixtureRequest) -> Callable[..., dict[str, Any]]:
    return WAYS[request.param]
