"""What carries out the errands of one kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from langchain_core.runnables import RunnableConfig

from adaptllm_chain.chain.plan import Errand

E = TypeVar("E", bound=Errand)


class Service(ABC, Generic[E]):
    """Carries out errands of one kind, for many plans together."""

    @abstractmethod
    def batch(self, errands: Sequence[E], configs: Sequence[RunnableConfig]) -> Sequence[Any]:
        """Carry out errands together.

        Args:
            errands: The errands, at least one.
            configs: The config for the children of each one's run.

        Returns:
            The replies in order; an exception stands for the errand that failed.
        """

    @abstractmethod
    async def abatch(self, errands: Sequence[E], configs: Sequence[RunnableConfig]) -> Sequence[Any]:
        """Carry out errands together.

        Args:
            errands: The errands, at least one.
            configs: The config for the children of each one's run.

        Returns:
            The replies in order; an exception stands for the errand that failed.
        """
