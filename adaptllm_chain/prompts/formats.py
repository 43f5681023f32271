"""Formats: how an instruction is wrapped for a model (plain, Alpaca, chat template)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from adaptllm_chain.errors import InvalidInputError

FormatName = Literal["plain", "alpaca", "chat"]

# The authors' code trains with the Alpaca template without an input part.
_ALPACA_HEAD = (
    "Below is an instruction that describes a task. "
    "Write a response that appropriately completes the request.\n\n### Instruction:\n"
)
_ALPACA_TAIL = "\n\n### Response:\n"
# Stands for the instruction while a chat template is rendered; no template changes letters and digits.
_SLOT = "ADAPTLLM5C1E0SLOT"

ChatTemplate = Callable[[Sequence[Mapping[str, str]]], str]


@dataclass(frozen=True, slots=True)
class FramedPrompt:
    """An instruction between what the format puts around it.

    The three parts stay apart so that a tokenizer can read the frame's special tokens as such
    and the instruction, which holds the user's words, as mere text.

    Attributes:
        head: What stands before the instruction.
        instruction: The instruction.
        tail: What stands after it; the completion follows directly.
        lead: What a completion starts with: a space where the prompt ends in the middle of a line.
    """

    head: str
    instruction: str
    tail: str
    lead: str = ""

    @property
    def text(self) -> str:
        """The whole prompt."""
        return f"{self.head}{self.instruction}{self.tail}"


def frame(name: FormatName, instruction: str, chat_template: ChatTemplate | None = None) -> FramedPrompt:
    """Wrap an instruction in a format.

    Args:
        name: ``"plain"`` (as it stands), ``"alpaca"`` or ``"chat"``.
        instruction: The instruction.
        chat_template: Renders messages to text with the header of the assistant's turn at the end;
            needed for ``"chat"``.

    Returns:
        The prompt in parts.

    Raises:
        InvalidInputError: For an unknown name, or ``"chat"`` without a template.
    """
    if name == "plain":
        # A space at the end of a prompt would merge with the first token of the completion.
        return FramedPrompt("", instruction.rstrip(), "", lead=" ")
    if name == "alpaca":
        return FramedPrompt(_ALPACA_HEAD, instruction, _ALPACA_TAIL)
    if name != "chat":
        raise InvalidInputError(f"unknown prompt format {name!r}", expected=f"one of {get_args(FormatName)}")
    if chat_template is None:
        raise InvalidInputError(
            "the format 'chat' was asked for, but this tokenizer has no chat template",
            expected="a tokenizer with a chat template",
            hint="use the format 'alpaca' or 'plain'",
        )
    rendered = chat_template([{"role": "user", "content": _SLOT}])
    head, slot, tail = rendered.partition(_SLOT)
    if not slot:
        raise InvalidInputError("the chat template drops the user's message", expected="a template that shows it")
    lead = "" if tail.endswith(("\n", ">", "]")) or not tail else " "
    return FramedPrompt(head, instruction.strip(), tail.rstrip(" "), lead=lead)
