"""The one owner of torch and transformers in this room: loads a model and its tokenizer, quietly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from adaptllm_chain.errors import InvalidInputError, missing_extra
from adaptllm_chain.quiet_loading import quiet_transformers

try:
    import torch
    import transformers
except ImportError as error:
    raise missing_extra(error.name or "torch", "local") from error

__all__ = ["load_pretrained", "torch"]


def load_pretrained(
    auto_class: str, model: str | Path, *, device: str, dtype: str, **arguments: Any
) -> tuple[Any, Any]:
    """Load a model and its tokenizer.

    Args:
        auto_class: Which of transformers' classes loads it, e.g. ``"AutoModelForSequenceClassification"``.
        model: A name on the Hugging Face Hub, or a folder.
        device: ``"auto"`` (all GPUs, else the CPU), or a device of torch.
        dtype: ``"auto"`` (as it was saved), or the name of a floating type.
        **arguments: Further ones for ``from_pretrained``.

    Returns:
        The model in evaluation mode, and the tokenizer.

    Raises:
        InvalidInputError: If the type is unknown, or nothing can be loaded.
    """
    wanted = dtype if dtype == "auto" else getattr(torch, dtype, None)
    if wanted != "auto" and not (isinstance(wanted, torch.dtype) and wanted.is_floating_point):
        raise InvalidInputError(f"dtype={dtype!r}", expected="'auto', 'float32', 'bfloat16' or 'float16'")
    try:
        with quiet_transformers("local"):
            tokenizer = transformers.AutoTokenizer.from_pretrained(str(model))
            loaded = getattr(transformers, auto_class).from_pretrained(
                str(model), dtype=wanted, device_map=device, **arguments
            )
    except (OSError, ValueError, RuntimeError) as error:
        raise InvalidInputError(
            f"no model could be loaded from {str(model)!r} on device={device!r}: {str(error).splitlines()[0]}",
            expected=f"a name on the Hugging Face Hub or a folder that {auto_class} loads, and a device that is there",
            hint=f"hf download {model} --local-dir ./model, and pass './model'",
        ) from error
    return loaded.eval(), tokenizer
