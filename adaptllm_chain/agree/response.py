"""Grounded responses as text: reading them, also while they are written, and writing them as training targets.

The fixed form::

    The mill was built in 1790 [1]. It burned down twice [1][3]. The miller was rich.

    Unsupported statements:
    - The miller was rich.

Marks stand before the full stop; behind it where the stop belongs to an abbreviation ("… in the U.S. [2]"). Without
unsupported statements there is no such section. AGREE (arXiv:2311.09533) describes both parts, its spelling of them is
not published; the reader is more lenient than the writer (see ``parse_response``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from adaptllm_chain.agree.sentences import ends_in_abbreviation, split_sentences
from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.metrics.citations import CitedSentence, read_citations, without_marks
from adaptllm_chain.ret import AnswerFilter, Gate, clean_answer, read_spelling

UNSUPPORTED = "Unsupported statements:"

# The section begins on a line of its own, in any letter case.
_SECTION = f"\n{UNSUPPORTED}"
_ITEM = re.compile(r"\s*(?:(?:[-*•]|\d{1,3}[.)])\s+)?")
_NOTHING = re.compile(r"[-*•\s]*none\.?\s*", re.IGNORECASE)
_STOP_AT_END = re.compile(r"\s*[.!?…]+[\"'”\u2019»)\]]*\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class GroundedResponse:
    """A response as a model wrote it, read.

    Attributes:
        answer: The response with its marks, without the section of unsupported statements.
        sentences: Its sentences and what they cite, in order.
        unsupported: The statements that the model says no passage supports, without marks.
        rejected: How many marks of the answer point nowhere.
    """

    answer: str
    sentences: tuple[CitedSentence, ...]
    unsupported: tuple[str, ...]
    rejected: int

    @property
    def supported(self) -> bool:
        """Whether every sentence cites a passage and no statement is called unsupported."""
        return bool(self.sentences) and not self.unsupported and all(cited["citations"] for cited in self.sentences)

    @property
    def cited(self) -> tuple[int, ...]:
        """Numbers of the passages that are cited anywhere, in the order of the text."""
        return tuple(dict.fromkeys(number for cited in self.sentences for number in cited["citations"]))


def parse_response(text: str, passages: int) -> GroundedResponse:
    """Read a grounded response, finished or not.

    ``[1][2]``, ``[1, 2]`` and ``[[1], [2]]``, before or after the full stop, mean the same. A mark without a word of
    its own belongs to the sentence before it. Marks of 0 and beyond the last passage are dropped and counted. What
    else stands in brackets, or never closes, is text. Statements may be numbered, bulleted or bare, one a line.

    Args:
        text: What the model wrote.
        passages: How many passages it was shown.

    Returns:
        The response; of an unfinished text, all sentences but the last are final.
    """
    answer = response_part(text)
    return GroundedResponse(
        answer=answer,
        sentences=tuple(_sentences(answer, passages)),
        unsupported=tuple(_statements(text, answer)),
        rejected=read_citations(answer, passages).rejected,
    )


def response_part(text: str) -> str:
    """Take the response without the section of unsupported statements.

    Args:
        text: What a model wrote.

    Returns:
        What stands before the section; the beginning of a heading that was cut off is left out too.
    """
    return "" if _leads_with_section(text) else clean_answer(text, marker=_SECTION)


def sentence_texts(text: str) -> list[str]:
    """Cut a response into what is put to a judge of entailment.

    Args:
        text: A response, with or without marks.

    Returns:
        Its sentences without marks, bullets and surplus white space; none is without a word.
    """
    return [cited["sentence"] for cited in parse_response(text, 0).sentences]


def verbalise(sentences: Sequence[CitedSentence], unsupported: Sequence[str] = ()) -> str:
    """Write a response in the fixed form, as the target of tuning.

    ``parse_response`` reads back exactly what is written.

    Args:
        sentences: The sentences and what they cite.
        unsupported: The statements that no passage supports.

    Returns:
        The text.

    Raises:
        InvalidInputError: If the sentences could not be told apart again: one holds a mark or two sentences, say.
    """
    text = with_marks(sentences)
    if unsupported:
        text = "\n".join([f"{text}\n", UNSUPPORTED, *(f"- {statement}" for statement in unsupported)]).lstrip()
    most = max((number for cited in sentences for number in cited["citations"]), default=0)
    found = parse_response(text, most)
    if (list(found.sentences), list(found.unsupported)) != (list(sentences), list(unsupported)):
        raise InvalidInputError(
            f"cannot be told apart in one text: {[*(cited['sentence'] for cited in sentences), *unsupported]!r:.300}",
            expected="one sentence each, as sentence_texts cuts them, without marks that point nowhere",
        )
    return text


def with_marks(sentences: Sequence[CitedSentence]) -> str:
    """Write sentences as one text, with a mark for each citation.

    Args:
        sentences: The sentences and what they cite.

    Returns:
        The text. That it can be read back is not checked, as ``verbalise`` does.
    """
    text = ""
    for cited in sentences:
        text = _joined(text, _marked(cited))
    return text


class ResponseFilter:
    """Lets a response through while it is written, and holds back the section of unsupported statements."""

    def __init__(self) -> None:
        self._gate = Gate(UNSUPPORTED)
        self._filter = AnswerFilter(marker=_SECTION)

    def push(self, chunk: str) -> str:
        """Take the next chunk.

        Args:
            chunk: Text as the model streamed it.

        Returns:
            The text of the response that is certain by now; often empty.
        """
        if not self._gate.settled:
            self._gate.push(chunk)
            chunk = self._gate.text if self._gate.settled else ""
        return "" if _leads_with_section(self._gate.text) else self._filter.push(chunk)

    def finish(self) -> str:
        """Say that the stream has ended.

        Returns:
            What was still held back and belongs to the response.
        """
        if self._gate.settled:
            return self._filter.finish()
        self._gate.finish()
        return response_part(self._gate.text)


def _leads_with_section(text: str) -> bool:
    return read_spelling(text, UNSUPPORTED) in ("marker", "cut_off")


def _sentences(answer: str, passages: int) -> Iterator[CitedSentence]:
    last: CitedSentence | None = None
    for piece in split_sentences(answer):
        found = read_citations(piece, passages)
        words = " ".join(without_marks(_ITEM.sub("", piece, count=1)).split())
        if any(map(str.isalnum, words)):
            if last is not None:
                yield last
            last = CitedSentence(sentence=words, citations=list(found.passages), rejected=found.rejected)
        elif last is not None:
            last["citations"] = list(dict.fromkeys([*last["citations"], *found.passages]))
            last["rejected"] += found.rejected
    if last is not None:
        yield last


def _statements(text: str, answer: str) -> Iterator[str]:
    rest = text.strip().removeprefix(answer).lstrip()
    if not rest.casefold().startswith(UNSUPPORTED.casefold()):
        return
    for line in rest[len(UNSUPPORTED) :].splitlines():
        statement = " ".join(without_marks(_ITEM.sub("", line, count=1)).split())
        if any(map(str.isalnum, statement)) and not _NOTHING.fullmatch(statement):
            yield statement


def _marked(cited: CitedSentence) -> str:
    sentence = cited["sentence"]
    marks = "".join(f"[{number}]" for number in cited["citations"])
    if not marks:
        return sentence
    stop = _STOP_AT_END.search(sentence)
    if stop is None or ends_in_abbreviation(sentence):
        return f"{sentence} {marks}"
    return f"{sentence[: stop.start()]} {marks}{stop[0]}"


def _joined(text: str, sentence: str) -> str:
    """Put a sentence behind a text with the least that keeps them apart."""
    if not text:
        return sentence
    apart = len(split_sentences(text)) + 1
    candidates = (f"{text}{gap}{sentence}" for gap in (" ", "\n"))
    return next((joined for joined in candidates if len(split_sentences(joined)) == apart), f"{text}\n\n{sentence}")
