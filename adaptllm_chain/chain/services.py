"""What a driver needs to carry out the steps of plans."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from adaptllm_chain.chain.model_calls import ModelCalls
from adaptllm_chain.chain.plan import Ask, Errand
from adaptllm_chain.chain.service import Service


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The models, and who does the other errands.

    Attributes:
        models: The model for each kind of prompt.
        others: Who does each other kind of errand, in the order in which they take their turns.
        marker: How the models spell their request.
    """

    models: Mapping[type[Ask], ModelCalls]
    others: Mapping[type[Errand], Service[Any]]
    marker: str

    def whose_turn(self, waiting: Iterable[Errand]) -> tuple[type[Errand], Service[Any]]:
        """Choose which of the errands that wait are carried out next.

        Args:
            waiting: The errands, at least one.

        Returns:
            Their kind and who does it. Prompts come last, so that those to which the other errands lead are put to the
            model together.
        """
        kinds = set(map(type, waiting))
        turns: list[tuple[type[Errand], Service[Any]]] = [*self.others.items(), *self.models.items()]
        return next(turn for turn in turns if turn[0] in kinds)
