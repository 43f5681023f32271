"""What pyproject.toml declares, read once for all tests of the packaging."""

from __future__ import annotations

import re
import tomllib

from packaging.requirements import Requirement

from tests.conftest import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
# For those who work on the project itself, from a clone.
USERS_EXTRAS = sorted(set(EXTRAS) - {"test", "check"})


def named_extras(text: str) -> list[str]:
    """The extras in ``.[a,b]`` or ``adaptllm-chain[a,b]``."""
    inside = re.search(r"\[([a-z,-]+)\]", text)
    assert inside, text
    return inside[1].split(",")


def packages_of(*extras: str) -> set[str]:
    """The packages that extras ask for, with those of the extras in them."""
    found = set()
    for extra in extras:
        for need in map(Requirement, EXTRAS[extra]):
            inner = packages_of(*need.extras) if need.name == PROJECT["name"] else {need.name}
            found |= inner
    return found
