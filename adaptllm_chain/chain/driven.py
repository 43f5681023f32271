"""LangChain's surface over the drivers: one public method a way of running, one private worker each."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing
from typing import Any, Generic, cast

from langchain_core.callbacks import AsyncCallbackManagerForChainRun, CallbackManagerForChainRun
from langchain_core.load.serializable import SerializedNotImplemented
from langchain_core.messages import BaseMessage
from langchain_core.messages.utils import MessageLikeRepresentation
from langchain_core.prompt_values import PromptValue
from langchain_core.runnables import RunnableConfig, RunnableSerializable
from pydantic import InstanceOf
from pydantic.json_schema import SkipJsonSchema
from typing_extensions import TypeVar

from adaptllm_chain.chain.batch_driver import arun_batch, run_batch
from adaptllm_chain.chain.chunks import ajoin_chunks, join_chunks
from adaptllm_chain.chain.inputs import AdaptiveInput, QuestionMapping
from adaptllm_chain.chain.plan import Plan
from adaptllm_chain.chain.services import Services
from adaptllm_chain.chain.settings import check_concurrency
from adaptllm_chain.chain.stream_driver import arun_stream, run_stream

# With a default: a field of a chain may then hold chains with any answers.
A = TypeVar("A", default=Any)


class DrivenRunnable(RunnableSerializable[AdaptiveInput, A], Generic[A]):
    """A Runnable that is told once what to do, as a plan, and can be run in every way of LangChain's.

    The type in brackets is that of its results: ``class MyChain(DrivenRunnable[MyAnswer])``.
    """

    @abstractmethod
    def _plan(self, value: AdaptiveInput, config: RunnableConfig) -> Plan:
        """Plan one question with the settings in its config, which may be wrong; bad input raises only when started."""

    @abstractmethod
    def _services(self, arguments: Mapping[str, Any]) -> Services:
        """Gather what carries out the errands, with the arguments of this call."""

    @abstractmethod
    def _shown(self) -> Mapping[str, str]:
        """The settings that dumps and traces show, as text."""

    @property
    def InputType(self) -> Any:  # noqa: N802
        """The forms in which a question is accepted; a prompt value is not in the JSON schema, having no JSON."""
        in_python_alone = SkipJsonSchema[InstanceOf[PromptValue]]
        return str | QuestionMapping | BaseMessage | list[MessageLikeRepresentation] | in_python_alone

    def to_json_not_implemented(self) -> SerializedNotImplemented:
        """Describe the chain for ``dumps`` and traces.

        It can be written, not loaded: its retriever and, mostly, its model are of kinds that LangChain does not load.

        Returns:
            The class and some settings, but neither models nor retriever: arguments bound to them may hold a key.
        """
        shown = ", ".join(f"{name}={text}" for name, text in self._shown().items())
        return {"lc": 1, "type": "not_implemented", "id": self.lc_id(), "repr": f"{type(self).__name__}({shown})"}

    def invoke(self, input: AdaptiveInput, config: RunnableConfig | None = None, **kwargs: Any) -> A:  # noqa: A002
        """Answer one question.

        Args:
            input: The question.
            config: LangChain's config.
            **kwargs: ``stop``, instead of the chain's; others go to the model.

        Returns:
            The result.
        """
        return self._call_with_config(self._invoke, input, config, **kwargs)

    async def ainvoke(
        self,
        input: AdaptiveInput,  # noqa: A002
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> A:
        """Answer one question.

        Args:
            input: The question.
            config: LangChain's config.
            **kwargs: ``stop``, instead of the chain's; others go to the model.

        Returns:
            The result.
        """
        return await self._acall_with_config(self._ainvoke, input, config, **kwargs)

    def batch(
        self,
        inputs: list[AdaptiveInput],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[A]:
        """Answer many questions together: what several of them wait for is one call.

        Args:
            inputs: The questions.
            config: LangChain's config, or one for each; ``max_concurrency`` limits the prompts in a call.
            return_exceptions: Whether a question that fails yields its exception; the others' results come.
            **kwargs: ``stop``, instead of the chain's; others go to the model.

        Returns:
            The results in order.
        """
        return self._batch_with_config(self._batch, inputs, config, return_exceptions=return_exceptions, **kwargs)

    async def abatch(
        self,
        inputs: list[AdaptiveInput],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[A]:
        """Answer many questions together: what several of them wait for is one call.

        Args:
            inputs: The questions.
            config: LangChain's config, or one for each; ``max_concurrency`` limits the prompts in a call.
            return_exceptions: Whether a question that fails yields its exception; the others' results come.
            **kwargs: ``stop``, instead of the chain's; others go to the model.

        Returns:
            The results in order.
        """
        return await self._abatch_with_config(
            self._abatch, inputs, config, return_exceptions=return_exceptions, **kwargs
        )

    def stream(
        self,
        input: AdaptiveInput,  # noqa: A002
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Iterator[A]:
        """Answer one question piece by piece.

        Args:
            input: The question.
            config: LangChain's config.
            **kwargs: ``stop``, instead of the chain's; others go to the model.

        Yields:
            Parts of the result that can be added, each as soon as it is known.
        """
        yield from self.transform(iter([input]), config, **kwargs)

    async def astream(
        self,
        input: AdaptiveInput,  # noqa: A002
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[A]:
        """Answer one question piece by piece.

        Args:
            input: The question.
            config: LangChain's config.
            **kwargs: ``stop``, instead of the chain's; others go to the model.

        Yields:
            Parts of the result that can be added, each as soon as it is known.
        """
        async with aclosing(self.atransform(_once(input), config, **kwargs)) as chunks:
            async for chunk in chunks:
                yield chunk

    def transform(
        self,
        input: Iterator[AdaptiveInput],  # noqa: A002
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Iterator[A]:
        """Answer one question that itself comes as a stream.

        Args:
            input: The question in pieces; it is answered when it is complete.
            config: LangChain's config.
            **kwargs: ``stop``, instead of the chain's; others go to the model.

        Yields:
            Parts of the result, as ``stream`` does.
        """
        yield from self._transform_stream_with_config(input, self._transform, config, **kwargs)

    async def atransform(
        self,
        input: AsyncIterator[AdaptiveInput],  # noqa: A002
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AsyncGenerator[A, None]:
        """Answer one question that itself comes as a stream.

        Args:
            input: The question in pieces; it is answered when it is complete.
            config: LangChain's config.
            **kwargs: ``stop``, instead of the chain's; others go to the model.

        Yields:
            Parts of the result, as ``stream`` does.
        """
        chunks = self._atransform_stream_with_config(input, self._atransform, config, **kwargs)
        # A stream that is closed early stops the model before it is closed, not when the loop gets round to it.
        async with aclosing(cast("AsyncGenerator[A, None]", chunks)):
            async for chunk in chunks:
                yield chunk

    def _lazy_plan(self, value: AdaptiveInput, config: RunnableConfig) -> Plan:
        # Its settings, too, are read only when it starts: wrong ones fail their own question, and no other of a batch.
        yield from self._plan(value, config)

    # The workers: LangChain opens and closes the runs around them; their config is for the run's children.

    def _invoke(
        self, value: AdaptiveInput, run_manager: CallbackManagerForChainRun, config: RunnableConfig, **kwargs: Any
    ) -> A:
        check_concurrency(config)
        (result,) = run_batch([self._lazy_plan(value, config)], self._services(kwargs), [config])
        return cast("A", _raised(result))

    async def _ainvoke(
        self, value: AdaptiveInput, run_manager: AsyncCallbackManagerForChainRun, config: RunnableConfig, **kwargs: Any
    ) -> A:
        check_concurrency(config)
        (result,) = await arun_batch([self._lazy_plan(value, config)], self._services(kwargs), [config])
        return cast("A", _raised(result))

    def _batch(
        self,
        values: list[AdaptiveInput],
        run_manager: list[CallbackManagerForChainRun],
        config: list[RunnableConfig],
        **kwargs: Any,
    ) -> list[A | Exception]:
        check_concurrency(*config)
        plans = [self._lazy_plan(value, own) for value, own in zip(values, config, strict=True)]
        return cast("list[A | Exception]", run_batch(plans, self._services(kwargs), config))

    async def _abatch(
        self,
        values: list[AdaptiveInput],
        run_manager: list[AsyncCallbackManagerForChainRun],
        config: list[RunnableConfig],
        **kwargs: Any,
    ) -> list[A | Exception]:
        check_concurrency(*config)
        plans = [self._lazy_plan(value, own) for value, own in zip(values, config, strict=True)]
        return cast("list[A | Exception]", await arun_batch(plans, self._services(kwargs), config))

    def _transform(
        self,
        values: Iterator[AdaptiveInput],
        run_manager: CallbackManagerForChainRun,
        config: RunnableConfig,
        **kwargs: Any,
    ) -> Iterator[Any]:
        check_concurrency(config)
        for value in join_chunks(values):
            yield from run_stream(self._plan(value, config), self._services(kwargs), config)

    async def _atransform(
        self,
        values: AsyncIterator[AdaptiveInput],
        run_manager: AsyncCallbackManagerForChainRun,
        config: RunnableConfig,
        **kwargs: Any,
    ) -> AsyncIterator[Any]:
        check_concurrency(config)
        async for value in ajoin_chunks(values):
            async with aclosing(arun_stream(self._plan(value, config), self._services(kwargs), config)) as chunks:
                async for chunk in chunks:
                    yield chunk


async def _once(value: AdaptiveInput) -> AsyncIterator[AdaptiveInput]:
    yield value


def _raised(result: dict[str, Any] | Exception) -> dict[str, Any]:
    if isinstance(result, Exception):
        raise result
    return result
