"""Prompts for a model that was never trained to say ``<RET>``: it is asked to, and shown examples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from adaptllm_chain.errors import InvalidInputError

# A question, and what the model ought to reply to it.
Example: TypeAlias = tuple[str, str]

FROM_PASSAGE = (
    "Answer the question in a few words, from the passage alone.\n\nPassage: {context}\n\nQuestion: {question}\nAnswer:"
)
FROM_MEMORY = "Answer the question in a few words.\n\nQuestion: {question}\nAnswer:"

_MARKER = "<RET>"
_SLOT = "{question}"

# Half of them known to every model, half to none (people and places are made up), and in no order that could be
# learned instead; four kinds of answer (place, person, year, number) on either side.
EXAMPLES: tuple[Example, ...] = (
    ("Which city is the capital of Japan?", "Tokyo"),
    ("In what year did the brewery of Lower Tarnwick burn down?", _MARKER),
    ("Who taught the painter Odile Marchegrain to draw?", _MARKER),
    ("Who wrote the play Hamlet?", "William Shakespeare"),
    ("How many steps lead up to the chapel of Vesterhollen?", _MARKER),
    ("In what year did the Second World War end?", "1945"),
    ("How many legs does a spider have?", "8"),
    ("In which village was the engineer Bruno Halvick born?", _MARKER),
)

_INSTRUCTION = (
    "Answer the question in a few words. If you do not know the answer for certain, do not guess: reply "
    f"{_MARKER} and nothing else, and a passage that may hold the answer is looked up for you."
)


def write_parametric(examples: Sequence[Example] = EXAMPLES) -> str:
    """Write the prompt that asks for an answer or ``<RET>``, with examples of both.

    Args:
        examples: Pairs of a question and the reply to it, in the order in which they are shown; the reply is
            ``"<RET>"`` where the passage is to be looked up.

    Returns:
        A template with the field ``{question}``.

    Raises:
        InvalidInputError: If an example is no pair of texts, or there is none of either kind.
    """
    if not isinstance(examples, Sequence) or not all(map(_is_pair, examples)):
        raise InvalidInputError(
            f"examples={examples!r:.200}",
            expected=f"a list of pairs of a question and its reply, both non-empty texts without {_SLOT}",
            hint=f"examples=[('Who wrote Hamlet?', 'Shakespeare'), ('Who built our mill?', '{_MARKER}')]",
        )
    looked_up = sum(reply == _MARKER for _, reply in examples)
    if not 0 < looked_up < len(examples):
        raise InvalidInputError(
            f"{looked_up} of {len(examples)} examples are answered with {_MARKER}",
            expected="at least one that is and one that is not: a model copies what it is shown",
        )
    blocks = [_INSTRUCTION, *map(_block, examples)]
    return "\n\n".join([*blocks, _block((_SLOT, "")).rstrip()])


def _block(example: Example) -> str:
    question, reply = example
    return f"Question: {question}\nAnswer: {reply}"


def _is_pair(example: object) -> bool:
    return (
        isinstance(example, tuple | list)
        and len(example) == 2
        and all(isinstance(part, str) and part.strip() and _SLOT not in part for part in example)
    )
