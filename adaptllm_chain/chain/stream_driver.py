"""Driving one plan as a stream: what is known is passed on at once, the marker never."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.utils import AddableDict

from adaptllm_chain.chain.announcing import aannounce, announce
from adaptllm_chain.chain.listener import InfoListener
from adaptllm_chain.chain.outputs import StreamedOutput, text_of
from adaptllm_chain.chain.plan import Announce, Consult, Plan, Rest, Search, Step, Tell
from adaptllm_chain.chain.services import Services

_END = object()


def run_stream(plan: Plan, services: Services, config: RunnableConfig) -> Iterator[AddableDict]:
    """Drive a plan to its end.

    Args:
        plan: The plan.
        services: What carries out its steps.
        config: The config for the children of its run.

    Yields:
        Parts of the result; added up, they are what ``run_batch`` returns.
    """
    output = _new_output(services)
    chunks: Iterator[Any] = iter(())
    reply: Any = None
    try:
        while (step := _next_step(plan, reply)) is not None:
            reply = None
            if isinstance(step, Tell):
                yield AddableDict(step.keys)
            elif isinstance(step, Announce):
                announce(step.decision, config)
            elif isinstance(step, Rest):
                for piece in _answer(output, chunks):
                    yield AddableDict(answer=piece)
            elif isinstance(step, Search):
                _end(chunks)
                reply = _raised(services.search([step], [config])[0])
            elif isinstance(step, Consult):
                reply = _raised(services.consult([step], [config])[0])
            else:
                _end(chunks)
                output = _new_output(services, step.prompt)
                chunks = iter(services.model.stream(step, config, output.listener))
                for chunk in chunks:
                    output.hold(chunk)
                    if output.settled:
                        break
                else:
                    output.finish()
                reply = output.opening()
        _end(chunks)
    finally:
        _close(chunks)
        plan.close()


async def arun_stream(plan: Plan, services: Services, config: RunnableConfig) -> AsyncIterator[AddableDict]:
    """Drive a plan to its end.

    Args:
        plan: The plan.
        services: What carries out its steps.
        config: The config for the children of its run.

    Yields:
        Parts of the result; added up, they are what ``arun_batch`` returns.
    """
    output = _new_output(services)
    chunks: AsyncIterator[Any] = _nothing()
    reply: Any = None
    try:
        while (step := _next_step(plan, reply)) is not None:
            reply = None
            if isinstance(step, Tell):
                yield AddableDict(step.keys)
            elif isinstance(step, Announce):
                await aannounce(step.decision, config)
            elif isinstance(step, Rest):
                async for piece in _aanswer(output, chunks):
                    yield AddableDict(answer=piece)
            elif isinstance(step, Search):
                await _aend(chunks)
                reply = _raised((await services.asearch([step], [config]))[0])
            elif isinstance(step, Consult):
                reply = _raised((await services.aconsult([step], [config]))[0])
            else:
                await _aend(chunks)
                output = _new_output(services, step.prompt)
                chunks = aiter(services.model.astream(step, config, output.listener))
                async for chunk in chunks:
                    output.hold(chunk)
                    if output.settled:
                        break
                else:
                    output.finish()
                reply = output.opening()
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


def _new_output(services: Services, prompt: str = "") -> StreamedOutput:
    return StreamedOutput(prompt, InfoListener(), services.stops, services.marker)


def _answer(output: StreamedOutput, chunks: Iterator[Any]) -> Iterator[str]:
    """The answer in pieces, at least one of them, so that the result has an answer."""
    said = False
    for piece in _pieces(output, chunks):
        said = said or bool(piece)
        if piece:
            yield piece
    last = output.last()
    if last or not said:
        yield last


async def _aanswer(output: StreamedOutput, chunks: AsyncIterator[Any]) -> AsyncIterator[str]:
    said = False
    async for piece in _apieces(output, chunks):
        said = said or bool(piece)
        if piece:
            yield piece
    last = output.last()
    if last or not said:
        yield last


def _pieces(output: StreamedOutput, chunks: Iterator[Any]) -> Iterator[str]:
    yield from output.held()
    while not output.done and (chunk := next(chunks, _END)) is not _END:
        yield output.pass_on(chunk)


async def _apieces(output: StreamedOutput, chunks: AsyncIterator[Any]) -> AsyncIterator[str]:
    for piece in output.held():
        yield piece
    while not output.done and (chunk := await anext(chunks, _END)) is not _END:
        yield output.pass_on(chunk)


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
