"""Answers from passages whose sentences say which passage supports them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Generic, Literal

from langchain_core.runnables import ConfigurableFieldSpec, Runnable, RunnableConfig
from langchain_core.runnables.utils import get_unique_config_specs
from pydantic import ConfigDict, Field, ValidationError

from adaptllm_chain.agree.answers import GroundedAnswer, told_first, told_last
from adaptllm_chain.agree.passages import PASSAGES, distinct
from adaptllm_chain.agree.prompts import GroundedPrompt
from adaptllm_chain.agree.response import ResponseFilter, parse_response
from adaptllm_chain.agree.services import grounding
from adaptllm_chain.agree.steps import Draft, Find
from adaptllm_chain.chain.call_settings import k_of_call
from adaptllm_chain.chain.driven import A, DrivenRunnable
from adaptllm_chain.chain.inputs import AdaptiveInput, read_input
from adaptllm_chain.chain.model_calls import ModelCalls
from adaptllm_chain.chain.plan import Plan, Rest, Tell
from adaptllm_chain.chain.services import Services
from adaptllm_chain.chain.settings import RunnableLike, as_runnable, read_stops
from adaptllm_chain.chain.wrappers import prompt_spec_of
from adaptllm_chain.entailment.scorer import EntailmentScorer
from adaptllm_chain.errors import EmptyRetrievalError
from adaptllm_chain.ret import RET
from adaptllm_chain.ret.refusal import refusal

OnEmpty = Literal["abstain", "raise"]
ABSTAIN_TEXT = "I don't know."


class Grounder(DrivenRunnable[A], Generic[A]):
    """A chain that answers with citations; subclasses say how, and the type of their results in brackets.

    Args:
        llm: A LangChain LLM or chat model, or any Runnable or function that makes text of a prompt.
        retriever: A retriever, or any Runnable or function that makes ``Document`` objects of a query.
        prompt: The prompt; by default that of the model's adapter, which refuses any other.
        k: Passages a prompt; five in AGREE (arXiv:2311.09533). A retriever that takes ``k`` is asked for
            as many; of another, the first ones are taken.
        on_empty: What to do when a search brings nothing: ``"abstain"``, or ``"raise"`` an ``EmptyRetrievalError``.
        abstain_text: The answer when abstaining.
        stop: Texts at which an answer ends; passed on to the model, and enforced if it ignores them.
        name: The name of the chain's runs in traces.
        **settings: What a subclass has beside these; its constructor names them all.

    Attributes:
        llm: The model.
        retriever: The retriever.
        prompt: The prompt.
        k: Passages a prompt.
        on_empty: What to do when a search brings nothing.
        abstain_text: The answer when abstaining.
        stop: Texts at which an answer ends.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    llm: Runnable[Any, Any]
    retriever: Runnable[Any, Any]
    prompt: GroundedPrompt
    k: int = Field(ge=1, examples=[PASSAGES])
    on_empty: OnEmpty = Field(examples=["abstain"])
    abstain_text: str
    stop: list[str] | None

    # Written out rather than left to validators: pydantic would wrap our errors in its own.
    def __init__(
        self,
        *,
        llm: RunnableLike,
        retriever: RunnableLike,
        prompt: GroundedPrompt | None,
        k: int,
        on_empty: OnEmpty = "abstain",
        abstain_text: str = ABSTAIN_TEXT,
        stop: Sequence[str] | None,
        name: str | None,
        **settings: Any,
    ) -> None:
        model = as_runnable("llm", llm)
        spec = prompt_spec_of(model)
        if prompt is None:
            prompt = (
                GroundedPrompt() if spec is None or spec.grounded is None else GroundedPrompt(template=spec.grounded)
            )
        if spec is not None:
            spec.check_grounded(prompt.template)
        try:
            super().__init__(
                llm=model,
                retriever=as_runnable("retriever", retriever),
                prompt=prompt,
                k=k,
                on_empty=on_empty,
                abstain_text=abstain_text,
                stop=read_stops(stop) or None,
                name=name,
                **settings,
            )
        except ValidationError as error:
            raise refusal(type(self), error) from error

    @abstractmethod
    def answering(self, question: str, k: int) -> Plan:
        """Plan the answer to one question.

        Args:
            question: The question; the result's ``input`` has been told.
            k: Passages a prompt.

        Returns:
            The plan.
        """

    @property
    def judge(self) -> EntailmentScorer | None:
        """The judge of entailment, for chains that ask one."""
        return None

    @property
    def OutputType(self) -> Any:  # noqa: N802
        """The keys of the result."""
        return GroundedAnswer

    @property
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        """What ``config={"configurable": {…}}`` may hold: ``k``, and what the model and the retriever declare."""
        theirs = get_unique_config_specs(spec for child in (self.llm, self.retriever) for spec in child.config_specs)
        if any(spec.id == "k" for spec in theirs):
            return theirs
        return [_k_spec(self.k), *theirs]

    def k_of(self, config: RunnableConfig) -> int:
        """Read the number of passages for one question.

        Args:
            config: LangChain's config for it.

        Returns:
            The call's ``k``, otherwise the chain's.
        """
        return k_of_call(config) or self.k

    def _plan(self, value: AdaptiveInput, config: RunnableConfig) -> Plan:
        return self._whole_plan(value, self.k_of(config))

    def _whole_plan(self, value: AdaptiveInput, k: int) -> Plan:
        asked = read_input(value)
        yield Tell(told_first(asked))
        yield from self.answering(asked.question, k)

    def _services(self, arguments: Mapping[str, Any]) -> Services:
        return Services(
            models={Draft: ModelCalls(self.llm, self.stop, arguments)},
            others=grounding(self.retriever, self.judge),
            # No output goes on behind a request for retrieval, whatever model it is.
            marker=RET,
        )

    def _shown(self) -> dict[str, str]:
        return {name: repr(value) for name, value in self if name not in ("llm", "retriever", "scorer")}

    def _nothing_found(self, question: str) -> Plan:
        if self.on_empty == "raise":
            raise EmptyRetrievalError(
                f"the search brought nothing: {question!r}",
                expected="passages that an answer can cite",
                hint='on_empty="abstain", or more documents',
            )
        yield Tell({"context": [], "answer": self.abstain_text, **told_last([], [], 0)})


class GroundedAnswerChain(Grounder[GroundedAnswer]):
    """Answers questions from retrieved passages, with a citation for each sentence (AGREE, arXiv:2311.09533).

        chain = GroundedAnswerChain(llm=llm, retriever=retriever)
        chain.invoke("When was the mill built?")["sentences"]

    With ``prompt=GroundedPrompt.by_example()`` it is the baseline that cites in context (ICLCITE) and needs no tuned
    model. The result is a ``GroundedAnswer``. A stream brings the passages, then the answer while it is written, then
    its sentences.

    Args:
        llm: A LangChain LLM or chat model, or any Runnable or function that makes text of a prompt.
        retriever: A retriever, or any Runnable or function that makes ``Document`` objects of a query.
        prompt: The prompt; by default the one that a model is tuned on.
        k: Passages a prompt.
        on_empty: What to do when a search brings nothing: ``"abstain"``, or ``"raise"`` an ``EmptyRetrievalError``.
        abstain_text: The answer when abstaining.
        stop: Texts at which an answer ends; passed on to the model, and enforced if it ignores them.
        name: The name of the chain's runs in traces.
    """

    # Written out, or type checkers take pydantic's word that every field must be passed.
    def __init__(
        self,
        *,
        llm: RunnableLike,
        retriever: RunnableLike,
        prompt: GroundedPrompt | None = None,
        k: int = PASSAGES,
        on_empty: OnEmpty = "abstain",
        abstain_text: str = ABSTAIN_TEXT,
        stop: Sequence[str] | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            llm=llm,
            retriever=retriever,
            prompt=prompt,
            k=k,
            on_empty=on_empty,
            abstain_text=abstain_text,
            stop=stop,
            name=name,
        )

    def answering(self, question: str, k: int) -> Plan:
        """Plan the answer to one question: one search, one model call.

        Args:
            question: The question.
            k: Passages a prompt.

        Yields:
            The steps.
        """
        found = yield Find((question,), k)
        passages = distinct(found[0])[:k]
        if not passages:
            yield from self._nothing_found(question)
            return
        yield Tell({"context": passages})
        yield Draft("grounded", self.prompt.render(question, passages))
        said = yield Rest(ResponseFilter)
        response = parse_response(said, len(passages))
        yield Tell(told_last(response.sentences, response.unsupported, response.rejected))


def _k_spec(k: int) -> ConfigurableFieldSpec:
    return ConfigurableFieldSpec(
        id="k", annotation=int | None, name="Passages", description="Passages a prompt, at most.", default=k
    )
