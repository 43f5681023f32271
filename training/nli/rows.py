"""Pairs to train and to measure the entailment scorer on, out of questions with answers and gold passages."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from langchain_core.documents import Document

from adaptllm_chain.agree.sentences import split_sentences
from adaptllm_chain.metrics import normalise_answer
from training.nli.answer_kinds import Kind, kind_of, spans
from training.nli.statements import declarative, plain_statement

RowKind = Literal[
    "answer", "sentence", "shortened",
    "other_answer", "passage_answer", "other_passage", "retrieved", "swapped", "foreign", "negated",
]  # fmt: skip
ENTAILED: frozenset[RowKind] = frozenset({"answer", "sentence", "shortened"})

# How often what is made, where it can be; the others are made for each question.
_PLAIN_SHARE = 0.25
_EASY_SHARE = 0.5
_NEGATED_SHARE = 0.5
_TITLE_SHARE = 0.6
_SENTENCE_WORDS = range(6, 41)

_ASIDE = re.compile(r"\s*\([^()]*\)|, (?:which|who|where) [^,;]+(?:,(?= \w)|(?=\.\Z))")
_NEGATABLE = re.compile(r"\b(is|was|are|were|has been|had been|can|will|could|would)\b(?! not\b)")
_PLAIN_VERB = re.compile(r'(?<=") is (?=[^"]*\Z)')

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Row:
    """A pair and what is known of it.

    Attributes:
        premise: A passage, with or without its title on a line before; the same in all rows of a run.
        hypothesis: A sentence.
        kind: What it is made of. Entailed: ``answer`` (the right answer as a statement), ``sentence`` (one of the
            passage's own), ``shortened`` (such a sentence without an aside). Not entailed: ``other_answer`` (an
            answer of the same kind, to another question), ``passage_answer`` (something else of the same kind in
            the passage), ``other_passage`` (any), ``retrieved`` (the best that the retriever found and that lacks
            the answer), ``swapped`` (the passage's own sentence with another name or number), ``foreign`` (a
            sentence of the retrieved passage), ``negated`` (what is entailed, with a "not").
    """

    premise: str
    hypothesis: str
    kind: RowKind

    @property
    def entailed(self) -> bool:
        """Whether the premise entails the hypothesis."""
        return self.kind in ENTAILED


@dataclass(frozen=True, slots=True)
class Item:
    """A question with the answer to use, its passage, and a like passage that does not answer it.

    Attributes:
        question: Its text.
        answer: An accepted answer that stands in the passage.
        accepted: All accepted answers.
        passage: The gold passage.
        lookalike: The best passage that the retriever finds and that holds no accepted answer.
    """

    question: str
    answer: str
    accepted: tuple[str, ...]
    passage: Document
    lookalike: Document


def make_rows(items: Sequence[Item], *, seed: int) -> list[Row]:
    """Make the rows of all items.

    Args:
        items: The items of one side; answers and passages are exchanged among them only.
        seed: Of the random choices; the same items and seed give the same rows.

    Returns:
        The rows, an item's together, in the order of the items; about two in five are entailed.
    """
    answers: dict[Kind, list[str]] = {}
    for item in items:
        answers.setdefault(kind_of(item.answer), []).append(item.answer)
    rows: list[Row] = []
    for place, item in enumerate(items):
        maker = _Maker(item, place, seed)
        rows.extend(maker.entailed())
        rows.extend(maker.not_entailed(answers[kind_of(item.answer)], [other.passage for other in items]))
    return rows


class _Maker:
    """Makes the rows of one item."""

    def __init__(self, item: Item, place: int, seed: int) -> None:
        self.item = item
        self.seed = seed
        self.rng = random.Random(f"{seed} {place} {item.question}")
        self.sentences = _sentences(item.passage)
        self.own = self.pick(self.sentences)
        self.right = self.state(item.answer)

    def entailed(self) -> Iterator[Row]:
        answer, passage = self.item.answer, self.item.passage
        yield self.row(passage, self.right, "answer")
        for told in (declarative(self.item.question, answer), plain_statement(self.item.question, answer)):
            if told is not None and told != self.right:
                yield self.row(passage, told, "answer")
        if self.own is not None:
            yield self.row(passage, self.own, "sentence")
        longer = self.pick([sentence for sentence in self.sentences if _ASIDE.search(sentence)])
        if longer is not None:
            yield self.row(passage, _ASIDE.sub("", longer), "shortened")

    def not_entailed(self, answers: Sequence[str], passages: Sequence[Document]) -> Iterator[Row]:
        item, passage = self.item, self.item.passage
        text = passage.page_content
        wrong = self.pick([answer for answer in answers if not _alike(answer, item.accepted)])
        if wrong is not None:
            yield self.row(passage, self.state(wrong), "other_answer")
        near = self.pick([found for found in _like(kind_of(item.answer), text) if not _alike(found, item.accepted)])
        if near is not None:
            yield self.row(passage, self.state(near), "passage_answer")
        yield self.row(item.lookalike, self.right, "retrieved")
        other = self.rng.choice(passages)
        if self.chance(_EASY_SHARE) and not holds_answer(other, item.accepted):
            yield self.row(other, self.right, "other_passage")
        foreign = self.pick([sentence for sentence in _sentences(item.lookalike) if sentence not in text])
        if foreign is not None and self.chance(_EASY_SHARE):
            yield self.row(passage, foreign, "foreign")
        if self.own is not None and (swapped := self.swap(self.own, self.rng.choice(passages))) is not None:
            yield self.row(passage, swapped, "swapped")
        true = self.pick([told for told in (self.own, self.right) if told is not None])
        if true is not None and self.chance(_NEGATED_SHARE) and (negated := _negate(true)) is not None:
            yield self.row(passage, negated, "negated")

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def pick(self, choices: Sequence[T]) -> T | None:
        return self.rng.choice(choices) if choices else None

    def state(self, answer: str) -> str:
        told = declarative(self.item.question, answer)
        # Both wordings, or the stiff one would be all that the scorer learns to judge.
        plain = told is None or self.chance(_PLAIN_SHARE)
        return plain_statement(self.item.question, answer) if plain or told is None else told

    def swap(self, sentence: str, other: Document) -> str | None:
        """Put another name, number, year or date into a sentence: one of its passage, else one of another."""
        places = spans(sentence)
        self.rng.shuffle(places)
        for kind, start, end in places:
            found = sentence[start:end]
            for source in (self.item.passage, other):
                near = self.pick(
                    [span for span in _like(kind, source.page_content) if not _alike(span, [found, sentence])]
                )
                if near is not None:
                    return sentence[:start] + near + sentence[end:]
        return None

    def row(self, passage: Document, hypothesis: str, kind: RowKind) -> Row:
        return Row(premise_of(passage, self.seed), hypothesis, kind)


def premise_of(passage: Document, seed: int) -> str:
    """Write a passage as a premise.

    Args:
        passage: The passage.
        seed: Of the choice whether the title comes first. A passage is one premise in all rows of a run, which
            then differ in their hypotheses alone, and it has to be encoded only once.

    Returns:
        The text, with or without its title on a line before.
    """
    text, title = passage.page_content, passage.metadata.get("title")
    return f"{title}\n{text}" if title and random.Random(f"{seed} {text}").random() < _TITLE_SHARE else text


def holds_answer(passage: Document, answers: Sequence[str]) -> bool:
    """Say whether any of several answers stands in a passage or its title, as whole words.

    Args:
        passage: The passage.
        answers: The answers; what is empty once normalised stands nowhere.

    Returns:
        Whether one does.
    """
    text = f" {normalise_answer(str(passage.metadata.get('title') or '') + ' ' + passage.page_content)} "
    return any((short := normalise_answer(answer)) and f" {short} " in text for answer in answers)


def _sentences(passage: Document) -> list[str]:
    pieces = [piece.strip() for piece in split_sentences(passage.page_content)]
    return [
        piece for piece in pieces if len(piece.split()) in _SENTENCE_WORDS and piece[0].isupper() and piece[-1] == "."
    ]


def _like(kind: Kind, text: str) -> list[str]:
    """List what of a kind stands in a text; a phrase has no surface to be found by, so a name takes its place."""
    wanted = "name" if kind == "phrase" else kind
    return sorted({text[start:end] for found, start, end in spans(text) if found == wanted})


def _alike(answer: str, others: Sequence[str]) -> bool:
    one = f" {normalise_answer(answer)} "
    rest = [f" {normalise_answer(other)} " for other in others]
    return any(one in other or other in one for other in rest)


def _negate(sentence: str) -> str | None:
    plain = _PLAIN_VERB.search(sentence) if sentence.startswith("The answer to the question") else None
    if plain is not None:
        return f"{sentence[: plain.end()]}not {sentence[plain.end() :]}"
    verb = _NEGATABLE.search(sentence)
    if verb is None:
        return None
    # "has been" takes its "not" in the middle.
    first = verb[0].split()[0]
    return f"{sentence[: verb.start()]}{first} not{sentence[verb.start() + len(first) :]}"
