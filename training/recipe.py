"""A recipe: everything that an adapter depends on, read from YAML and the command line."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_origin

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.prompts import FormatName
from adaptllm_chain.records import PromptKind
from training.contradictions import refuse_contradictions

# What a row teaches: one of the chain's prompts, or an answer with citations (AGREE, arXiv:2311.09533).
RowKind = Literal[PromptKind, "grounded"]


class Recipe(BaseModel):
    """Everything an adapter depends on. The defaults are the paper's and its authors' (PAPERS.md says which).

    Attributes:
        base: The base model: ``"embedded"``, a folder, a GGUF file, or a hub name.
        rows: The file or files that ``training/algorithm1.py`` or ``training/agree_data.py`` wrote.
        out: The output folder.
        format: How instructions are wrapped; the authors use Alpaca.
        kinds: Which kinds of row to train on.
        known_share: Share that the known questions are brought to among the parametric rows, by
            repeating them; ``None`` leaves the rows as they are.
        max_rows: The most rows of a kind to train on, drawn at random before balancing; all of those not named.
        dev_fraction: Share of the questions kept out for the dev figures.
        ret_token: How ``<RET>`` is taught: ``"text"``, in the tokens that the base has for it (the paper's way; the
            adapter works wherever LoRA does), or ``"added"``, as one new token whose input and output rows are trained.
        epochs: Passes over the rows.
        max_steps: Optimizer steps to stop after; where it is given, it wins over ``epochs``.
        learning_rate: Peak learning rate.
        schedule: ``"constant"`` as in the paper, or one that decays.
        warmup_steps: Steps of linear warm-up.
        batch_size: Rows an optimizer step, over all processes.
        micro_batch_size: Rows a forward pass of one process; the rest is accumulated.
        max_length: Tokens a row; longer rows are left out and counted, never cut.
        lora_r: Rank.
        lora_alpha: Scale.
        lora_dropout: Dropout on the adapter's input.
        lora_targets: Which linear layers get an adapter.
        dtype: Type of the base's weights while training; ``"auto"`` is bfloat16 where the hardware computes in it.
        device: ``"auto"``, or a torch device.
        load_in: Quantise the base with bitsandbytes; a GPU only.
        gradient_checkpointing: Trade time for memory.
        save_steps: Optimizer steps between checkpoints.
        seed: Of the split, the order and the adapter's initial weights.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    base: str = "meta-llama/Llama-2-7b-chat-hf"
    rows: tuple[Path, ...] = Field(min_length=1)
    out: Path
    format: FormatName = "alpaca"
    kinds: tuple[RowKind, ...] = Field(default=("parametric", "context"), min_length=1)
    known_share: float | None = Field(default=None, gt=0.0, lt=1.0)
    max_rows: dict[RowKind, Annotated[int, Field(ge=1)]] = Field(default_factory=dict)
    dev_fraction: float = Field(default=0.1, ge=0.0, lt=1.0)
    ret_token: Literal["text", "added"] = "text"  # noqa: S105 - no password
    epochs: float = Field(default=3, gt=0, allow_inf_nan=False)
    max_steps: int | None = Field(default=None, ge=1)
    learning_rate: float = Field(default=3e-4, gt=0, allow_inf_nan=False)
    schedule: Literal["constant", "constant_with_warmup", "linear", "cosine"] = "constant"
    warmup_steps: int = Field(default=0, ge=0)
    batch_size: int = Field(default=128, ge=1)
    micro_batch_size: int = Field(default=4, ge=1)
    max_length: int = Field(default=512, ge=8)
    lora_r: int = Field(default=8, ge=1)
    lora_alpha: int = Field(default=16, ge=1)
    lora_dropout: float = Field(default=0.05, ge=0.0, lt=1.0)
    lora_targets: tuple[str, ...] = Field(default=("q_proj", "v_proj"), min_length=1)
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    device: str = "auto"
    load_in: Literal["8bit", "4bit"] | None = None
    gradient_checkpointing: bool = False
    save_steps: int = Field(default=25, ge=1)
    seed: int = Field(default=0, ge=0)

    @field_validator("rows", mode="before")
    @classmethod
    def _one_or_several(cls, rows: Any) -> Any:
        return [rows] if isinstance(rows, str | Path) else rows

    @property
    def adds_token(self) -> bool:
        """Whether ``<RET>`` becomes a token of its own."""
        return self.ret_token == "added"  # noqa: S105 - no password

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        refuse_contradictions(self)
        return self

    @classmethod
    def load(cls, path: Path, overrides: Mapping[str, Any]) -> Recipe:
        """Read a recipe file.

        Args:
            path: A YAML file.
            overrides: Fields that replace those of the file.

        Returns:
            The recipe.

        Raises:
            InvalidInputError: If the file is missing, a field is unknown or out of range, or two contradict each other.
        """
        try:
            content = yaml.safe_load(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise InvalidInputError(f"cannot read the recipe {str(path)!r}: {error}", expected="a YAML file") from error
        if not isinstance(content, dict):
            raise InvalidInputError(f"{str(path)!r} holds {type(content).__name__}", expected="fields of a recipe")
        try:
            return cls.model_validate({**content, **overrides})
        except ValidationError as error:
            problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
            raise InvalidInputError(
                f"{str(path)!r}: {problems}",
                expected=f"these fields: {', '.join(cls.model_fields)}",
                hint="python training/sft.py --help",
            ) from error


def make_parser() -> argparse.ArgumentParser:
    """Describe the command line: a recipe file, and a flag for each of its fields.

    Returns:
        The parser.
    """
    parser = argparse.ArgumentParser(
        prog="training/sft.py",
        description="Train a LoRA adapter on the rows of Algorithm 1 or AGREE.",
        allow_abbrev=False,
    )
    parser.add_argument("--config", required=True, type=Path, metavar="FILE", help="a recipe (YAML)")
    for name in Recipe.model_fields:
        parser.add_argument(f"--{name.replace('_', '-')}", metavar="VALUE", help=f"replaces {name} of the recipe")
    return parser


def overrides(arguments: argparse.Namespace) -> Iterator[tuple[str, Any]]:
    """Read the flags that replace fields of the recipe.

    Args:
        arguments: What ``make_parser`` parses.

    Yields:
        Names and values of the fields that were given.

    Raises:
        InvalidInputError: If a value is no YAML.
    """
    for name, field in Recipe.model_fields.items():
        text = getattr(arguments, name)
        if text is not None:
            try:
                value = yaml.safe_load(text)
            except yaml.YAMLError as error:
                raise InvalidInputError(f"--{name.replace('_', '-')} {text!r} cannot be read: {error}") from error
            if field.annotation is Path:
                value = text
            elif get_origin(field.annotation) is tuple and isinstance(value, str):
                value = [part.strip() for part in value.split(",")]
            # YAML 1.1 reads 3e-4 as a text; pydantic turns it into the number that is meant.
            yield name, value
