"""The prompts of grounded answers: for tuned models, for models that are shown how, and for sampling.

AGREE (arXiv:2311.09533) publishes no wording; these are ours.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from langchain_core.documents import Document
from pydantic import BaseModel, ConfigDict, field_validator

from adaptllm_chain.agree.passages import numbered
from adaptllm_chain.agree.response import UNSUPPORTED
from adaptllm_chain.errors import InvalidInputError

_QUESTION = "{question}"
_PASSAGES = "{passages}"
_TASK = f"Passages:\n{_PASSAGES}\n\nQuestion: {_QUESTION}\nAnswer:"

# What a tuned model is trained on and asked with.
GROUNDED = (
    "Answer the question in a few sentences from the numbered passages. Write [i] at the end of a sentence that "
    f'passage i supports. Then, under the line "{UNSUPPORTED}", list the statements of your answer that no passage '
    f"supports, each on a line that begins with a dash; if there are none, leave that part out.\n\n{_TASK}"
)
CITING = (
    "Answer the question in one to three sentences, using only what the numbered passages say. At the end of every "
    "sentence, before its full stop, write the number of each passage that supports it in brackets, such as [1] or "
    "[1][3]. Cite no passage that a sentence does not need."
)
# Zero-shot, without marks: these come from the judge of entailment (AGREE).
SAMPLING = (
    "Answer the question in one to three complete sentences, from what the numbered passages say. Do not mention the "
    f"passages or their numbers.\n\n{_TASK}"
)
MEMORY = f"Answer the question in one to three complete sentences.\n\nQuestion: {_QUESTION}\nAnswer:"


@dataclass(frozen=True, slots=True)
class CitingExample:
    """A question answered with marks, for a model that is shown how.

    Attributes:
        question: The question.
        passages: The passages; ``metadata["title"]`` holds the title.
        answer: The answer, with marks.
    """

    question: str
    passages: tuple[Document, ...]
    answer: str


def _passage(title: str, text: str) -> Document:
    return Document(page_content=text, metadata={"title": title})


# People and places are made up, so that no model can answer from memory instead of the passages.
EXAMPLES: tuple[CitingExample, ...] = (
    CitingExample(
        "When was the lighthouse of Skarvholm built, and who designed it?",
        (
            _passage("Skarvholm", "Skarvholm is a fishing village of 400 people on the northern coast."),
            _passage("Lights of the north", "The lighthouse of Skarvholm was lit for the first time in 1871."),
            _passage(
                "Edda Brunvik", "The architect Edda Brunvik drew the plans of the Skarvholm light, built in 1871."
            ),
        ),
        "The lighthouse of Skarvholm was built in 1871 [2][3]. It was designed by the architect Edda Brunvik [3].",
    ),
    CitingExample(
        "Why did the paper mill of Lower Tarnwick close?",
        (
            _passage("Tarnwick paper mill", "In 1962 the mill lost its largest customer, and a year later it closed."),
            _passage("River Tarn", "The Tarn is 84 kilometres long and rises in the hills above Upper Tarnwick."),
        ),
        "The paper mill of Lower Tarnwick closed a year after it had lost its largest customer in 1962 [1].",
    ),
)


class GroundedPrompt(BaseModel):
    """The text with which a question and its passages are put to a model.

    Attributes:
        template: Holds ``{question}``, and ``{passages}`` where the numbered passages go.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    template: str = GROUNDED

    @field_validator("template")
    @classmethod
    def _has_question(cls, template: str) -> str:
        if _QUESTION not in template:
            raise InvalidInputError(
                f"the template {template!r:.200} lacks {_QUESTION}",
                expected=f"a text that holds {_QUESTION} literally, and {_PASSAGES} to show passages",
            )
        return template

    @classmethod
    def by_example(cls, examples: Sequence[CitingExample] = EXAMPLES) -> Self:
        r"""Make the prompt of the baseline that cites in context (ICLCITE; arXiv:2311.09533, after arXiv:2305.14627).

        A base model goes on with passages of its own after the answer: give the chain ``stop=["\n\n"]``.

        Args:
            examples: What the model is shown, in this order; by default two of ours.

        Returns:
            The prompt.

        Raises:
            InvalidInputError: If there are no examples.
        """
        if not examples:
            raise InvalidInputError("no examples of citing", expected="at least one", hint="GroundedPrompt()")
        shown = [f"{_filled(_TASK, example.question, example.passages)} {example.answer}" for example in examples]
        return cls(template="\n\n\n".join([CITING, *map(_literal, shown), _TASK]))

    @classmethod
    def for_sampling(cls) -> Self:
        """Make the zero-shot prompt with which responses are sampled for tuning.

        Returns:
            The prompt.
        """
        return cls(template=SAMPLING)

    @classmethod
    def from_memory(cls) -> Self:
        """Make the prompt of the baseline that answers first and cites afterwards (POSTATTR).

        Returns:
            The prompt; it shows no passages.
        """
        return cls(template=MEMORY)

    def render(self, question: str, passages: Sequence[Document] = ()) -> str:
        """Fill in a question and its passages.

        Args:
            question: The question as the user typed it.
            passages: The passages, numbered from 1 in this order.

        Returns:
            The instruction, not yet wrapped in a model's format.
        """
        return _filled(self.template, question, passages)


def _filled(template: str, question: str, passages: Sequence[Document]) -> str:
    # In one pass, so that a question or passage that contains "{question}" is left as text.
    fills = {_QUESTION: question, _PASSAGES: numbered(passages)}
    return re.sub("|".join(map(re.escape, fills)), lambda field: fills[field[0]], template)


def _literal(text: str) -> str:
    if _QUESTION in text or _PASSAGES in text:
        raise InvalidInputError(f"an example holds a field: {text!r:.200}", expected=f"no {_QUESTION}, no {_PASSAGES}")
    return text
