"""Both systems together: Adapt-LLM says whether to retrieve, AGREE grounds the answer if so."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from langchain_core.load.serializable import SerializedNotImplemented
from langchain_core.messages import AnyMessage
from langchain_core.messages.utils import MessageLikeRepresentation
from langchain_core.prompt_values import PromptValue
from langchain_core.runnables import ConfigurableFieldSpec, RunnableConfig
from langchain_core.runnables.utils import get_unique_config_specs
from pydantic import ConfigDict, ValidationError

from adaptllm_chain.agree.answers import AdaptiveGroundedAnswer, told_first, told_last
from adaptllm_chain.agree.attribution import attribute
from adaptllm_chain.agree.citing_calls import CitingCalls
from adaptllm_chain.agree.grounded import Grounder
from adaptllm_chain.agree.response import sentence_texts
from adaptllm_chain.agree.services import GroundingServices, takes_k
from adaptllm_chain.agree.steps import Heard
from adaptllm_chain.chain.adaptive import AdaptiveRetrievalChain
from adaptllm_chain.chain.call_settings import policy_of_call, the_judge
from adaptllm_chain.chain.driven import DrivenRunnable
from adaptllm_chain.chain.inputs import AdaptiveInput, Asked, QuestionMapping, read_input
from adaptllm_chain.chain.model_calls import ModelCalls
from adaptllm_chain.chain.passage_count import with_k_per_query
from adaptllm_chain.chain.plan import Announce, Ask, Plan, Rules, Search, Step, Tell, plan_question
from adaptllm_chain.chain.settings import read_stops
from adaptllm_chain.chain.wrappers import prompt_spec_of
from adaptllm_chain.entailment.scorer import EntailmentScorer
from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.metrics.citations import CitedSentence
from adaptllm_chain.records import Decision
from adaptllm_chain.ret.refusal import refusal


class AdaptiveGroundedChain(DrivenRunnable):
    """Retrieves only for questions that need it, and grounds the answers that it retrieved for.

    The adaptive chain decides; up to its first search a question goes the same way as in it. From there on the grounder
    takes over, with a retriever and mostly a model of its own. A direct answer is marked as from memory
    (``basis="memory"``, no citations). With a ``scorer`` its sentences are looked up afterwards, as
    ``PostHocAttribution`` does, and cite what supports them (``basis="checked"``); the text stays as the model said it.

        chain = AdaptiveGroundedChain(adaptive=AdaptiveRetrievalChain(llm=llm, retriever=retriever),
                                      grounder=GroundedAnswerChain(llm=citing_llm, retriever=retriever))
        chain.invoke("Who wrote Hamlet?")["basis"]

    The result is an ``AdaptiveGroundedAnswer``.

    Args:
        adaptive: Decides, and answers from memory.
        grounder: Answers from passages: a ``GroundedAnswerChain`` or a ``GroundingLoop``.
        scorer: Judges direct answers afterwards; by default they are not checked.
        name: The name of the chain's runs in traces.

    Attributes:
        adaptive: Decides, and answers from memory.
        grounder: Answers from passages.
        scorer: Judges direct answers afterwards.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    adaptive: AdaptiveRetrievalChain
    grounder: Grounder
    scorer: EntailmentScorer | None

    def __init__(
        self,
        *,
        adaptive: AdaptiveRetrievalChain,
        grounder: Grounder,
        scorer: EntailmentScorer | None = None,
        name: str | None = None,
    ) -> None:
        try:
            super().__init__(adaptive=adaptive, grounder=grounder, scorer=scorer, name=name)
        except ValidationError as error:
            raise refusal(AdaptiveGroundedChain, error) from error
        if grounder.judge is not None:
            raise InvalidInputError(
                f"grounder={type(grounder).__name__}, which answers from memory",
                expected="a GroundedAnswerChain or a GroundingLoop",
                hint="scorer=… checks the answers from memory",
            )
        if adaptive.stop != grounder.stop:
            raise InvalidInputError(
                f"the adaptive chain stops at {adaptive.stop}, the grounder at {grounder.stop}",
                expected="the same texts: whose answer it will be is not known when a stream begins",
                hint="stop=… of one of them",
            )

    @property
    def InputType(self) -> Any:  # noqa: N802
        """The forms in which a question is accepted."""
        return str | QuestionMapping | AnyMessage | list[MessageLikeRepresentation] | PromptValue

    @property
    def OutputType(self) -> Any:  # noqa: N802
        """The keys of the result."""
        return AdaptiveGroundedAnswer

    @property
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        """What ``config={"configurable": {…}}`` may hold: what both chains declare; ``k`` is the grounder's."""
        deciding = [spec for spec in self.adaptive.config_specs if spec.id != "k"]
        return get_unique_config_specs([*deciding, *self.grounder.config_specs])

    def to_json_not_implemented(self) -> SerializedNotImplemented:
        """Describe the chain for ``dumps`` and traces.

        Returns:
            The class and what its two chains say of themselves: nothing of their models and retrievers.
        """
        adaptive, grounder = (chain.to_json_not_implemented()["repr"] for chain in (self.adaptive, self.grounder))
        shown = f"{type(self).__name__}(adaptive={adaptive}, grounder={grounder})"
        return {"lc": 1, "type": "not_implemented", "id": self.lc_id(), "repr": shown}

    def _plan(self, value: AdaptiveInput, config: RunnableConfig) -> Plan:
        return self._whole_plan(value, self._rules(config), self.grounder.k_of(config))

    def _whole_plan(self, value: AdaptiveInput, rules: Rules, k: int) -> Plan:
        asked = read_input(value)
        decision, direct = yield from _until_search(asked, plan_question(value, rules))
        if direct is None:
            yield Tell({"decision": decision, "basis": "passages"})
            yield from self.grounder.answering(asked.question, k)
            return
        sentences = sentence_texts(direct)
        if self.scorer is None:
            cited = [CitedSentence(sentence=sentence, citations=[], rejected=0) for sentence in sentences]
            yield Tell({"basis": "memory", **told_last(cited, [], 0)})
            return
        found = yield from attribute(asked.question, sentences, k)
        yield Tell({"basis": "checked", "context": found.context, **told_last(found.sentences, found.unsupported, 0)})

    def _rules(self, config: RunnableConfig) -> Rules:
        return Rules(
            policy=policy_of_call(config, self.adaptive.policy),
            templates=self.adaptive.templates,
            on_empty=self.adaptive.on_empty,
            abstain_text=self.adaptive.abstain_text,
            spec=prompt_spec_of(self.adaptive.llm),
        )

    def _services(self, arguments: dict[str, Any], configs: Sequence[RunnableConfig]) -> GroundingServices:
        given = arguments.pop("stop", None)
        stops = read_stops(self.adaptive.stop if given is None else given)
        rules = [self._rules(config) for config in configs]
        marker = rules[0].marker
        return GroundingServices(
            model=CitingCalls(
                self.grounder.llm,
                stops,
                arguments,
                marker=marker,
                decider=ModelCalls(self.adaptive.llm, stops, arguments),
            ),
            retriever=with_k_per_query(self.grounder.retriever),
            takes_k=takes_k(self.grounder.retriever),
            judge=the_judge(rule.policy for rule in rules),
            stops=stops,
            marker=marker,
            scorer=self.scorer,
        )


def _until_search(asked: Asked, plan: Plan) -> Generator[Step, Any, tuple[Decision | None, str | None]]:
    """Follow the adaptive chain's plan to its end, or to its first search, where the direct answer is ``None``."""
    decision: Decision | None = None
    heard: Heard | None = None
    reply: Any = None
    try:
        while True:
            try:
                step = plan.send(reply)
            except StopIteration:
                return decision, "" if heard is None else heard.text
            if isinstance(step, Search):
                return decision, None
            if isinstance(step, Announce):
                decision = step.decision
            elif isinstance(step, Ask):
                step = heard = Heard(step.kind, step.prompt)
            elif isinstance(step, Tell) and "input" in step.keys:
                step = Tell(told_first(asked))
            reply = yield step
    finally:
        plan.close()
