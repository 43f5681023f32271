"""What came out of a model, whatever kind of model it was."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import BaseMessage

from adaptllm_chain.chain.listener import InfoListener, info_of
from adaptllm_chain.chain.plan import Opening, Read, Rest
from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.ret import AnswerFilter, Gate, clean_answer, read_signal, says_ret


@dataclass(frozen=True, slots=True)
class ModelOutput:
    """A finished output.

    Attributes:
        text: Its text.
        infos: What the model reported beside it.
        stops: Texts at which an answer in it ends.
    """

    text: str
    infos: Sequence[Mapping[str, Any]] = ()
    stops: Sequence[str] = ()

    def opening(self, marker: str) -> Opening:
        """Read the whole output as an opening.

        Args:
            marker: How the request is spelled.

        Returns:
            The opening.
        """
        return _opening(self.text, self.infos, marker)

    def answer(self, marker: str) -> str:
        """Read the output as an answer.

        Args:
            marker: How the request is spelled.

        Returns:
            The answer; never any part of the marker.
        """
        return clean_answer(self.text, self.stops, marker)


class StreamedOutput:
    """An output that is still coming in: gate and filter around it, without reading it itself.

    Args:
        prompt: What the model was asked.
        listener: Catches what the model reports beside bare text.
        stops: Texts at which the answer ends.
        marker: How the request is spelled.

    Attributes:
        listener: Catches what the model reports beside bare text.
    """

    def __init__(self, prompt: str, listener: InfoListener, stops: Sequence[str], marker: str) -> None:
        self._prompt = prompt
        self.listener = listener
        self._marker = marker
        self._infos: list[Mapping[str, Any]] = []
        self._gate = Gate(marker)
        self._filter = AnswerFilter(stops, marker)

    @property
    def settled(self) -> bool:
        """Whether the opening can be read."""
        return self._gate.settled or says_ret(self._heard())

    @property
    def done(self) -> bool:
        """Whether the answer has ended, although the model may go on."""
        return self._filter.done

    def hold(self, chunk: Any) -> None:
        """Take a chunk before the opening is settled.

        Args:
            chunk: What the model streamed.
        """
        if isinstance(chunk, BaseMessage):
            self._infos.append(info_of(chunk))
        text = text_of(chunk)
        self._gate.push(text if self._gate.chunks else without_echo(text, self._prompt))

    def finish(self) -> None:
        """Say that the model has ended."""
        self._gate.finish()

    def opening(self) -> Opening:
        """Read what has come so far.

        Returns:
            The opening.
        """
        return _opening(self._gate.text, self._heard(), self._marker)

    def held(self) -> Iterator[str]:
        """Release the chunks that were held back.

        Yields:
            Answer text, chunk by chunk.
        """
        for chunk in self._gate.chunks:
            yield self._filter.push(chunk)

    def pass_on(self, chunk: Any) -> str:
        """Take a chunk of the answer.

        Args:
            chunk: What the model streamed.

        Returns:
            The answer text that is certain by now.
        """
        return self._filter.push(text_of(chunk))

    def last(self) -> str:
        """End the answer.

        Returns:
            The answer text that was still held back.
        """
        return self._filter.finish()

    def _heard(self) -> Sequence[Mapping[str, Any]]:
        # A message carries what callbacks hear as well; counted twice, its tokens would spell nonsense.
        return self._infos if any(self._infos) else self.listener.infos(self._gate.text)


class Retelling:
    """What of an output is passed on as the answer, and all of it for the plan.

    Args:
        step: Says what is passed on.

    Attributes:
        text: The answer in the output, as far as it has come.
    """

    def __init__(self, step: Rest | Read) -> None:
        self.text = ""
        self._passes = step.shown() if isinstance(step, Rest) else None
        self._told = False

    def push(self, text: str) -> Iterator[str]:
        """Take the next piece.

        Args:
            text: The piece.

        Yields:
            What is certain by now to be passed on, if there is any.
        """
        self.text += text
        if self._passes is not None and (piece := self._passes.push(text)):
            self._told = True
            yield piece

    def finish(self, text: str) -> Iterator[str]:
        """Take the last piece.

        Args:
            text: The piece.

        Yields:
            What else is passed on; at least one piece is, so that the result has an answer.
        """
        yield from self.push(text)
        if self._passes is not None and ((piece := self._passes.finish()) or not self._told):
            yield piece


def text_of(output: Any) -> str:
    """Take the text of an output or of a chunk of it.

    Args:
        output: What a model returned or streamed.

    Returns:
        Its text.

    Raises:
        InvalidInputError: If it is neither text nor a message.
    """
    if isinstance(output, str):
        return output
    if isinstance(output, BaseMessage):
        return str(output.text)
    raise InvalidInputError(
        f"the model returned a {type(output).__name__}: {output!r:.80}",
        expected="a text or a message",
        hint="end the model's chain with StrOutputParser()",
    )


def without_echo(text: str, prompt: str) -> str:
    """Take off a prompt that a model repeats before its output.

    HuggingFacePipeline does so by default, but not when it streams.

    Args:
        text: The text that came out of the model.
        prompt: What it was asked.

    Returns:
        The output alone.
    """
    return text.removeprefix(prompt)


def _opening(text: str, infos: Sequence[Mapping[str, Any]], marker: str) -> Opening:
    # A special token for the marker may have been stripped from the text.
    return Opening(marker if says_ret(infos) else text, read_signal(*infos, marker=marker))
