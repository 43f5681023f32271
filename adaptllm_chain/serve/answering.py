"""Answering for all endpoints: questions that come together are batched, streams have a thread each.

Batches and streams may run at the same time, and the model has to stand it. ``LocalLLM`` does: it holds a lock while
it computes, so a stream and a batch take turns there. Models behind an API are made for it.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, contextmanager
from functools import partial
from typing import Any

from adaptllm_chain.chain import AdaptiveRetrievalChain
from adaptllm_chain.errors import AdaptLLMError
from adaptllm_chain.records import AdaptiveAnswer
from adaptllm_chain.serve.batcher import MicroBatcher
from adaptllm_chain.serve.failures import ModelFailedError
from adaptllm_chain.serve.measures import Measures
from adaptllm_chain.serve.progress import Answered, Progress, follow
from adaptllm_chain.serve.settings import ServerSettings
from adaptllm_chain.serve.threads import in_thread
from adaptllm_chain.serve.usage import Usage, UsageListener
from adaptllm_chain.serve.variants import Variants, Way

_Result = tuple[AdaptiveAnswer, Usage | None]


class Answering:
    """The chain behind the endpoints.

    Args:
        chain: The chain.
        settings: The operator's settings.
        measures: Where answers and batches are counted.

    Attributes:
        variants: The ways in which it can answer.
        settings: The operator's settings.
        measures: Where answers and batches are counted.
    """

    def __init__(self, chain: AdaptiveRetrievalChain, settings: ServerSettings, measures: Measures) -> None:
        self.variants = Variants(chain, settings.max_k)
        self.settings = settings
        self.measures = measures
        # Threads are started when they are needed, and end with the process: nothing has to be closed, so that the
        # application can be mounted in another, which starts and ends nothing that it mounts.
        self._threads = ThreadPoolExecutor(
            settings.parallel_batches + settings.max_concurrency, thread_name_prefix="adaptllm-serve"
        )
        self._batcher: MicroBatcher[Way, dict[str, Any], _Result] = MicroBatcher(
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
            result, usage = await self._batcher.submit(way, value)
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
            The steps; the last one is the answer.

        Raises:
            AdaptLLMError: What the chain raised.
        """
        chain = self.variants.chain_for(way)
        steps = in_thread(partial(follow, chain, value, way, time.perf_counter()), self._threads)
        async with aclosing(steps):
            with _model_failures():
                async for step in steps:
                    if isinstance(step, Answered):
                        self._count(step, endpoint)
                    yield step

    def _answer_batch(self, way: Way, values: list[dict[str, Any]]) -> list[_Result | Exception]:
        chain = self.variants.chain_for(way)
        self.measures.batch(len(values))
        listeners = [UsageListener() for _ in values]
        results: list[Any] = chain.batch(
            list(values),
            [{"callbacks": [listener]} for listener in listeners],
            return_exceptions=True,
            **way.arguments(chain),
        )
        return [
            result if isinstance(result, Exception) else (result, listener.usage)
            for result, listener in zip(results, listeners, strict=True)
        ]

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
