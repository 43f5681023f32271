"""Both systems together: Adapt-LLM says whether to retrieve, AGREE grounds the answer if so."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

from langchain_core.runnables import ConfigurableFieldSpec, RunnableConfig
from langchain_core.runnables.utils import get_unique_config_specs
from pydantic import ConfigDict, ValidationError

from adaptllm_chain.agree.answers import AdaptiveGroundedAnswer, told_first, told_last
from adaptllm_chain.agree.attribution import attribute
from adaptllm_chain.agree.grounded import Grounder
from adaptllm_chain.agree.response import sentence_texts
from adaptllm_chain.agree.services import grounding
from adaptllm_chain.agree.steps import Draft
from adaptllm_chain.chain.adaptive import AdaptiveRetrievalChain
from adaptllm_chain.chain.announcing import Announcing
from adaptllm_chain.chain.consulting import Consulting
from adaptllm_chain.chain.driven import DrivenRunnable
from adaptllm_chain.chain.inputs import AdaptiveInput, Asked, read_input
from adaptllm_chain.chain.model_calls import ModelCalls
from adaptllm_chain.chain.plan import Announce, Ask, Consult, Plan, Rest, Rules, Search, Step, Tell, plan_question
from adaptllm_chain.chain.services import Services
from adaptllm_chain.entailment.scorer import EntailmentScorer
from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.metrics.citations import CitedSentence
from adaptllm_chain.records import Decision
from adaptllm_chain.ret.refusal import refusal


class AdaptiveGroundedChain(DrivenRunnable[AdaptiveGroundedAnswer]):
    """Retrieves only for questions that need it, and grounds the answers that it retrieved for.

    The adaptive chain decides; up to its first search a question goes the same way as in it. From there on the grounder
    takes over, with a retriever and mostly a model of its own. A direct answer is marked as from memory
    (``basis="memory"``, no citations). With a ``scorer`` its sentences are looked up afterwards, as
    ``PostHocAttribution`` does, and cite what supports them (``basis="checked"``); the text stays as the model said it.

        chain = AdaptiveGroundedChain(adaptive=AdaptiveRetrievalChain(llm=llm, retriever=retriever),
                                      grounder=GroundedAnswerChain(llm=citing_llm, retriever=retriever))
        chain.invoke("Who wrote Hamlet?")["basis"]

    The result is an ``AdaptiveGroundedAnswer``. One call may have settings of its own: ``policy`` and ``threshold`` as
    the adaptive chain's, ``k`` for the grounder. Each model stops at the texts of its own chain; a call's ``stop``, and
    other arguments, are for both.

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

    @property
    def OutputType(self) -> Any:  # noqa: N802
        """The keys of the result."""
        return AdaptiveGroundedAnswer

    @property
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        """What ``config={"configurable": {…}}`` may hold: what both chains declare; ``k`` is the grounder's."""
        deciding = [spec for spec in self.adaptive.config_specs if spec.id != "k"]
        return get_unique_config_specs([*deciding, *self.grounder.config_specs])

    def _plan(self, value: AdaptiveInput, config: RunnableConfig) -> Plan:
        return self._whole_plan(value, self.adaptive.rules_of(config), self.grounder.k_of(config))

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
        found = yield from attribute(sentences, k)
        yield Tell({"basis": "checked", "context": found.context, **told_last(found.sentences, found.unsupported, 0)})

    def _services(self, arguments: Mapping[str, Any]) -> Services:
        return Services(
            models={
                Ask: ModelCalls(self.adaptive.llm, self.adaptive.stop, arguments),
                Draft: ModelCalls(self.grounder.llm, self.grounder.stop, arguments),
            },
            others={
                Announce: Announcing(),
                Consult: Consulting(),
                **grounding(self.grounder.retriever, self.scorer),
            },
            marker=self.adaptive.rules_of({}).marker,
        )

    def _shown(self) -> dict[str, str]:
        chains = {"adaptive": self.adaptive, "grounder": self.grounder}
        return {name: chain.to_json_not_implemented()["repr"] or "" for name, chain in chains.items()}


def _until_search(asked: Asked, plan: Plan) -> Generator[Step, Any, tuple[Decision | None, str | None]]:
    """Follow the adaptive chain's plan to its end, or to its first search, where the direct answer is ``None``."""
    decision: Decision | None = None
    answer = ""
    reply: Any = None
    try:
        while True:
            try:
                step = plan.send(reply)
            except StopIteration:
                return decision, answer
            if isinstance(step, Search):
                return decision, None
            if isinstance(step, Announce):
                decision = step.what
            elif isinstance(step, Tell) and "input" in step.keys:
                step = Tell(told_first(asked))
            reply = yield step
            if isinstance(step, Rest):
                answer = reply
    finally:
        plan.close()
