"""The chain: any LangChain model and retriever, and a policy that says when to retrieve."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

from langchain_core.runnables import ConfigurableFieldSpec, Runnable
from langchain_core.runnables.base import coerce_to_runnable
from langchain_core.runnables.utils import get_unique_config_specs
from pydantic import ConfigDict, Field, ValidationError

from adaptllm_chain.chain.driven import DrivenRunnable
from adaptllm_chain.chain.inputs import AdaptiveInput, QuestionMapping
from adaptllm_chain.chain.model_calls import ModelCalls
from adaptllm_chain.chain.plan import OnEmpty, Plan, Rules, plan_question
from adaptllm_chain.chain.services import Services
from adaptllm_chain.chain.settings import check_prompts, choose_policy, read_stops
from adaptllm_chain.chain.wrappers import prompt_spec_of
from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.prompts import PromptTemplates
from adaptllm_chain.records import AdaptiveAnswer
from adaptllm_chain.ret import Policy
from adaptllm_chain.ret.refusal import refusal

RunnableLike: TypeAlias = Runnable[Any, Any] | Callable[..., Any]


class AdaptiveRetrievalChain(DrivenRunnable):
    """Answers questions, and retrieves only for those that need it.

    With the default policy the model is asked to answer or to say ``<RET>``; on ``<RET>`` alone the
    retriever is called and the same model answers from the passages. It replaces
    ``create_retrieval_chain``: the result has that chain's keys ``input``, ``context`` and ``answer``,
    and besides them ``retrieved``, ``ret_probability`` and ``decision``.

    Accepted inputs: a text; a mapping with the question under ``input``, ``question``, ``query`` or
    ``messages`` (its other keys are carried over into the result); a list of messages, of which the
    user's last is the question; a prompt value. ``batch`` puts all questions to the model together:
    one call for the first pass, one search, one call for the answers from passages.

    Args:
        llm: A LangChain LLM or chat model, wrapped or not, or any Runnable or function that makes text
            or a message of a prompt. An LLM both wrapped and cached loses ``ret_probability`` on a hit.
        retriever: A retriever, or any Runnable or function that makes ``Document`` objects of a query.
            May be left out with a policy that never retrieves.
        policy: A ``Policy``, or ``"adaptive"`` (the default), ``"never_retrieve"``, ``"always_retrieve"``.
            The default uses the threshold that was saved beside the model's adapter, if there is one.
        prompts: The prompt texts; by default those that the model's adapter was trained on, or the paper's.
        max_rounds: The most searches for one question. From the second on, a model that asks again
            gets other passages, searched for with the words of the best ones before.
        on_empty: What to do when retrieval brings nothing, or the model goes on asking: ``"answer"`` from
            memory, ``"abstain"``, or ``"raise"`` an ``EmptyRetrievalError``.
        abstain_text: The answer when abstaining, or when the model asks for retrieval even with the prompt that
            does not offer it.
        stop: Texts at which an answer ends; passed on to the model, and enforced if it ignores them.
            White space before an answer is taken off first.
        name: The name of the chain's runs in traces.

    Attributes:
        llm: The model.
        retriever: The retriever.
        policy: The policy.
        prompts: The prompt texts, if they were given.
        max_rounds: The most searches for one question.
        on_empty: What to do when retrieval brings nothing usable.
        abstain_text: The answer when abstaining.
        stop: Texts at which an answer ends.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    llm: Runnable[Any, Any]
    retriever: Runnable[Any, Any] | None
    policy: Policy
    prompts: PromptTemplates | None
    max_rounds: int = Field(ge=1, examples=[1])
    on_empty: OnEmpty = Field(examples=["answer"])
    abstain_text: str
    stop: list[str] | None

    # Written out rather than left to validators: pydantic would wrap our errors in its own.
    def __init__(
        self,
        *,
        llm: RunnableLike,
        retriever: RunnableLike | None = None,
        policy: Policy | str | None = None,
        prompts: PromptTemplates | None = None,
        max_rounds: int = 1,
        on_empty: OnEmpty = "answer",
        abstain_text: str = "I don't know.",
        stop: Sequence[str] | None = None,
        name: str | None = None,
    ) -> None:
        model = _as_runnable("llm", llm)
        spec = prompt_spec_of(model)
        chosen = choose_policy(policy, spec)
        check_prompts(spec, prompts, chosen)
        if retriever is None and chosen.may_retrieve:
            raise InvalidInputError(
                f"the policy {chosen.name!r} may retrieve, but there is no retriever",
                expected="a retriever",
                hint='retriever=…, or policy="never_retrieve"',
            )
        try:
            super().__init__(
                llm=model,
                retriever=None if retriever is None else _as_runnable("retriever", retriever),
                policy=chosen,
                prompts=prompts,
                max_rounds=max_rounds,
                on_empty=on_empty,
                abstain_text=abstain_text,
                stop=read_stops(stop) or None,
                name=name,
            )
        except ValidationError as error:
            raise refusal(AdaptiveRetrievalChain, error) from error

    @property
    def templates(self) -> PromptTemplates:
        """The prompt texts in use."""
        spec = prompt_spec_of(self.llm)
        return self.prompts or (spec.templates if spec else PromptTemplates())

    @property
    def InputType(self) -> Any:  # noqa: N802
        """The forms in which a question is accepted."""
        return str | QuestionMapping | list[Any]

    @property
    def OutputType(self) -> Any:  # noqa: N802
        """The keys of the result."""
        return AdaptiveAnswer

    @property
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        """The configurable fields of the model and the retriever."""
        children = [child for child in (self.llm, self.retriever) if child is not None]
        return get_unique_config_specs(spec for child in children for spec in child.config_specs)

    def _plan(self, value: AdaptiveInput) -> Plan:
        return plan_question(value, self._rules())

    def _rules(self) -> Rules:
        return Rules(
            policy=self.policy,
            templates=self.templates,
            max_rounds=self.max_rounds,
            on_empty=self.on_empty,
            abstain_text=self.abstain_text,
            spec=prompt_spec_of(self.llm),
        )

    def _services(self, arguments: dict[str, Any]) -> Services:
        given = arguments.pop("stop", None)
        stops = read_stops(self.stop if given is None else given)
        model = ModelCalls(self.llm, stops, arguments)
        return Services(model=model, retriever=self.retriever, stops=stops, marker=self._rules().marker)


def _as_runnable(what: str, thing: Any) -> Runnable[Any, Any]:
    try:
        return cast("Runnable[Any, Any]", coerce_to_runnable(thing))
    except TypeError as error:
        raise InvalidInputError(
            f"{what}={thing!r:.80} is a {type(thing).__name__}",
            expected=f"a LangChain {'model' if what == 'llm' else 'retriever'}, another Runnable, or a function",
        ) from error
