"""A decision model that is asked, before anything else, whether a question needs retrieval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_core.language_models import BaseLanguageModel
from langchain_core.runnables import Runnable
from pydantic import ValidationError

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.records import RetSignal

if TYPE_CHECKING:
    from adaptllm_chain.ret.langchain_decisions import ClassifierRequest, Noul

# The name under which the judge is asked, and answers.
_ASKED = "needs_retrieval"


@dataclass(frozen=True, slots=True)
class Judge:
    """A decision model and what it is asked about each question.

    Attributes:
        model: The decision model.
        noul: The yes-or-no question whose "yes" stands for retrieval.
    """

    model: Runnable[Any, Any]
    noul: Noul

    @classmethod
    def asking(cls, model: Any, instructions: Any, criteria: Any = None) -> Judge:
        """Check a decision model and word what it is asked.

        Args:
            model: A LangChain decision model, or a Runnable that answers the same requests.
            instructions: The yes-or-no question, as text or JSON; "yes" stands for retrieval.
            criteria: What counts as yes and as no: LangChain's ``NoulCriteria``, or a mapping with the keys
                ``"true"`` and ``"false"``.

        Returns:
            The judge.

        Raises:
            InvalidInputError: If the model is none, or the wording is not one that LangChain accepts.
        """
        from adaptllm_chain.ret.langchain_decisions import Noul

        if not isinstance(model, Runnable) or isinstance(model, BaseLanguageModel):
            raise InvalidInputError(
                f"the decision model is a {type(model).__name__}: {model!r:.80}",
                expected="a LangChain decision model, or a Runnable that answers the same requests",
                hint="TransformersDecisionModel(pipeline=…) makes one of pipeline('decision'), RunnableLambda(…) "
                "one of a function; a language model decides for itself with policy=Adaptive()",
            )
        try:
            noul = Noul(instructions=instructions, criteria=criteria)
        except ValidationError as error:
            raise InvalidInputError(
                f"a decision model cannot be asked instructions={instructions!r:.80}, criteria={criteria!r:.80}",
                expected="instructions as text or JSON; criteria as NoulCriteria, or a mapping with 'true' and 'false'",
                hint='criteria={"true": "Rare or recent facts.", "false": "Common knowledge."}',
            ) from error
        return cls(model, noul)

    def request(self, question: str) -> ClassifierRequest:
        """Word what the model is asked about one question.

        Args:
            question: The question, which is the state that is judged.

        Returns:
            The decision model's input.
        """
        return {"state": question, "questions": {_ASKED: self.noul}}

    def read(self, response: Any) -> RetSignal:
        """Read the model's answer.

        Args:
            response: What it returned for a ``request``.

        Returns:
            The probability that retrieval is needed, of kind ``"judged"``.

        Raises:
            InvalidInputError: If there is no such answer in it.
        """
        from adaptllm_chain.ret.langchain_decisions import ClassifierResponse

        answer = response.nouls.get(_ASKED) if isinstance(response, ClassifierResponse) else None
        if answer is None:
            raise InvalidInputError(
                f"the decision model returned {response!r:.120}",
                expected=f"a langchain_core.decisions.ClassifierResponse with a NoulAnswer under {_ASKED!r}",
                hint="answers are keyed by the names in the request's 'questions'",
            )
        return RetSignal(probability=answer.noul, kind="judged")
