"""Decision models that follow a script, and the ways to run one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from langchain_core.decisions import BaseDecisionModel, ClassifierResponse, NoulAnswer
from langchain_core.runnables import Runnable
from pydantic import Field


class ScriptedJudge(BaseDecisionModel):
    """Answers every question about a state with the probability that its script gives; counts its batches."""

    model: str = "scripted"
    says: Callable[[Any], float] = Field(exclude=True)
    batches: list[int] = Field(default_factory=list, exclude=True)
    asked: list[Any] = Field(default_factory=list, exclude=True)

    @property
    def _provider(self) -> str:
        return "tests"

    def _classify(self, state: Any, questions: dict[str, Any]) -> ClassifierResponse:
        self.asked.append(state)
        probability = self.says(state)
        return ClassifierResponse(
            model=self.model, answers={name: NoulAnswer(type="noul", noul=probability) for name in questions}
        )

    def batch(self, inputs: list[Any], *args: Any, **kwargs: Any) -> Any:
        self.batches.append(len(inputs))
        return super().batch(inputs, *args, **kwargs)

    async def abatch(self, inputs: list[Any], *args: Any, **kwargs: Any) -> Any:
        self.batches.append(len(inputs))
        return await super().abatch(inputs, *args, **kwargs)


async def _astreamed(runnable: Runnable[Any, Any], value: Any, **kwargs: Any) -> list[Any]:
    return [chunk async for chunk in runnable.astream(value, **kwargs)]


def _only(chunks: list[Any]) -> Any:
    (chunk,) = chunks
    return chunk


# Every way of asking a decision model; each returns the response.
WAYS_TO_DECIDE: dict[str, Callable[..., Any]] = {
    "invoke": lambda model, value, **kwargs: model.invoke(value, **kwargs),
    "batch": lambda model, value, **kwargs: _only(model.batch([value], **kwargs)),
    "stream": lambda model, value, **kwargs: _only(list(model.stream(value, **kwargs))),
    "ainvoke": lambda model, value, **kwargs: asyncio.run(model.ainvoke(value, **kwargs)),
    "abatch": lambda model, value, **kwargs: _only(asyncio.run(model.abatch([value], **kwargs))),
    "astream": lambda model, value, **kwargs: _only(asyncio.run(_astreamed(model, value, **kwargs))),
}
