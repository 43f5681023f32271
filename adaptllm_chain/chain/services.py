"""What a driver needs to carry out the steps of a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig

from adaptllm_chain.chain.isolation import aisolated, call_config, isolated
from adaptllm_chain.chain.model_calls import ModelCalls
from adaptllm_chain.chain.plan import Search
from adaptllm_chain.errors import InvalidInputError

# The name of the custom event that listeners get for each decision.
DECISION_EVENT = "decision"


@dataclass(frozen=True, slots=True)
class Services:
    """The model, the retriever and the settings that concern outputs.

    Attributes:
        model: The model.
        retriever: The retriever; ``None`` only under a policy that never searches.
        stops: Texts at which an answer ends.
        marker: How the model spells its request.
    """

    model: ModelCalls
    retriever: Runnable[Any, Any] | None
    stops: Sequence[str]
    marker: str

    def search(self, steps: Sequence[Search], configs: Sequence[RunnableConfig]) -> list[list[Document] | Exception]:
        """Search for several queries together.

        Args:
            steps: The searches.
            configs: The config for the children of each one's run.

        Returns:
            The passages in order; an exception stands for the search that failed.
        """
        assert self.retriever is not None
        retriever = self.retriever

        def call(queries: list[str], own: list[RunnableConfig]) -> Sequence[list[Document] | Exception]:
            return [_documents_of(found) for found in retriever.batch(queries, own, return_exceptions=True)]

        return isolated(call, [step.query for step in steps], _search_configs(configs))

    async def asearch(
        self, steps: Sequence[Search], configs: Sequence[RunnableConfig]
    ) -> list[list[Document] | Exception]:
        """Search for several queries together.

        Args:
            steps: The searches.
            configs: The config for the children of each one's run.

        Returns:
            The passages in order; an exception stands for the search that failed.
        """
        assert self.retriever is not None
        retriever = self.retriever

        async def call(queries: list[str], own: list[RunnableConfig]) -> Sequence[list[Document] | Exception]:
            return [_documents_of(found) for found in await retriever.abatch(queries, own, return_exceptions=True)]

        return await aisolated(call, [step.query for step in steps], _search_configs(configs))


def _search_configs(configs: Sequence[RunnableConfig]) -> list[RunnableConfig]:
    return [call_config(config, "adaptllm:search") for config in configs]


def _documents_of(found: Any) -> list[Document] | Exception:
    if isinstance(found, Exception):
        return found
    if isinstance(found, list | tuple) and all(isinstance(item, Document) for item in found):
        return list(found)
    return InvalidInputError(
        f"the retriever returned {found!r:.80}",
        expected="a list of langchain_core.documents.Document",
        hint="a retriever takes the query as text; wrap yours in a function that returns Documents",
    )
