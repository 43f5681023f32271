"""What a driver needs to carry out the steps of a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig

from adaptllm_chain.chain.batched_calls import BatchedCall
from adaptllm_chain.chain.model_calls import ModelCalls
from adaptllm_chain.chain.plan import Consult, Search
from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.records import RetSignal
from adaptllm_chain.ret import Judge


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The model, the retriever, the decision model and the settings that concern outputs.

    Attributes:
        model: The model.
        retriever: The retriever; ``None`` only under a policy that never searches.
        judge: The decision model that the policy asks, if it asks one.
        stops: Texts at which an answer ends.
        marker: How the model spells its request.
    """

    model: ModelCalls
    retriever: Runnable[Any, Any] | None
    judge: Judge | None = None
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
        return self._searching().batch([step.query for step in steps], configs)

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
        return await self._searching().abatch([step.query for step in steps], configs)

    def consult(self, steps: Sequence[Consult], configs: Sequence[RunnableConfig]) -> list[RetSignal | Exception]:
        """Ask the decision model about several questions together.

        Args:
            steps: The questions.
            configs: The config for the children of each one's run.

        Returns:
            What it said, in order; an exception stands for the question that failed.
        """
        return self._consulting().batch([step.question for step in steps], configs)

    async def aconsult(
        self, steps: Sequence[Consult], configs: Sequence[RunnableConfig]
    ) -> list[RetSignal | Exception]:
        """Ask the decision model about several questions together.

        Args:
            steps: The questions.
            configs: The config for the children of each one's run.

        Returns:
            What it said, in order; an exception stands for the question that failed.
        """
        return await self._consulting().abatch([step.question for step in steps], configs)

    def _searching(self) -> BatchedCall[list[Document]]:
        assert self.retriever is not None
        return BatchedCall(self.retriever, "adaptllm:search", prepare=str, read=_documents_of)

    def _consulting(self) -> BatchedCall[RetSignal]:
        assert self.judge is not None
        return BatchedCall(self.judge.model, "adaptllm:consult", prepare=self.judge.request, read=self.judge.read)


def _documents_of(found: Any) -> list[Document]:
    if isinstance(found, list | tuple) and all(isinstance(item, Document) for item in found):
        return list(found)
    raise InvalidInputError(
        f"the retriever returned {found!r:.80}",
        expected="a list of langchain_core.documents.Document",
        hint="a retriever takes the query as text; wrap yours in a function that returns Documents",
    )
