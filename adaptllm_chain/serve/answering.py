"""Answering for all endpoints: questions that come together are batched, streams have a thread each.

Batches and streams may run at the same time, and the model has to stand it. ``LocalLLM`` does: it holds a lock while
it computes, so a stream and a batch take turns there. Models behind an API are made for it.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, contextmanager
from functools import partial
from typing import Any, cast

from adaptllm_chain.chain import AdaptiveRetrievalChain
from adaptllm_chain.errors import AdaptLLMError
from adaptllm_chain.records import AdaptiveAnswer
from adaptllm_chain.serve.batcher import MicroBatcher
from adaptllm_chain.serve.failures import ModelFailedError
from adaptllm_chain.serve.listeners import DecisionListener, UsageListener
from adaptllm_chain.serve.measures import Measures
from adaptllm_chain.serve.progress import Answered, Decided, Found, Piece, Progress, Usage
from adaptllm_chain.serve.settings import ServerSettings
from adaptllm_chain.serve.threads import in_thread
from adaptllm_chain.serve.ways import Ending, Way, Ways

# A question as the chain takes it, and how to answer it.
_Asked = tuple[dict[str, Any], Way]
_Result = tuple[AdaptiveAnswer, Usage | None]


class Answering:
    """The chain behind the endpoints.

    Args:
        chain: The chain.
        settings: The operator's settings.
        measures: Where answers and batches are counted.

    Attributes:
        ways: The ways in which it can answer.
        settings: The operator's settings.
        measures: Where answers and batches are counted.
    """

    def __init__(self, chain: AdaptiveRetrievalChain, settings: ServerSettings, measures: Measures) -> None:
        self._chain = chain
        self.ways = Ways(chain, settings.max_k)
        self.settings = settings
        self.measures = measures
        # Threads are started when they are needed, and end with the process: nothing has to be closed, so that the
        # application can be mounted in another, which starts and ends nothing that it mounts.
        self._threads = ThreadPoolExecutor(
            settings.parallel_batches + settings.max_concurrency, thread_name_prefix="adaptllm-serve"
        )
        self._batcher: MicroBatcher[Ending, _Asked, _Result] = MicroBatcher(
            self._answer_batch,
            executor=self._threads,
            size=settings.batch_size,
            wait_s=settings.batch_wait_ms / 1000,
            parallel=settings.parallel_batches,
        )

    async def answer(self, value: dict[str, Any], way: Way, endpoint: str) -> Answered:
        """Answer a question, together with others that come at the same time.

        Args:
            value: The question, as the chain takes it.
            way: How to answer.
            endpoint: Where it was asked, for the measures.

        Returns:
            The answer.

        Raises:
            AdaptLLMError: What the chain raised for this question.
        """
        started = time.perf_counter()
        with _model_failures():
            result, usage = await self._batcher.submit(way.ending, (value, way))
        answered = Answered(result, time.perf_counter() - started, usage)
        self._count(answered, endpoint)
        return answered

    async def stream(self, value: dict[str, Any], way: Way, endpoint: str) -> AsyncGenerator[Progress, None]:
        """Answer a question piece by piece. Whoever closes the stream ends the generation.

        Args:
            value: The question, as the chain takes it.
            way: How to answer.
            endpoint: Where it was asked, for the measures.

        Yields:
            What was decided, what was found, the answer piece by piece, and the whole of it.

        Raises:
            AdaptLLMError: What the chain raised.
        """
        steps = in_thread(partial(self._steps, value, way, time.perf_counter()), self._threads)
        async with aclosing(steps):
            with _model_failures():
                async for step in steps:
                    if isinstance(step, Answered):
                        self._count(step, endpoint)
                    yield step

    def _answer_batch(self, ending: Ending, asked: Sequence[_Asked]) -> list[_Result | Exception]:
        self.measures.batch(len(asked))
        listeners = [UsageListener() for _ in asked]
        results: list[Any] = self._chain.batch(
            [value for value, _ in asked],
            [way.config(listener) for (_, way), listener in zip(asked, listeners, strict=True)],
            return_exceptions=True,
            **ending.arguments(),
        )
        return [
            result if isinstance(result, Exception) else (result, listener.usage)
            for result, listener in zip(results, listeners, strict=True)
        ]

    def _steps(self, value: dict[str, Any], way: Way, started: float) -> Generator[Progress, None, None]:
        usage, decision = UsageListener(), DecisionListener()
        total: Any = None
        for part in self._chain.stream(value, way.config(usage, decision), **way.ending.arguments()):
            total = part if total is None else total + part
            if "retrieved" in part:
                yield Decided(decision.taken, part["ret_probability"])
            if "context" in part:
                yield Found(part["context"])
            if piece := part.get("answer"):
                yield Piece(piece)
        yield Answered(cast("AdaptiveAnswer", total), time.perf_counter() - started, usage.usage)

    def _count(self, answered: Answered, endpoint: str) -> None:
        self.measures.answered(answered.result["decision"].route, endpoint, answered.seconds)


@contextmanager
def _model_failures() -> Iterator[None]:
    try:
        yield
    except AdaptLLMError:
        raise
    except Exception as error:
        raise ModelFailedError("the model or the retriever failed") from error
