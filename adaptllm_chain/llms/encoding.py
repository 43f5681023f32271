"""From instructions to token ids, and back to text: what the tokenizer's traps demand."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.prompts import FormatName, FramedPrompt, frame


@dataclass(frozen=True, slots=True)
class EncodedPrompt:
    """A prompt as token ids.

    Attributes:
        ids: The prompt, beginning-of-text token included where the model has one.
        marker_ids: The tokens by which ``<RET>`` would follow this very prompt; how it is cut into
            pieces depends on what stands before (three pieces for SmolLM2, four for Llama-2).
    """

    ids: list[int]
    marker_ids: tuple[int, ...]


class PromptEncoder:
    """Frames instructions in a format and turns them into token ids.

    Args:
        tokenizer: A transformers tokenizer.
        format_name: The format that the adapter was trained on.
        marker: How a request for retrieval is spelled.
    """

    def __init__(self, tokenizer: Any, format_name: FormatName, marker: str) -> None:
        self.tokenizer = tokenizer
        self.format_name = format_name
        self.marker = marker
        # Reading a user's words as text flips a switch inside the tokenizer for the time of the call.
        self._lock = threading.Lock()

    def frame(self, instruction: str) -> FramedPrompt:
        """Wrap an instruction in the format.

        Args:
            instruction: The instruction.

        Returns:
            The prompt in parts.
        """
        has_template = self.format_name == "chat" and self.tokenizer.chat_template is not None
        return frame(self.format_name, instruction, self._apply_template if has_template else None)

    def _apply_template(self, messages: Sequence[Any]) -> str:
        rendered = self.tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=True)
        # Encoding adds the beginning-of-text token; a template that writes it too would double it.
        bos = self.tokenizer.bos_token
        if bos and self._encode("")[:1] == [self.tokenizer.bos_token_id]:
            rendered = rendered.removeprefix(bos)
        return str(rendered)

    def encode(self, instruction: str) -> EncodedPrompt:
        """Frame and tokenize an instruction.

        Args:
            instruction: The instruction. Special tokens that a user typed in it are read as text.

        Returns:
            The token ids of the prompt, and those of the marker after it.

        Raises:
            InvalidInputError: If the instruction is empty or no text.
        """
        if not isinstance(instruction, str) or not instruction.strip():
            raise InvalidInputError(f"the prompt is empty: {instruction!r}", expected="a text")
        try:
            instruction.encode()
        except UnicodeEncodeError as error:
            raise InvalidInputError(f"the prompt holds half a character: {error}", expected="a text") from error
        with self._lock:
            prompt = self.frame(instruction)
            ids = self._encode_parts(prompt)
            # Tokenized together, as in training: pieces may merge across the border.
            whole = self._encode_parts(
                FramedPrompt(prompt.head, prompt.instruction, f"{prompt.tail}{prompt.lead}{self.marker}")
            )
            if whole[: len(ids)] == ids:
                return EncodedPrompt(ids, tuple(whole[len(ids) :]))
            alone = self.tokenizer(prompt.lead + self.marker, add_special_tokens=False)
            return EncodedPrompt(ids, tuple(alone.input_ids))

    def _encode_parts(self, prompt: FramedPrompt) -> list[int]:
        specials = self.tokenizer.all_special_tokens
        if not any(special in prompt.instruction for special in specials):
            return self._encode(prompt.text)
        return [
            *self._encode(prompt.head),
            *self.tokenizer(prompt.instruction, add_special_tokens=False, split_special_tokens=True).input_ids,
            *self.tokenizer(prompt.tail, add_special_tokens=False).input_ids,
        ]

    def _encode(self, text: str) -> list[int]:
        return list(self.tokenizer(text).input_ids)

    def decode(self, ids: Sequence[int]) -> str:
        """Turn generated ids into text.

        A marker that is a token of its own is kept even if it counts as special, since
        ``skip_special_tokens`` would drop it and an empty text would remain.

        Args:
            ids: Generated token ids, padding and end token included.

        Returns:
            The text.
        """
        marker_id = self.tokenizer.convert_tokens_to_ids(self.marker)
        if marker_id is None or marker_id == self.tokenizer.unk_token_id or marker_id not in ids:
            return str(self.tokenizer.decode(ids, skip_special_tokens=True))
        at = list(ids).index(marker_id)
        before = self.tokenizer.decode(ids[:at], skip_special_tokens=True)
        return f"{before}{self.marker}{self.decode(list(ids[at + 1 :]))}"


def buckets(lengths: Sequence[int], size: int) -> list[list[int]]:
    """Group rows of similar length, so that a batch holds little padding.

    Args:
        lengths: The length of each row, in tokens.
        size: Rows a batch.

    Returns:
        Indices of rows, batch by batch, longest batch first: a run that does not fit into
        memory fails at once rather than at its end.
    """
    order = sorted(range(len(lengths)), key=lambda index: (-lengths[index], index))
    return [order[start : start + size] for start in range(0, len(order), size)]


def cut_at(text: str, stops: Sequence[str]) -> str:
    """Cut a text before the first of several stop strings.

    Args:
        text: The text.
        stops: The stop strings.

    Returns:
        What stands before the earliest one; the whole text if none occurs.
    """
    positions = [at for at in (text.find(stop) for stop in stops if stop) if at >= 0]
    return text[: min(positions)] if positions else text
