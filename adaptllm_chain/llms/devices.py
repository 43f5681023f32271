"""Where a model runs, in which type, and whether bitsandbytes can quantise it there."""

from __future__ import annotations

import os
from typing import Any, Literal

from adaptllm_chain.errors import InvalidInputError, UnsupportedHardwareError, missing_extra

try:
    import torch
    import transformers
except ImportError as error:
    raise missing_extra(error.name or "torch", "local") from error

LoadIn = Literal["8bit", "4bit"]


def pick_device(device: str) -> str:
    """Resolve ``"auto"``.

    Args:
        device: ``"auto"``, or whatever torch takes as a device.

    Returns:
        For ``"auto"``: ``"cuda"``, else ``"mps"``, else ``"cpu"``, whichever exists first. A process that
        ``accelerate launch`` or ``torchrun`` started gets the GPU that is its own, and none with ``--cpu``.
    """
    if device != "auto":
        try:
            torch.device(device)
        except RuntimeError as error:
            raise InvalidInputError(
                f"device={device!r}: {str(error).splitlines()[0]}", expected="'auto', 'cpu', 'cuda', 'cuda:1' or 'mps'"
            ) from error
        return device
    if os.environ.get("ACCELERATE_USE_CPU", "false").lower() in {"1", "true"}:
        return "cpu"
    if torch.cuda.is_available():
        rank = os.environ.get("LOCAL_RANK")
        return "cuda" if rank is None else f"cuda:{rank}"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def pick_dtype(dtype: str | torch.dtype, device: str) -> torch.dtype:
    """Resolve ``"auto"`` and names.

    Args:
        dtype: ``"auto"``, a name such as ``"bfloat16"``, or a dtype.
        device: A resolved device.

    Returns:
        For ``"auto"``: bfloat16 on a GPU that has it, float16 on another GPU, float32 elsewhere, where
        a batch gives the same text as single questions.

    Raises:
        InvalidInputError: If the name is not a floating dtype of torch.
    """
    if isinstance(dtype, torch.dtype):
        return dtype
    if dtype == "auto":
        if not device.startswith("cuda"):
            return torch.float32
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
    found = getattr(torch, dtype, None)
    if not (isinstance(found, torch.dtype) and found.is_floating_point):
        raise InvalidInputError(
            f"unknown dtype {dtype!r}", expected="'auto', 'float32', 'bfloat16' or 'float16'", hint="dtype='auto'"
        )
    return found


def pick_training_dtype(dtype: str | torch.dtype, device: str) -> torch.dtype:
    """Resolve ``"auto"`` and names for training, where speed counts and a batch need not equal single questions.

    Args:
        dtype: ``"auto"``, a name such as ``"bfloat16"``, or a dtype.
        device: A resolved device.

    Returns:
        As ``pick_dtype``, but for ``"auto"`` bfloat16 on a CPU that computes in it, where it is twice as fast as
        float32. On any other CPU bfloat16 is emulated, and was nine times slower where we measured it.
    """
    if dtype == "auto" and device == "cpu" and hasattr(torch.cpu, "get_capabilities"):
        can = torch.cpu.get_capabilities()
        if can.get("avx512_bf16") or can.get("amx_bf16"):
            return torch.bfloat16
    return pick_dtype(dtype, device)


def check_load_in(load_in: LoadIn, device: str) -> None:
    """Make sure that a base can be quantised on a device, before anything is loaded.

    Args:
        load_in: ``"8bit"`` or ``"4bit"``.
        device: A resolved device.

    Raises:
        UnsupportedHardwareError: If the device is no NVIDIA GPU.
        InvalidInputError: If it is neither 8 nor 4 bits.
        MissingExtraError: If bitsandbytes is not installed.
    """
    if load_in not in {"8bit", "4bit"}:
        raise InvalidInputError(f"load_in={load_in!r} is unknown", expected="'8bit', '4bit' or None")
    if not device.startswith("cuda"):
        # On a CPU bitsandbytes is slower than full precision, and repacks weights so that training stops learning.
        raise UnsupportedHardwareError(
            f"load_in={load_in!r} was asked for on {device!r}",
            expected="an NVIDIA GPU with bitsandbytes",
            hint="load_in=None (full precision), or a GGUF file as the base model",
        )
    try:
        import bitsandbytes  # noqa: F401
    except ImportError as error:
        raise missing_extra("bitsandbytes", "gpu") from error


def quantisation(load_in: LoadIn, device: str, dtype: torch.dtype) -> dict[str, Any]:
    """Write the choice of bits as arguments of ``from_pretrained``.

    Args:
        load_in: ``"8bit"`` or ``"4bit"``, checked.
        device: A resolved device.
        dtype: What the layers compute in.

    Returns:
        Keyword arguments.
    """
    config = transformers.BitsAndBytesConfig(
        load_in_8bit=load_in == "8bit",
        load_in_4bit=load_in == "4bit",
        bnb_4bit_quant_type="nf4",  # made for weights, which are normally distributed; the library's default is not
        bnb_4bit_compute_dtype=dtype,
    )
    return {"quantization_config": config, "device_map": {"": device}}
