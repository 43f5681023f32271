"""Telling listeners what was decided: as an event while it happens, and as a run that traces keep."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from langchain_core.callbacks.manager import adispatch_custom_event, dispatch_custom_event
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda

from adaptllm_chain.chain.isolation import call_config
from adaptllm_chain.records import Decision

# The name of the custom event that listeners get for each decision, and of its run in traces.
DECISION_EVENT = "decision"


async def _aasdict(decision: Decision) -> dict[str, Any]:
    return asdict(decision)


# LangChain's tracers write down runs, and no custom events.
_RECORD: Runnable[Decision, dict[str, Any]] = RunnableLambda(asdict, _aasdict, name=DECISION_EVENT)


def announce(decision: Decision, config: RunnableConfig) -> None:
    """Tell listeners and tracers what was decided.

    Args:
        decision: The decision.
        config: The config for the children of the question's run.
    """
    dispatch_custom_event(DECISION_EVENT, decision, config=config)
    _RECORD.invoke(decision, call_config(config, "adaptllm:decide"))


async def aannounce(decision: Decision, config: RunnableConfig) -> None:
    """Tell listeners and tracers what was decided.

    Args:
        decision: The decision.
        config: The config for the children of the question's run.
    """
    await adispatch_custom_event(DECISION_EVENT, decision, config=config)
    await _RECORD.ainvoke(decision, call_config(config, "adaptllm:decide"))
