"""The steps of a release: what they name exists."""

from __future__ import annotations

import re

from tests.conftest import ROOT

STEPS = (ROOT / "package" / "RELEASING.md").read_text(encoding="utf-8")


def test_every_file_and_target_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = {target for words in re.findall(r"`make ([a-z -]+)`", STEPS) for target in words.split()}
    assert {"wheel", "docs"} <= named <= targets
    files = set(re.findall(r"`((?:package|\.ci)/[\w./-]+|[A-Z]+\.md|pyproject\.toml)`", STEPS))
    assert {"pyproject.toml", "CHANGELOG.md"} <= files
    assert all((ROOT / file).exists() for file in files)
