"""The decision of a model that may say ``<RET>``, offered as one of LangChain's decision models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from langchain_core.runnables import ConfigurableFieldSpec, Runnable, RunnableConfig
from langchain_core.runnables.config import ensure_config, get_config_list
from pydantic import ConfigDict, Field, ValidationError

from adaptllm_chain.chain.inputs import read_input
from adaptllm_chain.chain.model_calls import ModelCalls
from adaptllm_chain.chain.outputs import ModelOutput
from adaptllm_chain.chain.plan import Ask
from adaptllm_chain.chain.settings import check_concurrency, check_prompts
from adaptllm_chain.chain.wrappers import innermost, prompt_spec_of
from adaptllm_chain.errors import AdaptLLMError, InvalidInputError, MissingLogprobsError
from adaptllm_chain.prompts import PromptTemplates
from adaptllm_chain.records import RetSignal, Route
from adaptllm_chain.ret import RET, Adaptive
from adaptllm_chain.ret.langchain_decisions import (
    Answer,
    BaseDecisionModel,
    Choice,
    ChoiceAnswer,
    ClassifierRequest,
    ClassifierResponse,
    Noul,
    NoulAnswer,
    Question,
    State,
)
from adaptllm_chain.ret.refusal import refusal

_ROUTES = set(get_args(Route))
# From here on a bound leaves open which of two answers is the likelier.
_EVEN = 0.5


class RetDecisionModel(BaseDecisionModel):
    """Answers whether a question needs retrieval, with the probability that a model says ``<RET>``.

    The model is asked with the parametric prompt of "When to Retrieve" (arXiv:2404.19705, section 3), as the
    chain asks it. It takes the place of a decision model wherever LangChain wants one: in
    ``ModelRouterMiddleware``, in ``AutoModeMiddleware``, in ``DecisionModelPolicy``.

    * The state is a question in any form that the chain accepts: a text; a mapping with the question under
      ``input``, ``question``, ``query`` or ``messages``; a message or several, of which the user's last counts.
    * A ``Noul`` gets the probability of the route that ``yes`` names. Its instructions are not put to the model:
      whatever they say, a model that was trained on this prompt answers this one question.
    * A ``Choice`` between ``"direct"`` and ``"retrieve"`` gets both probabilities; its confidence is their difference.
    * Other questions are refused with an ``InvalidInputError``.

    All requests of a batch are put to the model together, whatever number of questions each asks. The model's
    answer is not used, so one that is bound to few tokens saves time: ``llm.bind(max_new_tokens=4)``.

    A server that lists only the likeliest tokens may not list ``<RET>``. Then the most that it can have stands
    for its probability, as long as that is below 0.5; a ``MissingLogprobsError`` is raised if it is not, and if
    the model reports no log-probabilities at all.

    Args:
        llm: The model: any that the chain may be given.
        prompts: The prompt texts; by default those that the model's adapter was trained on, or the paper's.
        yes: What "yes" says: ``"retrieve"``, that retrieval is needed, or ``"direct"``, that it is not.
        model: The name in responses and traces; by default that of the model.
        name: The name of the runs in traces.

    Attributes:
        llm: The model.
        prompts: The prompt texts, if they were given.
        yes: What "yes" says.
        model: The name in responses and traces.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    llm: Runnable[Any, Any]
    prompts: PromptTemplates | None
    yes: Route = Field(examples=["retrieve"])

    # Written out rather than left to validators: pydantic would wrap our errors in its own.
    def __init__(
        self,
        *,
        llm: Runnable[Any, Any],
        prompts: PromptTemplates | None = None,
        yes: Route = "retrieve",
        model: str | None = None,
        name: str | None = None,
    ) -> None:
        try:
            super().__init__(llm=llm, prompts=prompts, yes=yes, model=model or _name_of(llm), name=name)
        except ValidationError as error:
            raise refusal(RetDecisionModel, error) from error
        # What is asked is what the adaptive policy asks.
        check_prompts(prompt_spec_of(llm), prompts, Adaptive())

    @property
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        """The configurable fields of the model."""
        return self.llm.config_specs

    @property
    def _provider(self) -> str:
        return "adaptllm"

    def batch(
        self,
        inputs: list[ClassifierRequest],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[ClassifierResponse]:
        """Answer many requests with one call of the model.

        Args:
            inputs: The requests.
            config: LangChain's config, or one for each; ``max_concurrency`` limits the prompts in a call.
            return_exceptions: Whether a request that fails yields its exception; the others' responses come.
            **kwargs: Ignored, as LangChain's decision models do.

        Returns:
            The responses in order.
        """
        configs = [self._traced_config(one) for one in get_config_list(config, len(inputs))]
        return self._batch_with_config(
            self._respond, inputs, configs, return_exceptions=return_exceptions, run_type="llm"
        )

    async def abatch(
        self,
        inputs: list[ClassifierRequest],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[ClassifierResponse]:
        """Answer many requests with one call of the model.

        Args:
            inputs: The requests.
            config: LangChain's config, or one for each; ``max_concurrency`` limits the prompts in a call.
            return_exceptions: Whether a request that fails yields its exception; the others' responses come.
            **kwargs: Ignored, as LangChain's decision models do.

        Returns:
            The responses in order.
        """
        configs = [self._traced_config(one) for one in get_config_list(config, len(inputs))]
        return await self._abatch_with_config(
            self._arespond, inputs, configs, return_exceptions=return_exceptions, run_type="llm"
        )

    # LangChain hands a request on without its config: what runs here finds its parent in the context.

    def _classify(self, state: State, questions: dict[str, Question]) -> ClassifierResponse:
        return _raised(self._respond([{"state": state, "questions": questions}], (), [ensure_config()])[0])

    async def _aclassify(self, state: State, questions: dict[str, Question]) -> ClassifierResponse:
        return _raised((await self._arespond([{"state": state, "questions": questions}], (), [ensure_config()]))[0])

    def _respond(
        self, requests: list[ClassifierRequest], run_manager: Sequence[Any], config: list[RunnableConfig]
    ) -> list[Exception | ClassifierResponse]:
        check_concurrency(*config)
        asks = [self._ask(request) for request in requests]
        wave = _wave(asks, config)
        outputs = ModelCalls(self.llm).batch(*wave) if wave[0] else []
        return list(self._responses(requests, asks, outputs))

    async def _arespond(
        self, requests: list[ClassifierRequest], run_manager: Sequence[Any], config: list[RunnableConfig]
    ) -> list[Exception | ClassifierResponse]:
        check_concurrency(*config)
        asks = [self._ask(request) for request in requests]
        wave = _wave(asks, config)
        outputs = await ModelCalls(self.llm).abatch(*wave) if wave[0] else []
        return list(self._responses(requests, asks, outputs))

    def _ask(self, request: ClassifierRequest) -> Ask | Exception:
        try:
            _check_questions(request["questions"])
            question = read_input(request["state"]).question
        except (AdaptLLMError, KeyError, TypeError) as error:
            return error  # it fails this request alone
        spec = prompt_spec_of(self.llm)
        templates = self.prompts or (spec.templates if spec else PromptTemplates())
        return Ask("parametric", templates.render("parametric", question))

    def _responses(
        self,
        requests: Sequence[ClassifierRequest],
        asks: Sequence[Ask | Exception],
        outputs: Sequence[ModelOutput | Exception],
    ) -> Iterator[ClassifierResponse | Exception]:
        spec = prompt_spec_of(self.llm)
        marker = spec.ret_marker if spec else RET
        coming = iter(outputs)
        for request, ask in zip(requests, asks, strict=True):
            outcome = ask if isinstance(ask, Exception) else next(coming)
            if isinstance(outcome, Exception):
                yield outcome
                continue
            try:
                probability = _probability(outcome.opening(marker).signal)
            except AdaptLLMError as error:
                yield error
                continue
            answers = {name: _answer(asked, probability, self.yes) for name, asked in request["questions"].items()}
            yield ClassifierResponse(model=self.model, answers=answers)


def _name_of(llm: Any) -> str:
    if not isinstance(llm, Runnable):
        return type(llm).__name__  # about to be refused
    model = innermost(llm)
    names = (getattr(model, field, None) for field in ("model_name", "model"))
    return next((name for name in names if isinstance(name, str) and name), model.get_name())


def _wave(asks: Sequence[Ask | Exception], configs: Sequence[RunnableConfig]) -> tuple[list[Ask], list[RunnableConfig]]:
    put = [(ask, config) for ask, config in zip(asks, configs, strict=True) if isinstance(ask, Ask)]
    return [ask for ask, _ in put], [config for _, config in put]


def _check_questions(questions: Any) -> None:
    if not questions or not isinstance(questions, Mapping):
        raise InvalidInputError(
            f"a request with questions={questions!r:.120}",
            expected="at least one question, under its name",
            hint='{"state": "who?", "questions": {"retrieve": Noul(instructions="Is retrieval needed?")}}',
        )
    for name, question in questions.items():
        if isinstance(question, Noul) or (isinstance(question, Choice) and set(question.criteria) == _ROUTES):
            continue
        raise InvalidInputError(
            f"the question {name!r} cannot be answered by <RET>: {question!r:.120}",
            expected="a Noul (is retrieval needed?), or a Choice between 'direct' and 'retrieve'",
            hint="TransformersDecisionModel asks an untuned chat model anything",
        )


def _probability(signal: RetSignal) -> float:
    way_out = (
        "ask the model for more, e.g. llm.bind(logprobs=True, top_logprobs=5), or use LocalLLM; in a wrapper "
        "(with_retry, with_fallbacks) an LLM cache keeps the text alone"
    )
    if signal.probability is None:
        raise MissingLogprobsError(
            "a decision model answers with a probability, but the model reports no log-probabilities",
            expected="generation_info or response_metadata with logprobs that are numbers",
            hint=way_out,
        )
    if signal.kind == "upper_bound" and signal.probability >= _EVEN:
        raise MissingLogprobsError(
            f"<RET> is not among the reported log-probabilities: it has at most {signal.probability:.3g}, which leaves "
            "open whether retrieval is needed",
            expected="log-probabilities of more tokens",
            hint=way_out,
        )
    return signal.probability


def _answer(question: Question, probability: float, yes: Route) -> Answer:
    of: dict[str, float] = {"retrieve": probability, "direct": 1.0 - probability}
    if not isinstance(question, Choice):
        return NoulAnswer(type="noul", noul=of[yes])
    return ChoiceAnswer(
        type="choice",
        choice="retrieve" if of["retrieve"] >= of["direct"] else "direct",
        probabilities={label: of[label] for label in question.criteria},
        confidence=abs(of["retrieve"] - of["direct"]),
    )


def _raised(response: ClassifierResponse | Exception) -> ClassifierResponse:
    if isinstance(response, Exception):
        raise response
    return response
