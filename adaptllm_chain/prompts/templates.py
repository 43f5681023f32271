"""The three prompts of "When to Retrieve" (arXiv:2404.19705), word for word, and their like for untrained models."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Self

from langchain_core.documents import Document
from pydantic import BaseModel, ConfigDict, field_validator

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.prompts.few_shot import EXAMPLES, FROM_MEMORY, FROM_PASSAGE, Example, write_parametric
from adaptllm_chain.records import PromptKind

PARAMETRIC = "Answer the question Q. If you need help answer <RET> to get the context. Q: {question}"
CONTEXT = "Answer the question Q given the context C. Q: {question}, C: {context}"
CLOSED_BOOK = "Answer the question Q. Q: {question}"

_FIELDS: dict[str, tuple[str, ...]] = {
    "parametric": ("{question}",),
    "context": ("{question}", "{context}"),
    "closed_book": ("{question}",),
}


class PromptTemplates(BaseModel):
    """The instruction texts of a model; the defaults are the paper's.

    Attributes:
        parametric: Asks for an answer or ``<RET>`` (section 3 of the paper).
        context: Asks for an answer given a passage.
        closed_book: Asks for an answer from memory, as the never-retrieve model is trained.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    parametric: str = PARAMETRIC
    context: str = CONTEXT
    closed_book: str = CLOSED_BOOK

    @field_validator("parametric", "context", "closed_book")
    @classmethod
    def _has_fields(cls, template: str, info: object) -> str:
        name = getattr(info, "field_name", "")
        missing = [part for part in _FIELDS[name] if part not in template]
        if missing:
            raise InvalidInputError(
                f"the {name} template {template!r} lacks {', '.join(missing)}",
                expected=f"a text that holds {' and '.join(_FIELDS[name])} literally",
            )
        return template

    @classmethod
    def few_shot(cls, examples: Sequence[Example] = EXAMPLES) -> Self:
        """Make prompts for a model that was never trained to say ``<RET>``, such as one behind an API.

        The model is told to say it where it is not certain, and shown questions with and without it. This is a
        way to try adaptive retrieval in minutes. It is not the paper's method, which trains the model because
        an untuned one does not know well what it does not know; measure it on questions of your own before you
        rely on it. A model with an adapter that was trained on other prompts is refused together with these. A
        base model that was never tuned to follow instructions goes on with questions of its own after the
        answer: give the chain a line break as its ``stop``.

        Args:
            examples: Pairs of a question and the reply to it, in the order in which they are shown; the reply
                is ``"<RET>"`` where the passage is to be looked up. Examples from your own field do best.

        Returns:
            The prompts.

        Raises:
            InvalidInputError: If an example is no pair of texts, or there is none with or none without ``<RET>``.
        """
        return cls(parametric=write_parametric(examples), context=FROM_PASSAGE, closed_book=FROM_MEMORY)

    def render(self, kind: PromptKind, question: str, passages: Sequence[Document] = ()) -> str:
        """Fill a template.

        Args:
            kind: Which of the three prompts.
            question: The question as the user typed it; it is inserted as it stands.
            passages: The context, best first; used by ``"context"`` alone.

        Returns:
            The instruction, not yet wrapped in a model's format.
        """
        fills = {"{question}": question}
        if kind == "context":
            fills["{context}"] = join_passages(passages)
        # Not str.format: braces in a custom template stay what they are. All fields in one pass, so
        # that a passage or question that contains "{question}" is left as text.
        fields = "|".join(map(re.escape, fills))
        return re.sub(fields, lambda field: fills[field[0]], getattr(self, kind))


def join_passages(passages: Sequence[Document]) -> str:
    """Write passages as one context: title, then text, one passage a line.

    The title is written once: many collections (DPR's, the paper's) already begin a passage with it.

    Args:
        passages: The passages, best first.

    Returns:
        The context; empty without passages.
    """
    lines = []
    for passage in passages:
        title = " ".join(str(passage.metadata.get("title") or "").split())
        text = " ".join(passage.page_content.split())
        lines.append(text if not title or _begins_with(text, title) else f"{title} {text}")
    return "\n".join(lines)


def _begins_with(text: str, title: str) -> bool:
    # At the end of a word: the title "US" is not yet written in "USSR …".
    return text.startswith(title) and not re.match(r"\w\w", f"{title[-1]}{text[len(title) : len(title) + 1]}")
