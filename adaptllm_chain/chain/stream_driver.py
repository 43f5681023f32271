"""Driving one plan as a stream: what is known is passed on at once, the marker never."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing
from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.utils import AddableDict

from adaptllm_chain.chain.listener import InfoListener
from adaptllm_chain.chain.outputs import Retelling, StreamedOutput, text_of
from adaptllm_chain.chain.plan import Announce, Ask, Plan, Read, Rest, Step, Tell
from adaptllm_chain.chain.services import Services

_END = object()


def run_stream(plan: Plan, services: Services, config: RunnableConfig) -> Iterator[AddableDict]:
    """Drive a plan to its end.

    Args:
        plan: The plan.
        services: What carries out its errands.
        config: The config for the children of its run.

    Yields:
        Parts of the result; added up, they are what ``run_batch`` returns.
    """
    output = StreamedOutput("", InfoListener(), (), services.marker)
    chunks: Iterator[Any] = iter(())
    reply: Any = None
    try:
        while (step := _next_step(plan, reply)) is not None:
            reply = None
            if isinstance(step, Tell):
                yield AddableDict(step.keys)
            elif isinstance(step, Rest | Read):
                retelling = Retelling(step)
                for piece in _retold(retelling, output, chunks):
                    yield AddableDict(answer=piece)
                reply = retelling.text
            elif isinstance(step, Ask):
                _end(chunks)
                model = services.models[type(step)]
                output = StreamedOutput(step.prompt, InfoListener(), model.stops, services.marker)
                chunks = iter(model.stream(step, config, output.listener))
                _hold(output, chunks)
                reply = output.opening()
            else:
                # Listeners are told of what the model says while it goes on.
                if not isinstance(step, Announce):
                    _end(chunks)
                _, service = services.whose_turn([step])
                reply = _raised(service.batch([step], [config])[0])
        _end(chunks)
    finally:
        _close(chunks)
        plan.close()


async def arun_stream(plan: Plan, services: Services, config: RunnableConfig) -> AsyncGenerator[AddableDict, None]:
    """Drive a plan to its end.

    Args:
        plan: The plan.
        services: What carries out its errands.
        config: The config for the children of its run.

    Yields:
        Parts of the result; added up, they are what ``arun_batch`` returns.
    """
    output = StreamedOutput("", InfoListener(), (), services.marker)
    chunks: AsyncIterator[Any] = _nothing()
    reply: Any = None
    try:
        while (step := _next_step(plan, reply)) is not None:
            reply = None
            if isinstance(step, Tell):
                yield AddableDict(step.keys)
            elif isinstance(step, Rest | Read):
                retelling = Retelling(step)
                async with aclosing(_aretold(retelling, output, chunks)) as pieces:
                    async for piece in pieces:
                        yield AddableDict(answer=piece)
                reply = retelling.text
            elif isinstance(step, Ask):
                await _aend(chunks)
                model = services.models[type(step)]
                output = StreamedOutput(step.prompt, InfoListener(), model.stops, services.marker)
                chunks = aiter(model.astream(step, config, output.listener))
                await _ahold(output, chunks)
                reply = output.opening()
            else:
                # Listeners are told of what the model says while it goes on.
                if not isinstance(step, Announce):
                    await _aend(chunks)
                _, service = services.whose_turn([step])
                reply = _raised((await service.abatch([step], [config]))[0])
        await _aend(chunks)
    finally:
        await _aclose(chunks)
        plan.close()


def _next_step(plan: Plan, reply: Any) -> Step | None:
    try:
        return plan.send(reply)
    except StopIteration:
        return None


def _raised(found: Any) -> Any:
    if isinstance(found, Exception):
        raise found
    return found


def _hold(output: StreamedOutput, chunks: Iterator[Any]) -> None:
    """Take chunks until the opening can be read."""
    for chunk in chunks:
        output.hold(chunk)
        if output.settled:
            return
    output.finish()


async def _ahold(output: StreamedOutput, chunks: AsyncIterator[Any]) -> None:
    async for chunk in chunks:
        output.hold(chunk)
        if output.settled:
            return
    output.finish()


def _retold(retelling: Retelling, output: StreamedOutput, chunks: Iterator[Any]) -> Iterator[str]:
    """What of the output is passed on as the answer, in pieces."""
    for text in output.held():
        yield from retelling.push(text)
    while not output.done and (chunk := next(chunks, _END)) is not _END:
        yield from retelling.push(output.pass_on(chunk))
    yield from retelling.finish(output.last())


async def _aretold(
    retelling: Retelling, output: StreamedOutput, chunks: AsyncIterator[Any]
) -> AsyncGenerator[str, None]:
    for text in output.held():
        for piece in retelling.push(text):
            yield piece
    while not output.done and (chunk := await anext(chunks, _END)) is not _END:
        for piece in retelling.push(output.pass_on(chunk)):
            yield piece
    for piece in retelling.finish(output.last()):
        yield piece


# A model that is interrupted has its run traced as failed. One that says <RET> has mostly finished, so
# it may end by itself as long as it says nothing more; then it is stopped.


def _end(chunks: Iterator[Any]) -> None:
    for chunk in chunks:
        if text_of(chunk):
            break
    _close(chunks)


async def _aend(chunks: AsyncIterator[Any]) -> None:
    async for chunk in chunks:
        if text_of(chunk):
            break
    await _aclose(chunks)


def _close(chunks: Iterator[Any]) -> None:
    close = getattr(chunks, "close", None)
    if close is not None:
        close()


async def _aclose(chunks: AsyncIterator[Any]) -> None:
    aclose = getattr(chunks, "aclose", None)
    if aclose is not None:
        await aclose()


async def _nothing() -> AsyncIterator[Any]:
    return
    yield
