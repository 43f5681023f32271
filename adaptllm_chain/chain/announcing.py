"""Telling listeners what was decided: as an event while it happens, and as a run that traces keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from langchain_core.callbacks.manager import adispatch_custom_event, dispatch_custom_event
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda

from adaptllm_chain.chain.isolation import call_config
from adaptllm_chain.chain.plan import Announce
from adaptllm_chain.chain.service import Service

# The name of the custom event that listeners get for each decision, and of its run in traces.
DECISION_EVENT = "decision"


async def _aasdict(what: Any) -> dict[str, Any]:
    return asdict(what)


# LangChain's tracers write down runs, and no custom events. The run comes first: astream_events writes the question
# into the data of the first event that passes its filters, and what is announced cannot be written into.
_RECORD: Runnable[Any, dict[str, Any]] = RunnableLambda(asdict, _aasdict)


@dataclass(frozen=True, slots=True)
class Announcing(Service[Announce]):
    """Tells listeners and tracers.

    A callback handler with ``raise_error=True`` fails the question that it was told of, and no other.

    Attributes:
        event: The name of the custom event, and of its run in traces.
        tag: The run's tag.
    """

    event: str = DECISION_EVENT
    tag: str = "adaptllm:decide"

    def batch(self, errands: Sequence[Announce], configs: Sequence[RunnableConfig]) -> list[Exception | None]:
        """Tell of several questions, one after the other.

        Args:
            errands: What is told.
            configs: The config for the children of each question's run.

        Returns:
            Nothing for each; an exception stands for the question whose listener failed.
        """
        outcomes: list[Exception | None] = []
        for errand, config in zip(errands, configs, strict=True):
            try:
                _RECORD.invoke(errand.what, self._recorded(config))
                dispatch_custom_event(self.event, errand.what, config=config)
                outcomes.append(None)
            except Exception as error:
                outcomes.append(error)
        return outcomes

    async def abatch(self, errands: Sequence[Announce], configs: Sequence[RunnableConfig]) -> list[Exception | None]:
        """Tell of several questions, one after the other.

        Args:
            errands: What is told.
            configs: The config for the children of each question's run.

        Returns:
            Nothing for each; an exception stands for the question whose listener failed.
        """
        outcomes: list[Exception | None] = []
        for errand, config in zip(errands, configs, strict=True):
            try:
                await _RECORD.ainvoke(errand.what, self._recorded(config))
                await adispatch_custom_event(self.event, errand.what, config=config)
                outcomes.append(None)
            except Exception as error:
                outcomes.append(error)
        return outcomes

    def _recorded(self, config: RunnableConfig) -> RunnableConfig:
        return {**call_config(config, self.tag), "run_name": self.event}
