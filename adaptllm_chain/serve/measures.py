"""What the service counts, in a registry of its own, so that several can live in one process."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from adaptllm_chain.records import Route
from adaptllm_chain.serve.failures import Failure

CONTENT_TYPE = CONTENT_TYPE_LATEST
# From an answer of a GPU to one of a large model on a CPU, with others before it.
_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)


class Measures:
    """Counters, gauges and histograms of one service.

    Args:
        batch_size: The most questions in a batch.

    Attributes:
        in_flight: Questions that are being answered or wait to be.
    """

    def __init__(self, batch_size: int) -> None:
        self._registry = CollectorRegistry()
        registry = self._registry
        self._questions = Counter("adaptllm_questions", "Questions answered.", ["route", "endpoint"], registry=registry)
        self._share = Gauge(
            "adaptllm_retrieval_share", "Share of the answers that were retrieved for, in [0, 1].", registry=registry
        )
        self._seconds = Histogram(
            "adaptllm_question_seconds",
            "Seconds from a question to its whole answer.",
            ["route"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.in_flight = Gauge(
            "adaptllm_questions_in_flight", "Questions being answered or waiting to be.", registry=registry
        )
        self._rejected = Counter(
            "adaptllm_rejected",
            "Requests that were at fault, or came when there was no room.",
            ["reason"],
            registry=registry,
        )
        self._failed = Counter(
            "adaptllm_failed",
            "Requests at which the model, the retriever or the server failed.",
            ["reason"],
            registry=registry,
        )
        self._batches = Histogram(
            "adaptllm_batch_size",
            "Questions that were answered together.",
            buckets=[size for size in (1, 2, 4, 8, 16, 32, 64, 128, 256) if size < batch_size] + [batch_size],
            registry=registry,
        )
        self._answers = {"direct": 0, "retrieve": 0}

    def answered(self, route: Route, endpoint: str, seconds: float) -> None:
        """Count an answer.

        Args:
            route: How it was come by.
            endpoint: Where it was asked for.
            seconds: How long it took.
        """
        self._questions.labels(route, endpoint).inc()
        self._seconds.labels(route).observe(seconds)
        self._answers[route] += 1
        self._share.set(self._answers["retrieve"] / sum(self._answers.values()))

    def counted(self, failure: Failure) -> Failure:
        """Count a request that was not carried out.

        Args:
            failure: Why.

        Returns:
            The same, to be told.
        """
        (self._failed if failure.status >= 500 else self._rejected).labels(failure.code).inc()
        return failure

    def batch(self, size: int) -> None:
        """Count a batch.

        Args:
            size: Its number of questions.
        """
        self._batches.observe(size)

    def exposition(self) -> bytes:
        """Write everything down.

        Returns:
            Text in the format of ``CONTENT_TYPE``.
        """
        return generate_latest(self._registry)
