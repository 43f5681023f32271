"""The chain: any LangChain model and retriever, and a policy that says when to retrieve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.runnables import ConfigurableFieldSpec, Runnable, RunnableConfig, ensure_config
from langchain_core.runnables.graph import Graph
from langchain_core.runnables.utils import get_unique_config_specs
from langchain_core.tools import BaseTool
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adaptllm_chain.chain.announcing import Announcing
from adaptllm_chain.chain.call_settings import call_specs, k_of_call, policy_of_call
from adaptllm_chain.chain.consulting import Consulting
from adaptllm_chain.chain.driven import DrivenRunnable
from adaptllm_chain.chain.graph import policy_graph
from adaptllm_chain.chain.inputs import AdaptiveInput
from adaptllm_chain.chain.model_calls import ModelCalls
from adaptllm_chain.chain.passage_count import check_k
from adaptllm_chain.chain.plan import Announce, Ask, Consult, Errand, OnEmpty, Plan, Rules, Search, plan_question
from adaptllm_chain.chain.retrieval_qa import retrieval_qa
from adaptllm_chain.chain.searching import searching
from adaptllm_chain.chain.service import Service
from adaptllm_chain.chain.services import Services
from adaptllm_chain.chain.settings import (
    RunnableLike,
    as_runnable,
    check_prompts,
    check_retriever,
    choose_policy,
    read_stops,
)
from adaptllm_chain.chain.tool import answering_tool
from adaptllm_chain.chain.wrappers import prompt_spec_of
from adaptllm_chain.prompts import PromptTemplates
from adaptllm_chain.records import AdaptiveAnswer
from adaptllm_chain.ret import Policy
from adaptllm_chain.ret.refusal import refusal


class AdaptiveRetrievalChain(DrivenRunnable[AdaptiveAnswer]):
    """Answers questions, and retrieves only for those that need it.

    With the default policy the model is asked to answer or to say ``<RET>``; on ``<RET>`` alone the
    retriever is called and the same model answers from the passages. It replaces
    ``create_retrieval_chain``: the result has that chain's keys ``input``, ``context`` and ``answer``,
    and besides them ``retrieved``, ``ret_probability`` and ``decision``.

    Accepted inputs: a text; a mapping with the question under ``input``, ``question``, ``query`` or
    ``messages`` (its other keys are carried over into the result); a list of messages, of which the
    user's last is the question; a prompt value. ``batch`` puts all questions to the model together:
    one call for the first pass, one search, one call for the answers from passages.

    One call may have a policy, a threshold and a number of passages of its own, and a parser reads the answer alone:

        chain.invoke(question, config={"configurable": {"threshold": 0.3, "k": 2}})
        prompt | chain.pick("answer") | StrOutputParser()

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
    prompts: PromptTemplates | None = Field(examples=[PromptTemplates()])
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
        model = as_runnable("llm", llm)
        spec = prompt_spec_of(model)
        chosen = choose_policy(policy, spec)
        check_prompts(spec, prompts, chosen)
        check_retriever(retriever, chosen)
        try:
            super().__init__(
                llm=model,
                retriever=None if retriever is None else as_runnable("retriever", retriever),
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
    def OutputType(self) -> Any:  # noqa: N802
        """The keys of the result."""
        return AdaptiveAnswer

    @property
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        """What ``config={"configurable": {…}}`` may hold.

        ``policy``, ``threshold`` and ``k`` (passages a search) are the chain's; the others are those that the model,
        the retriever and the policy's decision model declare.

            chain.with_config(configurable={"threshold": 0.3, "k": 2}).batch(questions)
            chain.invoke(question, config={"configurable": {"policy": "always_retrieve"}})
        """
        theirs = self._childrens_specs()
        return [*call_specs(self.policy, {spec.id for spec in theirs}), *theirs]

    def get_graph(self, config: RunnableConfig | None = None) -> Graph:
        """Draw the ways that a question can go.

            print(chain.get_graph().draw_mermaid())

        Args:
            config: LangChain's config; a policy in it is the one that is drawn.

        Returns:
            The graph: both branches, or one for a policy that never or always retrieves.
        """
        policy = self._policy_of(ensure_config(config))
        question, answer = self.get_input_schema(config), self.get_output_schema(config)
        return policy_graph(policy, self.llm, self.retriever, question, answer)

    def as_tool(
        self,
        args_schema: type[BaseModel] | None = None,
        *,
        name: str | None = None,
        description: str | None = None,
        arg_types: dict[str, type] | None = None,
    ) -> BaseTool:
        """Make a tool for an agent: its content is the answer, its artifact the whole result.

            agent = create_agent(model, tools=[chain.as_tool(description="Answers questions about our products.")])

        Args:
            args_schema: The arguments, which the chain gets as a mapping; by default ``question`` alone.
            name: What the agent calls it; by default ``answer_question``.
            description: What the agent reads to know when to use it: say what your documents are about.
            arg_types: Names and types of the arguments, instead of a schema.

        Returns:
            The tool.
        """
        return answering_tool(self, args_schema, name, description, arg_types)

    def as_retrieval_qa(self, *, return_source_documents: bool = False) -> Runnable[AdaptiveInput, dict[str, Any]]:
        """Take the place of LangChain's ``RetrievalQA``, whose keys the result has.

            # before: qa = RetrievalQA.from_chain_type(llm, retriever=retriever)
            qa = AdaptiveRetrievalChain(llm=llm, retriever=retriever).as_retrieval_qa()
            qa.invoke({"query": "Who wrote Emma?"})["result"]

        Args:
            return_source_documents: Whether the result holds the passages, under ``source_documents``.

        Returns:
            A Runnable whose result has ``query`` and ``result``, and besides them ``retrieved``,
            ``ret_probability`` and ``decision``.
        """
        return retrieval_qa(self, return_source_documents=return_source_documents)

    def rules_of(self, config: RunnableConfig) -> Rules:
        """Gather what the plan for one question follows.

        Args:
            config: LangChain's config for it, which may name a policy and a threshold.

        Returns:
            The rules.

        Raises:
            InvalidInputError: If the config names what there is not, or what the model or the retriever cannot do.
        """
        return Rules(
            policy=self._policy_of(config),
            templates=self.templates,
            max_rounds=self.max_rounds,
            on_empty=self.on_empty,
            abstain_text=self.abstain_text,
            spec=prompt_spec_of(self.llm),
        )

    def _childrens_specs(self) -> list[ConfigurableFieldSpec]:
        judged = [self.policy.judge.model] if self.policy.judge else []
        children = [child for child in (self.llm, self.retriever, *judged) if child is not None]
        return get_unique_config_specs(spec for child in children for spec in child.config_specs)

    def _plan(self, value: AdaptiveInput, config: RunnableConfig) -> Plan:
        if self.retriever is not None:
            check_k(self.retriever, k_of_call(config))
        return plan_question(value, self.rules_of(config))

    def _services(self, arguments: Mapping[str, Any]) -> Services:
        others: dict[type[Errand], Service[Any]] = {Announce: Announcing()}
        if self.retriever is not None:
            others[Search] = searching(self.retriever)
        others[Consult] = Consulting()
        models = {Ask: ModelCalls(self.llm, self.stop, arguments)}
        return Services(models=models, others=others, marker=self.rules_of({}).marker)

    def _shown(self) -> dict[str, str]:
        return {"policy": f"{self.policy.name!r}", "max_rounds": f"{self.max_rounds}", "on_empty": f"{self.on_empty!r}"}

    def _policy_of(self, config: RunnableConfig) -> Policy:
        policy = policy_of_call(config, self.policy)
        if policy is not self.policy:
            check_prompts(prompt_spec_of(self.llm), self.prompts, policy)
            check_retriever(self.retriever, policy)
        return policy
