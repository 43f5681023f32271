"""P(<RET>) as a decision model: its answers, its refusals, its batches, and LangChain's middleware around it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.decisions import Box, Choice, ClassifierResponse, Noul, Score
from langchain_core.language_models import BaseChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.tools import tool

from adaptllm_chain.chain import AdaptiveRetrievalChain
from adaptllm_chain.chain.ret_decision_model import RetDecisionModel
from adaptllm_chain.errors import InvalidInputError, MissingLogprobsError, PromptMismatchError
from adaptllm_chain.prompts import PromptSpec, PromptTemplates
from adaptllm_chain.ret import Adaptive, DecisionModelPolicy
from adaptllm_chain.testing import CountingRetriever, Reply, ScriptedChatModel, ScriptedLLM
from tests.chain.decision_scenes import WAYS_TO_DECIDE
from tests.chain.scenes import MODELS, script
from tests.chain.test_batch import BATCHES
from tests.chain.test_callbacks import Collector

NOUL = Noul(instructions="Is retrieval needed?")
ROUTES = Choice(instructions="Which way?", criteria={"retrieve": "rare facts", "direct": None})


@pytest.fixture(params=WAYS_TO_DECIDE)
def decide(request: pytest.FixtureRequest) -> Callable[..., Any]:
    return WAYS_TO_DECIDE[request.param]


def likely(probability: float, kind: str = "exact") -> Reply:
    return Reply("Paris", info={"ret_probability": probability, "ret_probability_kind": kind})


def model(probability: float = 0.25, kind: str = "exact", **arguments: Any) -> RetDecisionModel:
    return RetDecisionModel(llm=ScriptedLLM(script=script(likely(probability, kind))), **arguments)


def asking(state: Any = "who?", **questions: Any) -> dict[str, Any]:
    return {"state": state, "questions": questions or {"needed": NOUL}}


@pytest.mark.parametrize("kind", sorted(set(MODELS) - {"runnable"}))
def test_a_noul_gets_the_probability_of_ret(decide: Any, kind: str) -> None:
    judge = RetDecisionModel(llm=MODELS[kind](script(likely(0.25))))
    response = decide(judge, asking())
    assert response == ClassifierResponse(model=judge.model, answers={"needed": {"type": "noul", "noul": 0.25}})


def test_yes_may_mean_that_no_retrieval_is_needed(decide: Any) -> None:
    assert decide(model(0.25, yes="direct"), asking()).nouls["needed"].noul == 0.75


@settings(max_examples=30, deadline=None)
@given(st.floats(0, 1))
def test_a_choice_between_the_routes_gets_both_probabilities(probability: float) -> None:
    for yes in ("retrieve", "direct"):
        answer = model(probability, yes=yes).invoke(asking(way=ROUTES)).choices["way"]
        assert answer.choice == ("retrieve" if probability >= 1 - probability else "direct")
        assert list(answer.probabilities) == ["retrieve", "direct"]
        assert answer.probabilities == {"retrieve": probability, "direct": 1 - probability}
        assert answer.confidence == pytest.approx(2 * max(probability, 1 - probability) - 1)


@settings(max_examples=20, deadline=None)
@given(st.floats(0, 1), st.floats(0, 1))
def test_as_a_policy_it_decides_as_the_threshold_does(probability: float, threshold: float) -> None:
    def chain(policy: Any) -> AdaptiveRetrievalChain:
        llm = ScriptedLLM(script=script(likely(probability)))
        return AdaptiveRetrievalChain(llm=llm, retriever=CountingRetriever(documents=["p"]), policy=policy)

    judged = chain(DecisionModelPolicy(model=model(probability), threshold=threshold)).invoke("q")
    by_itself = chain(Adaptive(threshold=threshold)).invoke("q")
    for key in ("retrieved", "ret_probability", "context"):
        assert judged[key] == by_itself[key]


@pytest.mark.parametrize(
    "state",
    [
        "who?",
        {"input": "who?"},
        {"question": "who?", "user": 7},
        HumanMessage("who?"),
        [SystemMessage("be brief"), HumanMessage("what?"), AIMessage("that"), HumanMessage("who?")],
        {"messages": [HumanMessage("who?")], "tool_call": {"name": "search", "args": {}, "id": "1"}},
    ],
)
def test_the_forms_of_a_state(decide: Any, state: Any) -> None:
    judge = model()
    assert decide(judge, asking(state)).nouls["needed"].noul == 0.25
    ((prompt,),) = judge.llm.calls
    assert prompt == PromptTemplates().render("parametric", "who?")


@pytest.mark.parametrize("state", ["", {"user": 7}, [AIMessage("that")], {"messages": []}])
def test_a_state_without_a_question_is_refused(decide: Any, state: Any) -> None:
    with pytest.raises(InvalidInputError):
        decide(model(), asking(state))


@pytest.mark.parametrize(
    "question",
    [
        Choice(instructions="Which model?", criteria={"fast": None, "powerful": None}),
        Choice(instructions="Which way?", criteria={"retrieve": None, "direct": None, "other": None}),
        Score(instructions="How rare?", criteria=["common", "rare"]),
        Box(instructions="Where is the cat?"),
    ],
)
def test_what_ret_does_not_answer_is_refused_before_the_model_is_asked(decide: Any, question: Any) -> None:
    judge = model()
    with pytest.raises(
        InvalidInputError, match=r"'odd' cannot be answered by <RET>(?s:.*)a Noul .* or a Choice between"
    ):
        decide(judge, asking(needed=NOUL, odd=question))
    assert judge.llm.calls == []


def test_nothing_asked(decide: Any) -> None:
    with pytest.raises(InvalidInputError, match="at least one question"):
        decide(model(), {"state": "who?", "questions": {}})
    assert model().batch([]) == asyncio.run(model().abatch([])) == []


def test_without_log_probabilities_the_way_out_is_named(decide: Any) -> None:
    judge = RetDecisionModel(llm=ScriptedLLM(script=script("<RET>")))
    with pytest.raises(MissingLogprobsError, match=r"reports no log-probabilities(?s:.*)top_logprobs=5"):
        decide(judge, asking())


def test_a_bound_answers_only_where_it_settles_which_is_likelier(decide: Any) -> None:
    assert decide(model(0.499, "upper_bound"), asking()).nouls["needed"].noul == 0.499
    with pytest.raises(MissingLogprobsError, match=r"at most 0\.5, which leaves open"):
        decide(model(0.5, "upper_bound"), asking())


def test_the_log_probabilities_of_a_server(decide: Any) -> None:
    tops = [{"token": token, "logprob": logprob} for token, logprob in [("Paris", -0.5), ("<", -1.5), ("a", -3.0)]]
    info = {"logprobs": {"content": [{"token": "Paris", "logprob": -0.5, "top_logprobs": tops}]}}
    judge = RetDecisionModel(llm=ScriptedChatModel(script=script(Reply("Paris", info=info))))
    # exp(-1.5): the first piece of <RET>.
    assert decide(judge, asking()).nouls["needed"].noul == pytest.approx(0.2231, abs=1e-4)


@pytest.fixture(params=BATCHES)
def decide_all(request: pytest.FixtureRequest) -> Callable[..., list[Any]]:
    return BATCHES[request.param]


def by_number(prompt: str) -> Reply:
    return likely(int(prompt[-1]) / 8)


def test_a_batch_is_one_call_whatever_number_of_questions_each_asks(decide_all: Any) -> None:
    judge = RetDecisionModel(llm=ScriptedLLM(script=by_number))
    requests = [asking(f"question {number}", needed=NOUL, again=NOUL, way=ROUTES) for number in range(8)]
    responses = decide_all(judge, requests)
    assert [response.nouls["needed"].noul for response in responses] == [number / 8 for number in range(8)]
    assert all(list(response.answers) == ["needed", "again", "way"] for response in responses)
    assert [len(call) for call in judge.llm.calls] == [8]
    in_fours = RetDecisionModel(llm=ScriptedLLM(script=by_number))
    assert decide_all(in_fours, requests, config={"max_concurrency": 4}) == responses
    assert [len(call) for call in in_fours.llm.calls] == [4, 4]


def test_a_bad_request_fails_alone(decide_all: Any) -> None:
    def says(prompt: str) -> Reply:
        if prompt.endswith("3"):
            raise ZeroDivisionError
        return Reply("Paris") if prompt.endswith("4") else by_number(prompt)

    requests = [asking(f"question {number}") for number in range(8)]
    requests[1] = asking("")
    requests[2] = {"state": "no questions"}
    judge = RetDecisionModel(llm=ScriptedLLM(script=says))
    results = decide_all(judge, requests, return_exceptions=True)
    kinds = {1: InvalidInputError, 2: KeyError, 3: ZeroDivisionError, 4: MissingLogprobsError}
    assert {index: type(one) for index, one in enumerate(results) if isinstance(one, Exception)} == kinds
    assert [results[index].nouls["needed"].noul for index in (0, 5, 6, 7)] == [0, 5 / 8, 6 / 8, 7 / 8]
    with pytest.raises(InvalidInputError):
        decide_all(judge, requests)


def test_a_batch_of_which_nothing_can_be_asked(decide_all: Any) -> None:
    judge = model()
    results = decide_all(judge, [asking(""), asking(" ")], return_exceptions=True)
    assert [type(result) for result in results] == [InvalidInputError] * 2
    assert judge.llm.calls == []


def test_the_models_run_stands_under_the_decision(decide: Any) -> None:
    tracer = Collector()
    decide(model(model="mine"), asking(), config={"callbacks": [tracer], "tags": ["tagged"]})
    (root,) = tracer.roots
    (child,) = root.child_runs
    assert (root.name, root.run_type, child.name) == ("RetDecisionModel", "llm", "ScriptedLLM")
    assert (root.metadata["ls_provider"], root.metadata["ls_model_name"]) == ("adaptllm", "mine")
    assert "adaptllm:parametric" in (child.tags or [])
    assert "tagged" in (child.tags or [])


class Trained(ScriptedLLM):
    prompt_spec: PromptSpec = PromptSpec(
        templates=PromptTemplates(parametric="Answer or say [HELP]: {question}"), ret_marker="[HELP]"
    )


def test_an_adapter_is_asked_as_it_was_trained() -> None:
    tops = [{"token": "[HELP]", "logprob": -0.5}, {"token": "Paris", "logprob": -1.5}]
    info = {"logprobs": {"content": [{"token": "[HELP]", "logprob": -0.5, "top_logprobs": tops}]}}
    llm = Trained(script={"Answer or say [HELP]: who?": Reply("[HELP]", info=info)})
    assert RetDecisionModel(llm=llm).invoke(asking()).nouls["needed"].noul == pytest.approx(0.6065, abs=1e-4)
    with pytest.raises(PromptMismatchError, match="not those of the model's adapter"):
        RetDecisionModel(llm=llm, prompts=PromptTemplates())


def test_prompts_of_ones_own() -> None:
    prompts = PromptTemplates(parametric="{question} Or <RET>?")
    judge = RetDecisionModel(llm=ScriptedLLM(script={"who? Or <RET>?": likely(0.5)}), prompts=prompts)
    assert judge.invoke(asking()).nouls["needed"].noul == 0.5


def test_its_name() -> None:
    class Named(ScriptedLLM):
        model_name: str = "small"

    assert RetDecisionModel(llm=Named(script={}).bind(max_new_tokens=4)).model == "small"
    assert RetDecisionModel(llm=ScriptedLLM(script={})).model == "ScriptedLLM"
    assert model(model="mine").invoke(asking()).model == "mine"


def test_wrong_settings() -> None:
    with pytest.raises(InvalidInputError, match=r"RetDecisionModel: llm='gpt'.*(?s:.*)Runnable"):
        RetDecisionModel(llm="gpt")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=r"RetDecisionModel: yes='maybe'.*(?s:.*)yes='retrieve'"):
        model(yes="maybe")


class WithTools(GenericFakeChatModel):
    def bind_tools(self, tools: Any, **kwargs: Any) -> BaseChatModel:
        return self


def says(*messages: AIMessage) -> WithTools:
    def endless() -> Iterator[AIMessage]:
        yield from messages

    return WithTools(messages=endless())


# Warned of once a process.
in_beta = pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainBetaWarning")


@in_beta
@pytest.mark.parametrize(("probability", "answer"), [(0.9, "from a strong model"), (0.1, "from a weak model")])
def test_langchains_router_sends_what_needs_retrieval_to_another_model(probability: float, answer: str) -> None:
    from langchain.agents import create_agent
    from langchain.agents.middleware import ModelChoice, ModelRouterMiddleware

    weak, strong = says(AIMessage("from a weak model")), says(AIMessage("from a strong model"))
    router = ModelRouterMiddleware(
        choices={"direct": ModelChoice(weak, "common"), "retrieve": ModelChoice(strong, "rare")},
        instructions="Is retrieval needed?",
        classifier=model(probability),
    )
    agent = create_agent(weak, middleware=[router])
    result = agent.invoke({"messages": [HumanMessage("who?")]})
    assert result["messages"][-1].text == answer
    assert result["model_route"].probabilities["retrieve"] == probability


@in_beta
@pytest.mark.parametrize(("probability", "searches"), [(0.9, 1), (0.1, 0)])
def test_langchains_auto_mode_blocks_a_search_that_is_not_needed(probability: float, searches: int) -> None:
    from langchain.agents import create_agent
    from langchain.agents.middleware import AutoModeMiddleware

    queries: list[str] = []

    @tool
    def search(query: str) -> str:
        """Search for passages."""
        queries.append(query)
        return "a passage"

    call = {"name": "search", "args": {"query": "who"}, "id": "1"}
    guard = AutoModeMiddleware(tools=[search], classifier=model(probability, yes="direct"))
    agent = create_agent(says(AIMessage("", tool_calls=[call]), AIMessage("Paris")), tools=[search], middleware=[guard])
    result = agent.invoke({"messages": [HumanMessage("who?")]})
    assert queries == ["who"] * searches
    assert result["messages"][-1].text == "Paris"
