"""The prompt specification that travels beside an adapter."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adaptllm_chain.errors import PromptMismatchError
from adaptllm_chain.prompts.formats import FormatName
from adaptllm_chain.prompts.templates import PromptTemplates
from adaptllm_chain.records import PromptKind

FILE_NAME = "prompt_spec.json"


class PromptSpec(BaseModel):
    """What an adapter was trained to read, saved as ``prompt_spec.json`` in its folder.

    Attributes:
        format: How instructions are wrapped.
        templates: The instruction texts.
        trained_on: The kinds of prompt among the training rows; empty for an adapter of grounded answers alone.
        grounded: The instruction of grounded answers (AGREE, arXiv:2311.09533), with ``{question}`` and
            ``{passages}``; ``None`` for an adapter that was not trained on them.
        ret_marker: How the request for retrieval is spelled.
        ret_threshold: A probability cut chosen on a dev split, if one was; the chain's adaptive
            policy uses it unless told otherwise.
        base_model: Which base the adapter belongs to, as a human reads it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: FormatName = "plain"
    templates: PromptTemplates = Field(default_factory=PromptTemplates)
    trained_on: tuple[PromptKind, ...] = ("parametric", "context")
    grounded: str | None = None
    ret_marker: str = Field(default="<RET>", min_length=2)
    ret_threshold: float | None = Field(default=None, ge=0.0, le=1.0)
    base_model: str | None = None

    @property
    def instructions(self) -> dict[str, str]:
        """The instructions among the training rows, by kind; that of grounded answers as ``"grounded"``."""
        texts: dict[str, str] = {kind: getattr(self.templates, kind) for kind in self.trained_on}
        return texts if self.grounded is None else texts | {"grounded": self.grounded}

    def save(self, folder: str | Path) -> Path:
        """Write the file into an adapter's folder.

        Args:
            folder: The adapter's folder; it must exist.

        Returns:
            The path of the file.
        """
        path = Path(folder) / FILE_NAME
        path.write_text(self.model_dump_json(indent=2) + "\n", encoding="utf-8")
        return path

    @classmethod
    def load(cls, folder: str | Path) -> PromptSpec:
        """Read the file from an adapter's folder.

        Args:
            folder: The adapter's folder.

        Returns:
            The specification.

        Raises:
            PromptMismatchError: If the file is missing or cannot be read.
        """
        path = Path(folder) / FILE_NAME
        hint = "pass prompt_spec=PromptSpec(format=…, trained_on=…) with what the adapter was trained on"
        try:
            return cls.model_validate_json(path.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise PromptMismatchError(
                f"the adapter folder {str(folder)!r} has no {FILE_NAME}, so its prompt format is unknown",
                expected=f"the {FILE_NAME} that training/sft.py writes",
                hint=hint,
            ) from error
        except (ValidationError, UnicodeDecodeError) as error:
            raise PromptMismatchError(f"{path} cannot be read: {error}", hint=hint) from error

    def check(self, kind: PromptKind) -> None:
        """Refuse a kind of prompt that the adapter never saw.

        Args:
            kind: The kind that is about to be used.

        Raises:
            PromptMismatchError: If it is not among ``trained_on``.
        """
        if kind not in self.trained_on:
            raise PromptMismatchError(
                f"this adapter was not trained on the {kind!r} prompt",
                expected=f"one of {tuple(self.instructions)}",
                hint="use another policy, an adapter trained on it, or the base model without an adapter",
            )

    def check_grounded(self, instruction: str) -> None:
        """Refuse an instruction for grounded answers that the adapter never saw.

        Args:
            instruction: The one that is about to be used, with its fields.

        Raises:
            PromptMismatchError: If it is not the one that the adapter was trained on, or there is none.
        """
        if self.grounded is None:
            raise PromptMismatchError(
                "this adapter was not trained on grounded answers",
                expected=f"one of {tuple(self.instructions)}",
                hint="an adapter of training/agree_data.py's rows, or the base model without an adapter",
            )
        if instruction != self.grounded:
            raise PromptMismatchError(
                f"the prompt that was given is not that of the model's adapter: {instruction!r}",
                expected=f"{self.grounded!r}",
                hint="leave prompt out: the chain takes the adapter's",
            )


@runtime_checkable
class HasPromptSpec(Protocol):
    """A language model that formats instructions itself and says what it was trained on."""

    @property
    def prompt_spec(self) -> PromptSpec | None:
        """What its adapter was trained on; ``None`` for a bare base model."""
        ...
