"""The policy that leaves the decision to one of LangChain's decision models."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field, PrivateAttr

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.records import Decision, PromptKind
from adaptllm_chain.ret.judge import Judge
from adaptllm_chain.ret.policies import Evidence, Policy

INSTRUCTIONS = "Does one have to look this question up, because its answer is not common knowledge?"


class DecisionModelPolicy(Policy):
    """Asks a LangChain decision model whether a question needs retrieval.

    The language model is then asked once alone: with the closed-book prompt, or with the passages. All
    questions of a batch are put to the decision model in one ``batch``.

    Not in the paper: "When to Retrieve" trains the language model to decide for itself (``Adaptive``).

    Attributes:
        model: A ``langchain_core.decisions.BaseDecisionModel``, or any Runnable from its requests to its responses.
            The state that it judges is the text of the question.
        instructions: The yes-or-no question that it is asked; "yes" stands for retrieval.
        criteria: What counts as yes and as no: LangChain's ``NoulCriteria``, or a mapping with the keys ``"true"``
            and ``"false"``.
        threshold: Retrieve if the probability of yes is at least that.
    """

    name: ClassVar[str] = "decision_model"
    needs: ClassVar[tuple[PromptKind, ...]] = ("closed_book", "context")

    # Any: checked by Judge, which says what to type.
    model: Any = Field(exclude=True)
    instructions: Any = INSTRUCTIONS
    criteria: Any = None
    threshold: float = Field(default=0.5, ge=0.0, le=1.0, examples=[0.5])

    _judge: Judge = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Check the decision model and what it is asked.

        Args:
            context: Pydantic's; not used.
        """
        self._judge = Judge.asking(self.model, self.instructions, self.criteria)

    @property
    def judge(self) -> Judge:
        """The decision model and what it is asked."""
        return self._judge

    def decide(self, evidence: Evidence) -> Decision:
        """Compare the decision model's probability with the threshold.

        Args:
            evidence: The signal of the judge.

        Returns:
            The decision.

        Raises:
            InvalidInputError: If the judge was not asked.
        """
        probability = evidence.signal.probability
        if evidence.signal.kind != "judged" or probability is None:
            raise InvalidInputError(
                f"the evidence on {evidence.question!r} holds no answer of the decision model: {evidence.signal!r}",
                expected='a signal of kind "judged"',
                hint="policy.judge.read(policy.judge.model.invoke(policy.judge.request(question)))",
            )
        retrieves = probability >= self.threshold
        side = "reaches" if retrieves else "is below"
        return Decision(
            route="retrieve" if retrieves else "direct",
            rule="decision_model",
            reason=f"the decision model's probability that retrieval is needed, {probability:.3g}, {side} "
            f"the threshold {self.threshold:g}",
            signal=evidence.signal,
            threshold=self.threshold,
        )
