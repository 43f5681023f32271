"""What lies in an adapter's folder: the weights, how to prompt it, what it was trained with, and its checkpoints."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import yaml

from adaptllm_chain.agree.prompts import GroundedPrompt
from adaptllm_chain.errors import JournalError
from adaptllm_chain.llms.embedded import EMBEDDED, EMBEDDED_BASE_NAME
from adaptllm_chain.prompts import PromptSpec, PromptTemplates
from adaptllm_chain.ret.marker import RET
from training.recipe import Recipe, RowKind


def check_recipe(path: Path, recipe: Mapping[str, Any], *, yet_unknown: str | None = None) -> None:
    """Make sure that an output folder that is in use belongs to the same recipe.

    Args:
        path: Its recipe file.
        recipe: The recipe of this run.
        yet_unknown: A field that is compared later.

    Raises:
        JournalError: If it belongs to another recipe.
    """
    if not path.exists():
        if (card := path.with_name("README.md")).exists():
            raise JournalError(
                f"{card} is there, but no {path.name}: the folder is used for something else",
                expected="a new folder, or one of an earlier run",
                hint="--out another-folder",
            )
        return
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    found = found if isinstance(found, dict) else {}
    changed = sorted(key for key in {*found, *recipe} if key != yet_unknown and found.get(key) != recipe.get(key))
    if changed:
        differences = "; ".join(f"{key}: {found.get(key)!r} -> {recipe.get(key)!r}" for key in changed)
        raise JournalError(
            f"{path.parent} belongs to a run with another recipe ({differences})",
            expected="the same recipe as the run that is resumed",
            hint="--out another-folder, or delete this one to start over",
        )


def last_checkpoint(folder: Path) -> str | None:
    """Find the newest checkpoint that was written to its end.

    Args:
        folder: The trainer's output folder.

    Returns:
        Its path; ``None`` if there is none. The trainer writes its state last, so one that lacks it was
        cut off by a kill.
    """
    needed = ("adapter_model.safetensors", "scheduler.pt", "trainer_state.json")
    optimizers = ("optimizer.pt", "optimizer.bin")  # the second under FSDP
    found = sorted(folder.glob("checkpoint-*"), key=lambda path: int(path.name.rsplit("-", 1)[1]), reverse=True)
    for path in found:
        whole = all((path / name).is_file() for name in needed) and any((path / name).is_file() for name in optimizers)
        if whole and _is_json(path / "trainer_state.json"):
            return str(path)
    return None


def _is_json(path: Path) -> bool:
    try:
        json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return False
    return True


def save_adapter(
    model: Any, recipe: Recipe, trained_on: tuple[RowKind, ...], *, state_dict: Mapping[str, Any] | None = None
) -> PromptSpec:
    """Write what an adapter needs to be used: its weights and its prompt specification.

    Args:
        model: The trained PEFT model.
        recipe: What it was trained with.
        trained_on: The kinds of row that it was trained on.
        state_dict: Its weights, where the model itself holds but a piece of them (FSDP).

    Returns:
        The specification, as saved.
    """
    base_name = EMBEDDED_BASE_NAME if recipe.base == EMBEDDED else recipe.base
    model.peft_config["default"].base_model_name_or_path = base_name
    model.save_pretrained(str(recipe.out), save_embedding_layers=False, state_dict=state_dict)
    spec = PromptSpec(
        format=recipe.format,
        templates=PromptTemplates(),
        trained_on=tuple(kind for kind in trained_on if kind != "grounded"),
        grounded=GroundedPrompt().template if "grounded" in trained_on else None,
        ret_marker=RET,
        base_model=base_name,
    )
    spec.save(recipe.out)
    return spec


def versions() -> dict[str, str]:
    """Name what an adapter was made with.

    Returns:
        The versions of Python and of the libraries; ours is left out where it is not installed.
    """
    found = {"python": platform.python_version()}
    for name in ("adaptllm-chain", "torch", "transformers", "peft", "trl", "datasets"):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found
