"""Questions out of files, split by passage, each with the passage that looks like its own and is not."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from langchain_core.documents import Document

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.metrics import normalise_answer
from adaptllm_chain.qa_data import passages_of, read_many
from adaptllm_chain.records import Question
from training.nli.answer_kinds import kind_of
from training.nli.rows import Item, holds_answer

if TYPE_CHECKING:
    from adaptllm_chain.retrieval import FaissPassageStore

# Passages that are looked through for one without the answer.
_DEPTH = 5


@dataclass(frozen=True, slots=True)
class Sides:
    """The items to train on and those that are held out; no question and no passage is on both sides.

    Attributes:
        train: What may be trained on.
        held_out: What is measured on.
        questions: How many questions the files hold, duplicates dropped.
    """

    train: tuple[Item, ...]
    held_out: tuple[Item, ...]
    questions: int


def read_sides(paths: Sequence[Path], *, held_out_share: float, store_folder: Path) -> Sides:
    """Read question files and find a lookalike for each question.

    Args:
        paths: Files with gold passages, in any format that ``read_questions`` knows.
        held_out_share: What part of the passages is held out, in (0, 1).
        store_folder: Where the passages' vectors are kept, one store a side; a killed run goes on from them.

    Returns:
        Both sides, in the order of the files. A question without a passage, without an answer in it, or for which
        the nearest passages all hold its answer is left out.

    Raises:
        InvalidInputError: If the share is not between 0 and 1, or a side is empty.
    """
    if not 0 < held_out_share < 1:
        raise InvalidInputError(f"held_out_share is {held_out_share}", expected="a number between 0 and 1")
    questions = read_many(paths)
    sides: dict[bool, list[Question]] = {False: [], True: []}
    for question in questions:
        if question.gold_passage is not None:
            sides[is_held_out(question.gold_passage, share=held_out_share)].append(question)
    made = {
        held: _items(side, store_folder / ("held_out" if held else "train")) if side else []
        for held, side in sides.items()
    }
    if not all(made.values()):
        raise InvalidInputError(
            f"{len(questions)} questions gave {len(made[False])} items to train on and {len(made[True])} to measure on",
            expected="some of each, so files with gold passages that hold the answers",
        )
    return Sides(tuple(made[False]), tuple(made[True]), len(questions))


def is_held_out(passage: Document, *, share: float) -> bool:
    """Choose passages for measuring by a hash of their text, so that the choice does not depend on what else is there.

    Args:
        passage: A passage; its questions go with it.
        share: What part is held out, in [0, 1].

    Returns:
        Whether this one is.
    """
    digest = hashlib.sha256(normalise_answer(passage.page_content).encode()).digest()
    return int.from_bytes(digest[:8], "big") < share * 2**64


def usable_answer(question: Question) -> str | None:
    """Pick the answer to make a statement of.

    Args:
        question: A question with a gold passage.

    Returns:
        The first accepted answer that stands in the passage and is of the kind that is asked for, or ``None``:
        some files list a year for a "who".
    """
    if question.gold_passage is None:
        return None
    asks = question.text.split(maxsplit=1)[0].lower() if question.text.strip() else ""
    for answer in question.answers:
        dated = kind_of(answer) in {"year", "date"}
        fits = not (asks == "who" and re.match(r"\W*\d", answer)) and not (asks == "where" and dated)
        if fits and holds_answer(question.gold_passage, [answer]):
            return answer
    return None


def _items(questions: Sequence[Question], store_folder: Path) -> list[Item]:
    chosen = [(question, answer) for question in questions if (answer := usable_answer(question)) is not None]
    store = _store(questions, store_folder)
    found = store.search_batch([question.text for question, _ in chosen], _DEPTH)
    items = []
    for (question, answer), passages in zip(chosen, found, strict=True):
        lookalike = next((passage for passage, _ in passages if not holds_answer(passage, question.answers)), None)
        if lookalike is not None and question.gold_passage is not None:
            items.append(Item(question.text, answer, question.answers, question.gold_passage, lookalike))
    return items


def _store(questions: Sequence[Question], folder: Path) -> FaissPassageStore:
    from adaptllm_chain.retrieval import FaissPassageStore, build_index, embedded_embeddings

    embeddings = embedded_embeddings()
    build_index(passages_of(questions), embeddings, folder, chunk_size=_CHUNK)
    return FaissPassageStore.load(folder, embeddings)


# What a kill costs at the most: half a minute of embedding.
_CHUNK = 500
