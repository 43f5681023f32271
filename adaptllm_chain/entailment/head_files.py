"""A head on disk: its weights in float16, and what they belong to."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from adaptllm_chain.entailment.cross_head import CrossHead, HeadShape
from adaptllm_chain.entailment.loading import torch
from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.journal import write_whole

WEIGHTS_FILE = "head.safetensors"
SHAPE_FILE = "head.json"


def save_head(head: CrossHead, folder: Path, *, base: str) -> None:
    """Save a head in float16, which halves the file and moves a score by about a thousandth.

    Args:
        head: The head.
        folder: Where it goes; made if it is not there.
        base: The encoder's name on the hub.
    """
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    save_file(
        {name: weight.to(torch.float16).contiguous() for name, weight in head.state_dict().items()},
        str(folder / WEIGHTS_FILE),
    )
    shape = asdict(head.shape)
    write_whole(folder / SHAPE_FILE, json.dumps({"base": base, "shape": shape}, indent=2) + "\n")


def load_head(folder: Path, *, base: str) -> CrossHead:
    """Load a head.

    Args:
        folder: Where ``save_head`` wrote it.
        base: The name of the encoder that it is to be put on.

    Returns:
        The head, in float32 and in evaluation mode.

    Raises:
        InvalidInputError: If there is none, it is damaged, or it belongs to another encoder.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    expected = f"a folder with {SHAPE_FILE} and {WEIGHTS_FILE}, as training/nli writes it"
    try:
        written = json.loads((folder / SHAPE_FILE).read_text(encoding="utf-8"))
        named = written["base"]
        shape = HeadShape(**(written["shape"] | {"layers": tuple(written["shape"]["layers"])}))
        head = CrossHead(shape)
        head.load_state_dict(load_file(str(folder / WEIGHTS_FILE)))
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
        raise InvalidInputError(
            f"no head could be loaded from {str(folder)!r}: {str(error).splitlines()[0]}", expected=expected
        ) from error
    if named != base:
        raise InvalidInputError(f"the head in {str(folder)!r} belongs to {named!r}", expected=f"one for {base!r}")
    return head.float().eval()
