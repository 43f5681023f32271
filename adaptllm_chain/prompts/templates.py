"""The three prompts of "When to Retrieve" (arXiv:2404.19705), word for word."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.documents import Document
from pydantic import BaseModel, ConfigDict, field_validator

from adaptllm_chain.errors import InvalidInputError
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

    def render(self, kind: PromptKind, question: str, passages: Sequence[Document] = ()) -> str:
        """Fill a template.

        Args:
            kind: Which of the three prompts.
            question: The question as the user typed it; it is inserted as it stands.
            passages: The context, best first; used by ``"context"`` alone.

        Returns:
            The instruction, not yet wrapped in a model's format.
        """
        # str.replace, not str.format: braces in a custom template stay what they are. The question
        # goes in last, so that a passage or question that contains "{question}" is left as text.
        before, _, after = getattr(self, kind).partition("{question}")
        if kind == "context":
            context = join_passages(passages)
            before, after = (part.replace("{context}", context) for part in (before, after))
        return f"{before}{question}{after}"


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
        title = str(passage.metadata.get("title") or "").strip()
        text = " ".join(passage.page_content.split())
        lines.append(text if not title or text.startswith(title) else f"{title} {text}")
    return "\n".join(lines)
