"""How vLLM serves an adapter: a command, for adapters that need no conversion at all."""

from __future__ import annotations

import shlex

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.publishing.adapter_files import AdapterFiles

# vLLM takes these as --max-lora-rank, and reserves memory for the largest; its default is 16.
_RANKS = (8, 16, 32, 64)


def serve_command(files: AdapterFiles, name: str) -> str:
    """Write the command by which vLLM serves a base with an adapter.

    Args:
        files: The adapter.
        name: What the adapter is called in requests (their field ``model``).

    Returns:
        A command for a shell.

    Raises:
        InvalidInputError: If vLLM refuses such an adapter, or cannot load its base.
    """
    merged = "--to merged --out DIR, then: vllm serve DIR"
    if files.extras:
        raise InvalidInputError(
            f"the adapter {str(files.folder)!r} holds {', '.join(files.extras)}, which vLLM refuses to load",
            expected="plain LoRA, with <RET> as plain text",
            hint=merged,
        )
    if files.rank > _RANKS[-1]:
        raise InvalidInputError(
            f"the adapter {str(files.folder)!r} has rank {files.rank}", expected=f"{_RANKS[-1]} or less", hint=merged
        )
    base = files.base_on_hub or files.base
    if not base or base.endswith(".gguf"):
        raise InvalidInputError(
            f"the base {base!r} is not one that vLLM serves with an adapter",
            expected="a folder, or a name on the hub",
            hint=f"--model with either; or {merged}",
        )
    rank = next(rank for rank in _RANKS if rank >= files.rank)
    return shlex.join(
        [
            "vllm",
            "serve",
            base,
            "--enable-lora",
            "--lora-modules",
            f"{name}={files.folder}",
            "--max-lora-rank",
            str(rank),
        ]
    )
