"""Streams: hold back what may be the marker, and let only clean answer text through."""

from __future__ import annotations

import re
from collections.abc import Sequence

from adaptllm_chain.ret.marker import RET, may_become_marker

# A marker that the token limit cut off at the end of an answer. Real tokenizers spell "<RET>" as
# "<", "RE"/"RET", …: two characters, as in "r<R", are left to the answer.
_SHORTEST_CUT_OFF = 3


class Gate:
    """Holds the beginning of a stream back until it is clear whether it leads with the marker.

    Args:
        marker: How the request is spelled.

    Attributes:
        chunks: The chunks held back, in order.
        finished: Whether the stream has ended.
    """

    def __init__(self, marker: str = RET) -> None:
        self._marker = marker
        self.chunks: list[str] = []
        self.finished = False

    def push(self, chunk: str) -> None:
        """Take the next chunk.

        Args:
            chunk: Text as the model streamed it.
        """
        self.chunks.append(chunk)

    def finish(self) -> None:
        """Say that the stream has ended."""
        self.finished = True

    @property
    def text(self) -> str:
        """What has been seen so far."""
        return "".join(self.chunks)

    @property
    def settled(self) -> bool:
        """Whether no further chunk can change the decision."""
        # "<RE\n" cannot become the marker, but if nothing follows it is one that was cut off.
        return self.finished or not may_become_marker(self.text.rstrip(), self._marker)


class AnswerFilter:
    """Cleans an answer while it streams; the pieces joined equal ``clean_answer`` of the whole.

    Args:
        stops: Texts at which the answer ends.
        marker: How the request is spelled.

    Attributes:
        done: Whether the answer has ended, so that the model need not go on.
    """

    def __init__(self, stops: Sequence[str] = (), marker: str = RET) -> None:
        self._end = _end(stops, marker)
        self._end_begun = _end_begun(stops, marker)
        self._cut_off = _cut_off(marker)
        self._held = ""
        self._started = False
        self.done = False

    def push(self, chunk: str) -> str:
        """Take the next chunk.

        Args:
            chunk: Text as the model streamed it.

        Returns:
            The answer text that is certain by now; often empty.
        """
        if self.done:
            return ""
        self._held += chunk
        if not self._started:
            # Stops are looked for only after leading white space, or "\n" would end "\nParis".
            self._held = self._held.lstrip()
            self._started = bool(self._held)
        found, begun = self._end.search(self._held), self._end_begun.search(self._held)
        # What began before may still complete and end the answer earlier: "<RET" before the stop "T".
        self.done = found is not None and (begun is None or found.start() <= begun.start())
        certain = min((match.start() for match in (found, begun) if match), default=len(self._held))
        return self._release(len(self._held[:certain].rstrip()))

    def finish(self) -> str:
        """Say that the stream has ended.

        Returns:
            What was still held back and belongs to the answer.
        """
        if self.done:
            return ""
        self.done = True
        return _cut(self._held, self._end, self._cut_off)

    def _release(self, length: int) -> str:
        piece, self._held = self._held[:length], self._held[length:]
        return piece


def clean_answer(text: str, stops: Sequence[str] = (), marker: str = RET) -> str:
    """Make an answer of a finished output.

    White space around it goes. The answer ends before the first marker in any letter case, before
    the first stop text, and before a marker that was cut off at the very end (``"Paris <RET"``).

    Args:
        text: The output.
        stops: Texts at which the answer ends.
        marker: How the request is spelled.

    Returns:
        The answer; never any part of the marker.
    """
    return _cut(text.lstrip(), _end(stops, marker), _cut_off(marker))


def _cut(text: str, end: re.Pattern[str], cut_off: re.Pattern[str]) -> str:
    found = end.search(text)
    return (text[: found.start()] if found else cut_off.sub("", text)).rstrip()


def _end(stops: Sequence[str], marker: str) -> re.Pattern[str]:
    """What ends an answer."""
    return re.compile("|".join([_any_case(marker), *map(re.escape, stops)]))


def _end_begun(stops: Sequence[str], marker: str) -> re.Pattern[str]:
    """The longest beginning, at the end of a text, of what could end an answer."""
    begun = [_any_case(marker[:n]) for n in range(1, len(marker))]
    begun += [re.escape(stop[:n]) for stop in stops for n in range(1, len(stop))]
    return re.compile(rf"(?:{'|'.join(begun)})\Z")


def _cut_off(marker: str) -> re.Pattern[str]:
    """A marker that breaks off at the end of a text."""
    return re.compile(rf"(?:{'|'.join(_any_case(marker[:n]) for n in range(_SHORTEST_CUT_OFF, len(marker)))})\Z")


def _any_case(text: str) -> str:
    return f"(?i:{re.escape(text)})"
