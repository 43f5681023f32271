"""Scripts: what a fake model says to which prompt."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Reply:
    """One scripted output.

    Attributes:
        text: The whole output.
        chunks: How it is streamed; by default word by word. Joined, the chunks are the text.
        info: What the model reports beside it, such as ``{"ret_probability": 0.9}`` or ``{"logprobs": …}``.
    """

    text: str
    chunks: tuple[str, ...] = ()
    info: Mapping[str, Any] = field(default_factory=dict)

    @property
    def pieces(self) -> tuple[str, ...]:
        """The chunks in which it is streamed; at least one."""
        if self.chunks:
            return self.chunks
        words = self.text.split(" ")
        return (*(f"{word} " for word in words[:-1]), words[-1])


Script: TypeAlias = Callable[[str], str | Reply] | Mapping[str, str | Reply]


def say(script: Script, prompt: str) -> Reply:
    """Look up what a script says to a prompt.

    Args:
        script: A function of the prompt, or a mapping from parts of prompts to outputs, of which
            the first that the prompt contains is taken.
        prompt: The prompt.

    Returns:
        The reply.

    Raises:
        LookupError: If no part of a mapping stands in the prompt.
    """
    if isinstance(script, Mapping):
        for part, reply in script.items():
            if part in prompt:
                return reply if isinstance(reply, Reply) else Reply(reply)
        raise LookupError(f"the script has nothing to say to {prompt!r}")
    reply = script(prompt)
    return reply if isinstance(reply, Reply) else Reply(reply)
