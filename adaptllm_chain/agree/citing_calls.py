"""Calling the model that cites, and letting the plan read what a model said."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig

from adaptllm_chain.agree.response import ResponseFilter
from adaptllm_chain.agree.steps import Draft, Heard
from adaptllm_chain.chain.listener import InfoListener
from adaptllm_chain.chain.model_calls import ModelCalls
from adaptllm_chain.chain.outputs import ModelOutput, text_of, without_echo
from adaptllm_chain.chain.plan import Ask
from adaptllm_chain.ret import AnswerFilter


class CitingCalls(ModelCalls):
    """The model that cites, and beside it the one that decides, if that is another.

    Args:
        llm: The model that drafts are asked of.
        stops: Texts at which its output ends.
        arguments: Further arguments for it.
        marker: How the deciding model spells its request; no output goes on behind it.
        decider: Is asked everything but drafts; by default the model that cites.
    """

    def __init__(
        self,
        llm: Runnable[Any, Any],
        stops: Sequence[str],
        arguments: Mapping[str, Any],
        *,
        marker: str,
        decider: ModelCalls | None = None,
    ) -> None:
        super().__init__(llm, stops, arguments)
        self._stops = stops
        self._marker = marker
        self._decider = decider

    def batch(self, asks: Sequence[Ask], configs: Sequence[RunnableConfig]) -> list[ModelOutput | Exception]:
        """Put prompts to their models together.

        Args:
            asks: The prompts.
            configs: The config for the children of each one's run.

        Returns:
            The outputs in order, of drafts the response alone; an exception stands for the prompt that failed.
        """
        outputs: dict[int, ModelOutput | Exception] = {}
        for places in self._by_model(asks):
            some, own = [asks[place] for place in places], [configs[place] for place in places]
            model = self._other(some[0])
            outputs.update(zip(places, model.batch(some, own) if model else super().batch(some, own), strict=True))
        return [self._heard(ask, outputs[place]) for place, ask in enumerate(asks)]

    async def abatch(self, asks: Sequence[Ask], configs: Sequence[RunnableConfig]) -> list[ModelOutput | Exception]:
        """Put prompts to their models together.

        Args:
            asks: The prompts.
            configs: The config for the children of each one's run.

        Returns:
            The outputs in order, of drafts the response alone; an exception stands for the prompt that failed.
        """
        outputs: dict[int, ModelOutput | Exception] = {}
        for places in self._by_model(asks):
            some, own = [asks[place] for place in places], [configs[place] for place in places]
            model = self._other(some[0])
            said = await (model.abatch(some, own) if model else super().abatch(some, own))
            outputs.update(zip(places, said, strict=True))
        return [self._heard(ask, outputs[place]) for place, ask in enumerate(asks)]

    def stream(self, ask: Ask, config: RunnableConfig, listener: InfoListener) -> Iterator[Any]:
        """Stream the output for one prompt.

        Args:
            ask: The prompt.
            config: The config for the children of its run.
            listener: Hears what the model reports beside bare text.

        Returns:
            The chunks; of drafts the response alone.
        """
        model = self._other(ask)
        chunks = model.stream(ask, config, listener) if model else super().stream(ask, config, listener)
        return self._listen(ask, chunks) if isinstance(ask, Heard) else chunks

    def astream(self, ask: Ask, config: RunnableConfig, listener: InfoListener) -> AsyncIterator[Any]:
        """Stream the output for one prompt.

        Args:
            ask: The prompt.
            config: The config for the children of its run.
            listener: Hears what the model reports beside bare text.

        Returns:
            The chunks; of drafts the response alone.
        """
        model = self._other(ask)
        chunks = model.astream(ask, config, listener) if model else super().astream(ask, config, listener)
        return self._alisten(ask, chunks) if isinstance(ask, Heard) else chunks

    def _other(self, ask: Ask) -> ModelCalls | None:
        """The deciding model, for what is asked of it."""
        return None if isinstance(ask, Draft) else self._decider

    def _by_model(self, asks: Sequence[Ask]) -> Iterator[list[int]]:
        for drafts in (False, True):
            if places := [place for place, ask in enumerate(asks) if isinstance(ask, Draft) is drafts]:
                yield places

    def _heard(self, ask: Ask, output: ModelOutput | Exception) -> ModelOutput | Exception:
        if not isinstance(ask, Heard) or isinstance(output, Exception):
            return output
        ear = _Ear(ask, self._stops, self._marker)
        passed = ear.hear(output.text) + ear.finish()
        return ModelOutput(passed, output.infos) if isinstance(ask, Draft) else output

    def _listen(self, ask: Heard, chunks: Iterator[Any]) -> Iterator[Any]:
        ear = _Ear(ask, self._stops, self._marker)
        try:
            for chunk in chunks:
                yield from ear.pass_on(chunk)
            yield from ear.end()
        finally:
            if (close := getattr(chunks, "close", None)) is not None:
                close()

    async def _alisten(self, ask: Heard, chunks: AsyncIterator[Any]) -> AsyncIterator[Any]:
        ear = _Ear(ask, self._stops, self._marker)
        try:
            async for chunk in chunks:
                for passed in ear.pass_on(chunk):
                    yield passed
            for passed in ear.end():
                yield passed
        finally:
            if (aclose := getattr(chunks, "aclose", None)) is not None:
                await aclose()


class _Ear:
    """Writes down what a model says, and says what of it the driver gets. Knows nothing of I/O."""

    def __init__(self, ask: Heard, stops: Sequence[str], marker: str) -> None:
        self._ask = ask
        self._whole = AnswerFilter(stops, marker)
        self._response = ResponseFilter()
        self._held: list[str] = []
        self._begun = False

    def hear(self, text: str) -> str:
        """Take the next text; returns what is certain to belong to the response."""
        certain = self._whole.push(text)
        self._ask.said.append(certain)
        return self._response.push(certain)

    def finish(self) -> str:
        """End the output; returns the rest of the response."""
        certain = self._whole.finish()
        self._ask.said.append(certain)
        return self._response.push(certain) + self._response.finish()

    def pass_on(self, chunk: Any) -> Iterator[Any]:
        text = text_of(chunk)
        if not self._begun:
            text = without_echo(text, self._ask.prompt)
            self._begun = True
        passed = self.hear(text)
        if not isinstance(self._ask, Draft):
            # As it is: what a message carries beside its text decides.
            yield chunk
        elif not self._ask.aloud:
            self._held.append(passed)
        elif passed:
            yield passed

    def end(self) -> Iterator[str]:
        rest = self.finish()
        if isinstance(self._ask, Draft):
            yield "".join([*self._held, rest])
