"""Settings of one call: config={"configurable": {"policy": …, "threshold": …, "k": …}}."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import ConfigurableField
from pydantic import Field

from adaptllm_chain.chain import AdaptiveRetrievalChain
from adaptllm_chain.chain.passage_count import takes_k
from adaptllm_chain.errors import InvalidInputError, MissingLogprobsError, PromptMismatchError
from adaptllm_chain.prompts import PromptSpec
from adaptllm_chain.ret import Adaptive, AlwaysRetrieve, DecisionModelPolicy, NeverRetrieve, PopularityThreshold
from adaptllm_chain.testing import CountingRetriever, Reply, ScriptedLLM
from tests.chain.decision_scenes import ScriptedJudge
from tests.chain.scenes import PASSAGES, make, script

LIKELY = Reply("Paris", info={"ret_probability": 0.4})


def documents(query: str, k: int = 4) -> list[Document]:
    return [Document(page_content=f"{query} {number}") for number in range(k)]


class Numbered(BaseRetriever):
    """As a vector store's retriever: k may stand in a call; every batch is counted."""

    batches: list[tuple[int, Any]] = Field(default_factory=list)

    def batch(self, inputs: Any, config: Any = None, **kwargs: Any) -> Any:
        self.batches.append((len(inputs), kwargs.get("k")))
        return super().batch(inputs, config, **kwargs)

    async def abatch(self, inputs: Any, config: Any = None, **kwargs: Any) -> Any:
        self.batches.append((len(inputs), kwargs.get("k")))
        return await super().abatch(inputs, config, **kwargs)

    def _get_relevant_documents(self, query: str, *, run_manager: Any, k: int = 4) -> Any:
        return documents(query, k)

    async def _aget_relevant_documents(self, query: str, *, run_manager: Any, k: int = 4) -> Any:
        return documents(query, k)


def configured(**values: Any) -> dict[str, Any]:
    return {"configurable": values}


@pytest.mark.parametrize(
    ("values", "route", "rule"),
    [
        ({}, "direct", "token"),
        ({"policy": "always_retrieve"}, "retrieve", "always"),
        ({"policy": NeverRetrieve()}, "direct", "never"),
        ({"threshold": 0.3}, "retrieve", "probability"),
        ({"threshold": 0.4}, "retrieve", "probability"),
        ({"threshold": 0.5}, "direct", "probability"),
        ({"policy": "adaptive", "threshold": 0.3}, "retrieve", "probability"),
        ({"policy": PopularityThreshold(threshold=3, lookup=len), "threshold": 9}, "retrieve", "popularity"),
        ({"policy": None}, "direct", "token"),
        ({"thread_id": "of somebody else"}, "direct", "token"),
    ],
)
def test_policy_and_threshold(ask: Any, values: dict[str, Any], route: str, rule: str) -> None:
    chain = make(LIKELY)
    for decision in (
        ask(chain, "who?", config=configured(**values))["decision"],
        ask(chain.with_config(configurable=values), "who?")["decision"],
    ):
        assert (decision.route, decision.rule) == (route, rule)
    assert chain.policy == Adaptive()


def test_a_threshold_can_be_taken_off(ask: Any) -> None:
    chain = make(LIKELY, policy=Adaptive(threshold=0.3))
    assert ask(chain, "q")["retrieved"]
    assert not ask(chain, "q", config=configured(threshold=None))["retrieved"]


def test_the_chains_own_policy_keeps_its_settings_when_it_is_named(ask: Any) -> None:
    popularity = PopularityThreshold(threshold=1000, lookup=lambda question: 5.0)
    assert ask(make(policy=popularity), "q", config=configured(policy="popularity"))["decision"].threshold == 1000
    chain = make(LIKELY, policy=Adaptive(threshold=0.3))
    assert ask(chain, "q", config=configured(policy="adaptive"))["decision"].threshold == 0.3


@pytest.mark.parametrize(
    ("values", "match"),
    [
        ({"policy": "sometimes"}, "unknown policy"),
        ({"policy": "popularity"}, "needs a threshold"),
        ({"threshold": 3}, "threshold=3"),
        ({"threshold": "much"}, "threshold='much'"),
        ({"policy": "never_retrieve", "threshold": 0.5}, "'never_retrieve' has none"),
        ({"k": 0}, "k=0"),
        ({"k": True}, "k=True"),
        ({"k": "3"}, "k='3'"),
    ],
)
def test_wrong_settings_of_a_call_ask_nothing(ask: Any, values: dict[str, Any], match: str) -> None:
    chain = make(LIKELY)
    with pytest.raises(InvalidInputError, match=match):
        ask(chain, "q", config=configured(**values))
    assert chain.llm.calls == []


def test_what_the_constructor_refuses_a_call_refuses_too(ask: Any) -> None:
    with pytest.raises(InvalidInputError, match="no retriever"):
        ask(
            AdaptiveRetrievalChain(llm=ScriptedLLM(script=script("")), policy="never_retrieve"),
            "q",
            config=configured(policy="adaptive"),
        )

    class Trained(ScriptedLLM):
        prompt_spec: PromptSpec = PromptSpec()

    chain = AdaptiveRetrievalChain(llm=Trained(script=script("Paris")), retriever=lambda query: PASSAGES)
    with pytest.raises(PromptMismatchError, match="not trained on the 'closed_book' prompt"):
        ask(chain, "q", config=configured(policy="never_retrieve"))
    with pytest.raises(MissingLogprobsError):
        ask(chain, "q", config=configured(threshold=0.5))


def test_k(ask: Any) -> None:
    for retriever in (Numbered(), documents, Numbered().with_retry(), Numbered().with_config(tags=["mine"])):
        chain = AdaptiveRetrievalChain(llm=ScriptedLLM(script=script("<RET>")), retriever=retriever)
        result = ask(chain, "q", config=configured(k=2))
        assert takes_k(chain.retriever)
        assert [passage.page_content for passage in result["context"]] == ["q 0", "q 1"]


def test_without_k_the_retriever_is_called_as_ever(ask: Any) -> None:
    chain = AdaptiveRetrievalChain(llm=ScriptedLLM(script=script("<RET>")), retriever=Numbered())
    assert len(ask(chain, "q")["context"]) == 4
    assert len(ask(chain, "q", config=configured(k=None))["context"]) == 4


def test_a_configurable_k_of_the_retrievers_own(ask: Any) -> None:
    class Fixed(BaseRetriever):
        k: int = 4

        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> Any:
            return documents(query, self.k)

    retriever = Fixed().configurable_fields(k=ConfigurableField(id="k"))
    chain = AdaptiveRetrievalChain(llm=ScriptedLLM(script=script("<RET>")), retriever=retriever)
    assert len(ask(chain, "q", config=configured(k=2))["context"]) == 2
    assert [spec.id for spec in chain.config_specs] == ["policy", "threshold", "k"]


@pytest.mark.parametrize("retriever", [CountingRetriever(documents=PASSAGES), lambda query: PASSAGES, tuple])
def test_a_retriever_that_would_ignore_k_is_refused(ask: Any, retriever: Any) -> None:
    chain = AdaptiveRetrievalChain(llm=ScriptedLLM(script=script("Paris")), retriever=retriever)
    assert not takes_k(chain.retriever)
    with pytest.raises(InvalidInputError, match="takes no k when it is called"):
        ask(chain, "q", config=configured(k=2))


BATCHES = {
    "batch": lambda chain, questions, config=None: chain.batch(questions, config),
    "abatch": lambda chain, questions, config=None: asyncio.run(chain.abatch(questions, config)),
}


@pytest.fixture(params=BATCHES)
def batch(request: pytest.FixtureRequest) -> Any:
    return BATCHES[request.param]


@pytest.fixture
def counted() -> Any:
    asks = Reply("<RET>", info={"ret_probability": 0.4})
    return AdaptiveRetrievalChain(llm=ScriptedLLM(script=script(asks)), retriever=Numbered())


@pytest.mark.parametrize("how", ["one config", "a config for each", "bound"])
def test_one_setting_for_all_is_one_batch(batch: Any, counted: Any, how: str) -> None:
    values = {"threshold": 0.3, "k": 2}
    questions = ["a", "b", "c"]
    if how == "bound":
        results = batch(counted.with_config(configurable=values), questions)
    else:
        results = batch(counted, questions, configured(**values) if how == "one config" else [configured(**values)] * 3)
    assert [len(result["context"]) for result in results] == [2, 2, 2]
    assert list(map(len, counted.llm.calls)) == [3, 3]
    assert counted.retriever.batches == [(3, 2)]


def test_settings_of_each_questions_own_are_one_batch_too(batch: Any, counted: Any) -> None:
    configs = [
        configured(k=1),
        configured(threshold=0.9),
        configured(k=2),
        configured(policy="always_retrieve"),
        configured(k=1),
    ]
    results = batch(counted, list("abcde"), configs)
    found = [[passage.page_content for passage in result["context"]] for result in results]
    assert found == [["a 0"], [], ["c 0", "c 1"], ["d 0", "d 1", "d 2", "d 3"], ["e 0"]]
    # First what is certain to be searched for; then all first prompts, and d's from passages, in one call.
    assert list(map(len, counted.llm.calls)) == [5, 4]
    assert counted.retriever.batches == [(1, None), (2, 1), (1, 2)]


rows = st.fixed_dictionaries(
    {},
    optional={
        "policy": st.sampled_from(["adaptive", "never_retrieve", "always_retrieve"]),
        "k": st.integers(1, 3) | st.none(),
    },
)


@settings(max_examples=20, deadline=None)
@given(st.lists(rows, min_size=1, max_size=5))
def test_a_batch_gives_each_question_what_it_gets_alone(configs: list[dict[str, Any]]) -> None:
    llm = ScriptedLLM(script={"context C. Q: q": "found", "get the context. Q: q1": "<RET>", "Q: q": "known"})
    chain = AdaptiveRetrievalChain(llm=llm, retriever=Numbered())
    questions = [f"q{number}" for number in range(len(configs))]
    own = [configured(**config) for config in configs]
    alone = [chain.invoke(question, config) for question, config in zip(questions, own, strict=True)]
    assert chain.batch(questions, own) == alone
    assert asyncio.run(chain.abatch(questions, own)) == alone


def judged(probability: float) -> DecisionModelPolicy:
    return DecisionModelPolicy(model=ScriptedJudge(says=lambda question: probability))


def test_a_decision_model_for_one_call(ask: Any) -> None:
    decision = ask(make("<RET>"), "q", config=configured(policy=judged(0.25)))["decision"]
    assert (decision.route, decision.rule) == ("direct", "decision_model")
    chain = make("<RET>", policy=judged(0.25))
    assert ask(chain, "q", config=configured(threshold=0.2))["decision"].route == "retrieve"
    assert ask(chain, "q", config=configured(policy="adaptive"))["decision"].rule == "token"


def test_questions_with_different_decision_models_are_one_batch(batch: Any) -> None:
    chain = make("Paris")
    never, always = judged(0.25), judged(0.75)
    # The same decision model with a threshold of the call's own, and with another question put to it.
    strict = DecisionModelPolicy(model=never.model, instructions="Is it hard?", threshold=0.2)
    configs = [
        configured(policy=never),
        {},
        configured(policy=always),
        configured(policy=never, threshold=0.1),
        configured(policy=strict),
        configured(policy=always),
    ]
    results = batch(chain, list("abcdef"), configs)
    assert [result["retrieved"] for result in results] == [False, False, True, True, True, True]
    assert [result["ret_probability"] for result in results] == [0.25, None, 0.75, 0.25, 0.25, 0.75]
    # Each decision model is asked once, and all searches are one.
    assert (never.model.batches, always.model.batches) == ([3], [2])
    assert (sorted(never.model.asked), sorted(always.model.asked)) == (["a", "d", "e"], ["c", "f"])
    assert chain.retriever.batches == [4]
    assert list(map(len, chain.llm.calls)) == [6]


def test_settings_are_described() -> None:
    chain = make(policy=Adaptive(threshold=0.3))
    schema = chain.get_config_jsonschema()["$defs"]["Configurable"]["properties"]
    assert {name: field["default"] for name, field in schema.items()} == {
        "policy": "adaptive",
        "threshold": 0.3,
        "k": None,
    }
    assert "always_retrieve" in schema["policy"]["enum"]
    assert make(policy=AlwaysRetrieve()).config_specs[1].default is None
