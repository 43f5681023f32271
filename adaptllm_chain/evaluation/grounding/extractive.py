"""A writer whose right marks are known: it says sentences of passages, some of them with a swapped fact.

It stands in the place of a tuned model, so that what the chains, the judge of entailment and the search make of an
answer can be counted exactly, whatever a small model can or cannot do.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from langchain_core.documents import Document
from pydantic import BaseModel, ConfigDict

from adaptllm_chain.agree import GroundedPrompt, sentence_texts, split_sentences, verbalise
from adaptllm_chain.agree.passages import numbered
from adaptllm_chain.agree.sentences import ends_in_abbreviation
from adaptllm_chain.evaluation.grounding.swapping import names_in, swap_fact
from adaptllm_chain.metrics.citations import CitedSentence

# Taken from a passage that the writer is shown; the same with a swapped fact; taken from one that it is not shown.
StatementKind = Literal["copied", "swapped", "withheld"]

_QUESTION_LINE = "\nQuestion: "
# Its own prompts, in which the question can be found again with certainty.
_WITH_PASSAGES = GroundedPrompt(template="{passages}" + _QUESTION_LINE + "{question}")
_FROM_MEMORY = GroundedPrompt(template=_QUESTION_LINE + "{question}")
_NUMBERED_LINE = re.compile(r"\[(\d+)\] (.*)")
# Words of a sentence that says something and can still be judged.
_WORDS = range(6, 41)


class Statement(BaseModel):
    """A sentence that the writer will say, and what is right to cite for it.

    Attributes:
        text: The sentence.
        kind: Where it comes from. A copied one is supported by a passage that is shown first, a withheld one by one
            that has to be searched for, a swapped one by none.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str
    kind: StatementKind


def plan_statements(passages: Sequence[Document], k: int, draw: random.Random) -> tuple[Statement, ...]:
    """Choose what to say about a question.

    Args:
        passages: Distinct passages that a search for the question brings, best first.
        k: How many of them are shown first; the others are withheld.
        draw: Makes the choices.

    Returns:
        At most one statement of each kind, in a drawn order: a kind is left out if no sentence is fit for it.
    """
    shown, withheld = passages[:k], passages[k:]
    lines = [text_of(passage) for passage in passages]
    usable = [(passage, sentence) for passage in shown for sentence in _usable_sentences(passage)]
    draw.shuffle(usable)
    statements: list[Statement] = []
    for passage, sentence in usable:
        names = [name for other in passages if other is not passage for name in names_in(other.page_content)]
        swapped = swap_fact(sentence, text_of(passage), names, draw)
        if swapped is not None and _says_itself(swapped) and not any(swapped in line for line in lines):
            statements.append(Statement(text=swapped, kind="swapped"))
            usable.remove((passage, sentence))
            break
    if usable:
        statements.append(Statement(text=usable[0][1], kind="copied"))
    hidden = (sentence for passage in withheld for sentence in _usable_sentences(passage))
    unseen = next((sentence for sentence in hidden if not any(sentence in line for line in lines[:k])), None)
    if unseen is not None:
        statements.append(Statement(text=unseen, kind="withheld"))
    draw.shuffle(statements)
    return tuple(statements)


def text_of(passage: Document) -> str:
    """Write a passage as the writer is shown it.

    Args:
        passage: The passage.

    Returns:
        Its title and text on one line, without its number.
    """
    return numbered([passage]).partition(" ")[2]


class ExtractiveWriter:
    """Says what was planned for a question. A statement cites the passage in which it stands word for word.

    A statement that stands in none of those in the prompt is named as unsupported. It is a function from prompts to
    text, and so can be the model of any chain.

    Args:
        plans: The statements, by the text of the question.
    """

    prompt = _WITH_PASSAGES
    memory_prompt = _FROM_MEMORY

    def __init__(self, plans: Mapping[str, Sequence[Statement]]) -> None:
        self._plans = plans

    def __call__(self, prompt: str) -> str:
        """Write the response.

        Args:
            prompt: One of its prompts, filled in.

        Returns:
            The response in AGREE's fixed form, with marks and unsupported statements.
        """
        passages, _, question = prompt.rpartition(_QUESTION_LINE)
        lines = [(int(number), text) for number, text in _NUMBERED_LINE.findall(passages)]
        sentences = [
            CitedSentence(
                sentence=statement.text,
                citations=[number for number, line in lines if statement.text in line][:1],
                rejected=0,
            )
            for statement in self._plans[question]
        ]
        return verbalise(sentences, [cited["sentence"] for cited in sentences if not cited["citations"]])


def _usable_sentences(passage: Document) -> Iterator[str]:
    line = text_of(passage)
    for piece in split_sentences(passage.page_content):
        sentence = " ".join(piece.split())
        if (
            len(sentence.split()) in _WORDS
            and sentence[0].isupper()
            and sentence.endswith(".")
            and not ends_in_abbreviation(sentence)
            and sentence in line
            and _says_itself(sentence)
        ):
            yield sentence


def _says_itself(sentence: str) -> bool:
    """Whether a sentence is read back as the one sentence that it is."""
    return sentence_texts(sentence) == [sentence]
