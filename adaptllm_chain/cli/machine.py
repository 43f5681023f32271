"""What this machine can do: devices, the build of faiss, and whether 8 and 4 bits work."""

from __future__ import annotations

import os
import platform
import sys
from typing import Any

_GIB = 1 << 30


def system() -> dict[str, Any]:
    """Describe Python and the machine.

    Returns:
        ``python``, ``executable``, ``platform`` and ``cpu_count``.
    """
    return {
        "python": platform.python_version(),
        "executable": sys.executable,
        "platform": platform.platform(),
        "cpu_count": os.cpu_count(),
    }


def torch_devices() -> dict[str, Any]:
    """Ask torch for its devices.

    Returns:
        ``cuda`` (name and memory of each device), ``mps``, ``threads``, and ``problem`` if torch cannot be used.
    """
    try:
        import torch
    except Exception as error:  # a broken build raises more than ImportError
        return {"cuda": [], "mps": False, "threads": None, "problem": _one_line(error)}
    cuda = []
    for number in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
        about = torch.cuda.get_device_properties(number)
        cuda.append({"name": about.name, "memory_gib": round(about.total_memory / _GIB, 1)})
    return {
        "cuda": cuda,
        "mps": bool(torch.backends.mps.is_available()),
        "threads": torch.get_num_threads(),
        "problem": None,
    }


def faiss_build() -> dict[str, Any]:
    """Ask faiss which build it is.

    Returns:
        ``version``, ``build`` (``"cpu"``, ``"gpu"`` or ``None``), ``gpus``, and ``problem`` if it cannot be used.
    """
    try:
        import faiss
    except Exception as error:  # a build for another numpy raises more than ImportError
        return {"version": None, "build": None, "gpus": 0, "problem": _one_line(error)}
    on_gpu = hasattr(faiss, "StandardGpuResources")
    return {
        "version": faiss.__version__,
        "build": "gpu" if on_gpu else "cpu",
        "gpus": int(faiss.get_num_gpus()) if on_gpu else 0,
        "problem": None,
    }


def low_bits(devices: dict[str, Any], bitsandbytes: str | None) -> dict[str, Any]:
    """Say whether a model can be loaded in 8 or 4 bits.

    Args:
        devices: What ``torch_devices`` returned.
        bitsandbytes: The version of bitsandbytes, if it is installed.

    Returns:
        ``works``, and ``reason`` if it does not.
    """
    if not devices["cuda"]:
        return {"works": False, "reason": "no NVIDIA GPU: use a .gguf file for a smaller model"}
    if bitsandbytes is None:
        return {"works": False, "reason": "bitsandbytes is not installed: pip install 'adaptllm-chain[gpu]'"}
    return {"works": True, "reason": None}


def _one_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]
