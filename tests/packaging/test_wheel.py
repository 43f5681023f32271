"""What goes out: the wheel and the source archive.

By default both are built in a temporary folder. ``make wheel`` sets ``ADAPTLLM_DIST`` to the folder of those that are
to be released, so that the very files are checked.
"""

from __future__ import annotations

import email.parser
import os
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.metadata import Metadata

from tests.conftest import ROOT
from tests.packaging.project import EXTRAS, PROJECT

VERSION = PROJECT["version"]
STEM = f"adaptllm_chain-{VERSION}"
MEGABYTE = 1_000_000
# What a user would miss first, though no import fails without it.
CARRIED = (
    "py.typed",
    "llms/adapters/smollm2-nq/adapter_model.safetensors",
    "llms/adapters/smollm2-nq/prompt_spec.json",
    "reporting/templates/page.html.j2",
    "demo/questions.txt",
    "demo/corpus/falkirk-wheel.md",
    "serve/page/index.html",
)


def build(source: Path, out: Path, *targets: str) -> None:
    pytest.importorskip("hatchling", reason="the test extra brings hatchling")
    chosen = [option for target in targets for option in ("-t", target)]
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(out), *chosen]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@dataclass(frozen=True)
class Archives:
    wheel: zipfile.ZipFile
    sdist: tarfile.TarFile

    @property
    def files(self) -> dict[str, bytes]:
        """The wheel's files by name."""
        return {name: self.wheel.read(name) for name in self.wheel.namelist()}

    @property
    def metadata(self) -> bytes:
        return self.wheel.read(f"{STEM}.dist-info/METADATA")


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Archives:
    given = os.environ.get("ADAPTLLM_DIST")
    folder = Path(given) if given else tmp_path_factory.mktemp("dist")
    if not given:
        build(ROOT, folder, "wheel", "sdist")
    return Archives(zipfile.ZipFile(folder / f"{STEM}-py3-none-any.whl"), tarfile.open(folder / f"{STEM}.tar.gz"))


def source_files(*folders: str) -> set[str]:
    files = (path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file())
    return {str(path.relative_to(ROOT)) for path in files if "__pycache__" not in path.parts}


def test_the_wheel_holds_the_package_and_nothing_else(archives: Archives) -> None:
    names = {name for name in archives.files if not name.startswith(f"{STEM}.dist-info/")}
    assert names == source_files("adaptllm_chain")
    assert {f"adaptllm_chain/{name}" for name in CARRIED} <= names
    assert sum(map(len, archives.files.values())) < 10 * MEGABYTE


def test_the_sdist_holds_what_a_packager_needs(archives: Archives) -> None:
    names = {name.removeprefix(f"{STEM}/") for name in archives.sdist.getnames()}
    assert source_files("adaptllm_chain", "training", "tests") <= names
    assert {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "PKG-INFO"} <= names
    # Neither what was measured here nor what somebody else wrote.
    assert not {name for name in names if name.startswith(("runs/", "shared/", "dist/", ".venv/"))}
    sizes = {member.name: member.size for member in archives.sdist.getmembers()}
    assert sum(sizes.values()) < 20 * MEGABYTE, sorted(sizes, key=sizes.__getitem__)[-5:]


def test_the_sdist_builds_the_same_wheel(archives: Archives, tmp_path: Path) -> None:
    archives.sdist.extractall(tmp_path, filter="data")
    build(tmp_path / STEM, tmp_path / "dist", "wheel")
    again = Archives(zipfile.ZipFile(tmp_path / "dist" / f"{STEM}-py3-none-any.whl"), archives.sdist)
    assert again.files == archives.files


def test_the_metadata_is_valid(archives: Archives) -> None:
    metadata = Metadata.from_email(archives.metadata, validate=True)
    assert (metadata.name, str(metadata.version)) == (PROJECT["name"], VERSION)
    assert (metadata.license_expression, metadata.license_files) == ("Apache-2.0", ["LICENSE"])
    assert str(metadata.requires_python) == PROJECT["requires-python"]
    assert set(metadata.provides_extra or ()) == set(EXTRAS)
    assert metadata.description_content_type == "text/markdown"
    body = email.parser.BytesParser().parsebytes(archives.metadata).get_payload(decode=True)
    assert body == (ROOT / "README.md").read_bytes()
    assert metadata.summary == PROJECT["description"]
    assert archives.files[f"{STEM}.dist-info/licenses/LICENSE"] == (ROOT / "LICENSE").read_bytes()


def test_the_command_is_registered(archives: Archives) -> None:
    entry_points = archives.files[f"{STEM}.dist-info/entry_points.txt"].decode()
    assert entry_points.split() == ["[console_scripts]", "adaptllm", "=", "adaptllm_chain.cli:main"]
