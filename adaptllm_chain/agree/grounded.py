"""Answers from passages whose sentences say which passage supports them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, cast

from langchain_core.load.serializable import SerializedNotImplemented
from langchain_core.messages import AnyMessage
from langchain_core.messages.utils import MessageLikeRepresentation
from langchain_core.prompt_values import PromptValue
from langchain_core.runnables import ConfigurableFieldSpec, Runnable, RunnableConfig
from langchain_core.runnables.base import coerce_to_runnable
from langchain_core.runnables.utils import get_unique_config_specs
from pydantic import ConfigDict, Field, ValidationError

from adaptllm_chain.agree.answers import GroundedAnswer, told_first, told_last
from adaptllm_chain.agree.citing_calls import CitingCalls
from adaptllm_chain.agree.passages import PASSAGES, distinct
from adaptllm_chain.agree.prompts import GroundedPrompt
from adaptllm_chain.agree.response import parse_response
from adaptllm_chain.agree.services import GroundingServices, takes_k
from adaptllm_chain.agree.steps import Draft, Find
from adaptllm_chain.chain.call_settings import k_of_call
from adaptllm_chain.chain.driven import DrivenRunnable
from adaptllm_chain.chain.inputs import AdaptiveInput, QuestionMapping, read_input
from adaptllm_chain.chain.passage_count import with_k_per_query
from adaptllm_chain.chain.plan import Plan, Rest, Tell
from adaptllm_chain.chain.settings import read_stops
from adaptllm_chain.entailment.scorer import EntailmentScorer
from adaptllm_chain.errors import EmptyRetrievalError, InvalidInputError
from adaptllm_chain.ret import RET
from adaptllm_chain.ret.refusal import refusal

RunnableLike: TypeAlias = Runnable[Any, Any] | Callable[..., Any]
OnEmpty = Literal["abstain", "raise"]


class Grounder(DrivenRunnable):
    """A chain that answers with citations; subclasses say how.

    Args:
        llm: A LangChain LLM or chat model, or any Runnable or function that makes text of a prompt.
        retriever: A retriever, or any Runnable or function that makes ``Document`` objects of a query.
        prompt: The prompt.
        k: Passages a prompt; five in AGREE (arXiv:2311.09533). A retriever that takes ``k`` is asked for
            as many; of another, the first ones are taken.
        on_empty: What to do when a search brings nothing: ``"abstain"``, or ``"raise"`` an ``EmptyRetrievalError``.
        abstain_text: The answer when abstaining.
        stop: Texts at which an answer ends; passed on to the model, and enforced if it ignores them.
        name: The name of the chain's runs in traces.
        **settings: What a subclass has beside these.

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
        prompt: GroundedPrompt | None = None,
        k: int = PASSAGES,
        on_empty: OnEmpty = "abstain",
        abstain_text: str = "I don't know.",
        stop: Sequence[str] | None = None,
        name: str | None = None,
        **settings: Any,
    ) -> None:
        try:
            super().__init__(
                llm=_as_runnable("llm", llm),
                retriever=_as_runnable("retriever", retriever),
                prompt=GroundedPrompt() if prompt is None else prompt,
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
    def InputType(self) -> Any:  # noqa: N802
        """The forms in which a question is accepted."""
        return str | QuestionMapping | AnyMessage | list[MessageLikeRepresentation] | PromptValue

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

    def to_json_not_implemented(self) -> SerializedNotImplemented:
        """Describe the chain for ``dumps`` and traces.

        Returns:
            The class and the settings, without the models and the retriever: arguments bound to them may hold a key.
        """
        shown = {name: value for name, value in self if name not in ("llm", "retriever", "scorer")}
        settings = ", ".join(f"{name}={value!r}" for name, value in shown.items())
        return {"lc": 1, "type": "not_implemented", "id": self.lc_id(), "repr": f"{type(self).__name__}({settings})"}

    def _plan(self, value: AdaptiveInput, config: RunnableConfig) -> Plan:
        return self._whole_plan(value, self.k_of(config))

    def _whole_plan(self, value: AdaptiveInput, k: int) -> Plan:
        asked = read_input(value)
        yield Tell(told_first(asked))
        yield from self.answering(asked.question, k)

    def _services(self, arguments: dict[str, Any], configs: Sequence[RunnableConfig]) -> GroundingServices:
        given = arguments.pop("stop", None)
        stops = read_stops(self.stop if given is None else given)
        return GroundingServices(
            model=CitingCalls(self.llm, stops, arguments, marker=RET),
            retriever=with_k_per_query(self.retriever),
            takes_k=takes_k(self.retriever),
            stops=stops,
            marker=RET,
            scorer=self.judge,
        )

    def _nothing_found(self, question: str) -> Plan:
        if self.on_empty == "raise":
            raise EmptyRetrievalError(
                f"the search brought nothing: {question!r}",
                expected="passages that an answer can cite",
                hint='on_empty="abstain", or more documents',
            )
        yield Tell({"context": [], "answer": self.abstain_text, **told_last([], [], 0)})


class GroundedAnswerChain(Grounder):
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

    def answering(self, question: str, k: int) -> Plan:
        """Plan the answer to one question: one search, one model call.

        Args:
            question: The question.
            k: Passages a prompt.

        Yields:
            The steps.
        """
        found = yield Find(question, (question,), k)
        passages = distinct(found[0])[:k]
        if not passages:
            yield from self._nothing_found(question)
            return
        draft = Draft("context", self.prompt.render(question, passages))
        yield Tell({"context": passages})
        yield draft
        yield Rest()
        response = parse_response(draft.text, len(passages))
        yield Tell(told_last(response.sentences, response.unsupported, response.rejected))


def _k_spec(k: int) -> ConfigurableFieldSpec:
    return ConfigurableFieldSpec(
        id="k", annotation=int | None, name="Passages", description="Passages a prompt, at most.", default=k
    )


def _as_runnable(what: str, thing: Any) -> Runnable[Any, Any]:
    try:
        return cast("Runnable[Any, Any]", coerce_to_runnable(thing))
    except TypeError as error:
        raise InvalidInputError(
            f"{what}={thing!r:.80} is a {type(thing).__name__}",
            expected=f"a LangChain {'model' if what == 'llm' else 'retriever'}, another Runnable, or a function",
        ) from error
