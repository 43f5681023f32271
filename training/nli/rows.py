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
    "answer", "sentence", "shortened", "joined", "resolved",
    "other_answer", "passage_answer", "other_passage", "retrieved", "swapped", "exchanged", "foreign", "negated",
    "partial",
]  # fmt: skip
ENTAILED: frozenset[RowKind] = frozenset({"answer", "sentence", "shortened", "joined", "resolved"})

# How often what is made, where it can be; the others are made for each question.
_PLAIN_SHARE = 0.25
# Of those whose words alone give them away.
_EASY_SHARE = 0.4
_NEGATED_SHARE = 0.5
_RIGHT_SHARE = 0.5
_TITLE_SHARE = 0.6
_SENTENCE_WORDS = range(6, 41)

_ASIDE = re.compile(r"\s*\([^()]*\)|, (?:which|who|where) [^,;]+(?:,(?= \w)|(?=\.\Z))")
_NEGATABLE = re.compile(r"\b(is|was|are|were|has been|had been|can|will|could|would)\b(?! not\b)")
_PRONOUN = re.compile(r"(?:It|He|She|They) (?=\w)")
# What may be written small where a sentence goes on with it; a name may not.
_OPENING = re.compile(r"(?:A|An|The|This|That|These|It|Its|He|His|She|Her|They|Their|In|On|At|As|After|During)\b")
_VERB_LIKE = re.compile(r"\b(?!and\b|or\b|the\b)[a-z]+")
_PLAIN_VERB = re.compile(r'(?<=") is (?=[^"]*\Z)')

# Other items that a row may take something from.
_OTHERS = 8

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Row:
    """A pair and what is known of it.

    Attributes:
        premise: A passage, with or without its title on a line before; the same in all rows of a run.
        hypothesis: A sentence.
        kind: What it is made of. Entailed: ``answer`` (the right answer as a statement), ``sentence`` (one of the
            passage's own), ``shortened`` (such a sentence without an aside), ``joined`` (two that are entailed),
            ``resolved`` (the title in place of the "it" of a sentence). Not entailed: ``other_answer`` (an
            answer of the same kind, to another question), ``passage_answer`` (something else of the same kind in
            the passage), ``other_passage`` (any), ``retrieved`` (the best that the retriever found and that lacks
            the answer), ``swapped`` (the passage's own sentence with another name or number), ``exchanged`` (two
            names or numbers of such a sentence in one another's place), ``foreign`` (a sentence of the retrieved
            passage), ``negated`` (what is entailed, with a "not"), ``partial`` (what is entailed, and something
            about it that is not).
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
        rows.extend(maker.not_entailed(answers[kind_of(item.answer)], items))
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
        if self.own is not None and self.own != self.right:
            yield self.row(passage, _join(*self.shuffled(self.own, self.right)), "joined")
        vague = self.pick([sentence for sentence in self.sentences if _PRONOUN.match(sentence)])
        if vague is not None and (title := self.title()) is not None:
            yield self.row(passage, _PRONOUN.sub(f"{title} ", vague, count=1), "resolved")

    def not_entailed(self, answers: Sequence[str], items: Sequence[Item]) -> Iterator[Row]:
        others = self.rng.sample(items, min(_OTHERS, len(items)))
        foreign = self.pick([s for s in _sentences(self.item.lookalike) if s not in self.item.passage.page_content])
        yield from self.wrong_answers(answers)
        yield from self.elsewhere(others[0].passage, foreign)
        yield from self.spoiled(others, foreign)

    def wrong_answers(self, answers: Sequence[str]) -> Iterator[Row]:
        item = self.item
        wrong = self.pick([answer for answer in answers if not _alike(answer, item.accepted)])
        if wrong is not None:
            yield self.row(item.passage, self.state(wrong), "other_answer")
        found = _like(kind_of(item.answer), item.passage.page_content)
        near = self.pick([answer for answer in found if not _alike(answer, item.accepted)])
        if near is not None:
            yield self.row(item.passage, self.state(near), "passage_answer")

    def elsewhere(self, other: Document, foreign: str | None) -> Iterator[Row]:
        if self.chance(_EASY_SHARE):
            yield self.row(self.item.lookalike, self.right, "retrieved")
        if self.chance(_EASY_SHARE) and not holds_answer(other, self.item.accepted):
            yield self.row(other, self.right, "other_passage")
        if foreign is not None and self.chance(_EASY_SHARE):
            yield self.row(self.item.passage, foreign, "foreign")

    def spoiled(self, others: Sequence[Item], foreign: str | None) -> Iterator[Row]:
        passage = self.item.passage
        if self.own is not None and (swapped := self.swap(self.own, others[0].passage)) is not None:
            yield self.row(passage, swapped, "swapped")
        if self.own is not None and (exchanged := self.exchange(self.own)) is not None:
            yield self.row(passage, exchanged, "exchanged")
        true = self.right if self.own is None or self.chance(_RIGHT_SHARE) else self.own
        if self.chance(_NEGATED_SHARE) and (negated := _negate(true)) is not None:
            yield self.row(passage, negated, "negated")
        more = self.pick(
            [said for one in others if one.passage != passage and (said := _said_of_someone(one.question))]
        )
        if more is not None:
            yield self.row(passage, f"{true.removesuffix('.')} and {more}.", "partial")
        if foreign is not None and self.chance(_EASY_SHARE):
            yield self.row(passage, _join(*self.shuffled(true, foreign)), "partial")

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def pick(self, choices: Sequence[T]) -> T | None:
        return self.rng.choice(choices) if choices else None

    def shuffled(self, one: str, other: str) -> tuple[str, str]:
        first, second = self.rng.sample((one, other), 2)
        return first, second

    def title(self) -> str | None:
        """Name the article without what tells it apart from others of its name; ``None`` if the premise lacks it."""
        title = str(self.item.passage.metadata.get("title") or "")
        shown = bool(title) and premise_of(self.item.passage, self.seed).startswith(title)
        return re.sub(r"\s*\([^()]*\)$", "", title) if shown else None

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

    def exchange(self, sentence: str) -> str | None:
        """Put two things of one kind into one another's place."""
        found = spans(sentence)
        pairs = [
            (one, other)
            for place, one in enumerate(found)
            for other in found[place + 1 :]
            if one[0] == other[0]
            and not _alike(sentence[one[1] : one[2]], [sentence[other[1] : other[2]]])
            # "Ada, Jon and Lia" says the same in any order.
            and _VERB_LIKE.search(sentence[one[2] : other[1]])
        ]
        pair = self.pick(pairs)
        if pair is None:
            return None
        (_, start, end), (_, other_start, other_end) = pair
        first, second = sentence[start:end], sentence[other_start:other_end]
        return sentence[:start] + second + sentence[end:other_start] + first + sentence[other_end:]

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


def _join(one: str, other: str) -> str:
    rest = other[:1].lower() + other[1:] if _OPENING.match(other) else other
    return f"{one.removesuffix('.')}, and {rest}"


def _said_of_someone(question: str) -> str | None:
    """Turn "who won the cup" into "won the cup", which may be said of anyone else, and is then wrong."""
    words = re.sub(r"[\s?.]+$", "", question).split()
    fits = len(words) > 2 and words[0].lower() == "who" and words[1].lower() not in {"do", "does", "did", "'s"}
    return " ".join(words[1:]) if fits else None


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
