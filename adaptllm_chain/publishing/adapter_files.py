"""What lies in an adapter's folder: its base, its rank, and what is more than plain LoRA. Read without torch."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adaptllm_chain.errors import AdaptLLMError, InvalidInputError, PromptMismatchError, missing_extra
from adaptllm_chain.llms.embedded import EMBEDDED, EMBEDDED_BASE_NAME, embedded_adapter, embedded_base
from adaptllm_chain.prompts.spec import FILE_NAME, PromptSpec

CONFIG_FILE = "adapter_config.json"
WEIGHTS_FILE = "adapter_model.safetensors"
# A folder that holds this brings a tokenizer of its own.
TOKENIZER_FILE = "tokenizer_config.json"
_PLAIN_LORA = (".lora_A.weight", ".lora_B.weight")
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


@dataclass(frozen=True, slots=True)
class AdapterFiles:
    """An adapter, as its files describe it.

    Attributes:
        folder: Where it lies.
        base: The base model it was trained for, as ``LocalLLM`` takes it.
        rank: The largest rank of its layers.
        extras: What it holds besides plain LoRA matrices, in words; empty for a text-mode adapter.
        scales_vary: Whether one alpha and the rank do not say how much each layer counts.
    """

    folder: Path
    base: str
    rank: int
    extras: tuple[str, ...]
    scales_vary: bool

    @property
    def base_on_hub(self) -> str | None:
        """What the base is called on the hub; ``None`` if it is a file or a folder."""
        name = EMBEDDED_BASE_NAME if self.base == EMBEDDED else self.base
        return name if is_hub_name(name) else None

    def prompt_spec(self) -> PromptSpec:
        """Read what the adapter was trained on.

        Returns:
            The specification.

        Raises:
            PromptMismatchError: If the folder has none.
        """
        if not (self.folder / FILE_NAME).is_file():
            raise PromptMismatchError(
                f"the adapter {str(self.folder)!r} has no {FILE_NAME}, so its prompt format is unknown",
                expected=f"the {FILE_NAME} that training/sft.py writes",
                hint="python -c \"from adaptllm_chain import PromptSpec; PromptSpec(format='alpaca')"
                f'.save({str(self.folder)!r})" with the format that it was trained on',
            )
        return PromptSpec.load(self.folder)


def is_hub_name(name: str) -> bool:
    """Tell a name on the hub from a place on this disk.

    Args:
        name: What an adapter calls its base.

    Returns:
        Whether it can be a name on the hub and is nothing here.
    """
    return _HUB_NAME.fullmatch(name) is not None and not name.endswith(".gguf") and not Path(name).exists()


def find_adapter(adapter: str | Path) -> Path:
    """Find an adapter's folder; one from the hub is fetched.

    Args:
        adapter: A folder, ``"embedded"``, or a name on the hub.

    Returns:
        The folder.

    Raises:
        InvalidInputError: If there is none.
    """
    folder = embedded_adapter() if adapter == EMBEDDED else Path(adapter)
    if folder.is_dir():
        return folder
    expected = f"a folder with {CONFIG_FILE} and {WEIGHTS_FILE}, 'embedded', or a name on the hub"
    if not is_hub_name(str(adapter)):
        raise InvalidInputError(f"there is no adapter {str(adapter)!r}", expected=expected)
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise missing_extra("huggingface_hub", "local") from error
    try:
        return Path(snapshot_download(str(adapter), ignore_patterns=["checkpoints/*"]))
    except (OSError, ValueError) as error:
        raise InvalidInputError(
            f"no adapter was found at {str(adapter)!r}: {str(error).splitlines()[0]}", expected=expected
        ) from error


def read_adapter(folder: Path, base: str | None = None) -> AdapterFiles:
    """Read what an adapter is.

    Args:
        folder: Its folder.
        base: Its base, where that is known better than the adapter says.

    Returns:
        What its files say.

    Raises:
        InvalidInputError: If a file is missing or cannot be read, or the adapter is no LoRA adapter.
    """
    config = _read_config(folder)
    # An adapter whose ranks differ by layer lists the others.
    ranks = [config.get("r"), *(config.get("rank_pattern") or {}).values()]
    if config.get("peft_type") != "LORA" or not all(isinstance(rank, int) and rank > 0 for rank in ranks):
        raise InvalidInputError(
            f"{str(folder / CONFIG_FILE)!r} describes {config.get('peft_type')!r} of rank {config.get('r')!r}",
            expected="a LoRA adapter",
        )
    varying = ("rank_pattern", "alpha_pattern", "use_rslora")
    return AdapterFiles(
        folder=folder,
        base=base or _base_of(config),
        rank=max(ranks),
        extras=_extras(folder, config),
        scales_vary=any(config.get(name) for name in varying),
    )


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG_FILE
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = "is not there" if isinstance(error, FileNotFoundError) else f"cannot be read: {error}"
        raise InvalidInputError(
            f"{str(path)!r} {reason}", expected="the folder of an adapter, as PEFT and training/sft.py write it"
        ) from error
    if not isinstance(config, dict):
        raise InvalidInputError(f"{str(path)!r} holds no object", expected="the configuration of an adapter")
    return config


def _base_of(config: dict[str, Any]) -> str:
    name = str(config.get("base_model_name_or_path") or "")
    if name != EMBEDDED_BASE_NAME:
        return name
    try:
        embedded_base()
    except AdaptLLMError:
        return name
    return EMBEDDED  # the very file that the adapter was trained on, and it is already here


def _extras(folder: Path, config: dict[str, Any]) -> tuple[str, ...]:
    """Say what an adapter holds besides plain LoRA matrices; the weights count, whatever the configuration says."""
    found = []
    if config.get("trainable_token_indices"):
        found.append("trained tokens (trainable_token_indices)")
    if config.get("modules_to_save"):
        found.append(f"whole layers (modules_to_save: {', '.join(config['modules_to_save'])})")
    if config.get("use_dora"):
        found.append("magnitudes (use_dora)")
    odd = [name for name in weight_names(folder / WEIGHTS_FILE) if not name.endswith(_PLAIN_LORA)]
    if odd and not found:
        found.append(f"weights that are no LoRA matrices ({odd[0]})")
    return tuple(found)


def weight_names(path: Path) -> list[str]:
    """List the tensors of a safetensors file; its header alone is read.

    Args:
        path: The file.

    Returns:
        Their names.

    Raises:
        InvalidInputError: If it is missing, cut off, or something else.
    """
    header: dict[str, Any] = {}
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            # Not read at all where the length cannot be one: a file of another kind has any number here.
            header = json.loads(file.read(length)) if length < size else {}
        whole = size == 8 + length + _bytes_of(header)
    except FileNotFoundError as error:
        raise InvalidInputError(f"there is no file {str(path)!r}", expected="an adapter's weights") from error
    except ValueError:
        whole = False
    if not whole:
        raise InvalidInputError(f"{str(path)!r} is no whole safetensors file", expected="an adapter's weights")
    return [name for name in header if name != "__metadata__"]


def _bytes_of(header: dict[str, Any]) -> int:
    try:
        return int(max(about["data_offsets"][1] for name, about in header.items() if name != "__metadata__"))
    except (AttributeError, KeyError, TypeError, IndexError) as error:
        raise ValueError("no header of safetensors") from error
