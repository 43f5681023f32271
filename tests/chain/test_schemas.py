"""What the chain says about itself: schemas, its graph, and what is written of it."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from langchain_core.load import dumpd, dumps, loads
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableParallel
from langchain_core.runnables.graph import Graph
from pydantic import ValidationError

from adaptllm_chain.chain import AdaptiveRetrievalChain
from adaptllm_chain.ret import Adaptive, NeverRetrieve, PopularityThreshold
from adaptllm_chain.testing import ScriptedLLM
from tests.chain import test_inputs
from tests.chain.scenes import make

ACCEPTED = test_inputs.test_l5_accepted.pytestmark[0].args[1]
AS_JSON = [value for value in ACCEPTED if "Message" not in repr(value) and "PromptValue" not in repr(value)]
KEYS = {"input", "context", "answer", "retrieved", "ret_probability", "decision"}


@pytest.mark.parametrize("value", ACCEPTED, ids=repr)
def test_every_accepted_form_fits_the_input_schema(value: Any) -> None:
    make().get_input_schema().model_validate(value)


def test_the_input_json_schema() -> None:
    schema = jsonschema.Draft202012Validator(make().get_input_jsonschema())
    assert len(AS_JSON) >= 8
    for value in AS_JSON:
        # As it arrives: a tuple is a list in JSON.
        schema.validate(json.loads(json.dumps(value)))


@pytest.mark.parametrize("value", [None, 3, {"question": 3}, {"query": ["who?", 3]}], ids=repr)
def test_what_is_no_question_does_not_fit_the_input_schema(value: Any) -> None:
    assert not jsonschema.Draft202012Validator(make().get_input_jsonschema()).is_valid(value)
    with pytest.raises(ValidationError):
        make().get_input_schema().model_validate(value)


def test_the_output_schema_fits_the_result(ask: Any) -> None:
    chain = make()
    schema = chain.get_output_jsonschema()
    assert set(schema["$defs"]["AdaptiveAnswer"]["properties"]) == KEYS
    result = ask(chain, "q")
    assert set(result) == KEYS
    written = chain.get_output_schema().model_validate(result).model_dump(mode="json")
    jsonschema.validate(written, schema)
    assert written["decision"]["route"] == "retrieve"


def test_names() -> None:
    assert make().get_name() == "AdaptiveRetrievalChain"
    assert make(name="mine").get_name() == "mine"


def edges(graph: Graph) -> set[tuple[str, str, str | None]]:
    """Edges between nodes, each called by what the chain knows it as, with the edge's label."""
    names = {
        node.id: (node.metadata or {}).get("prompt", {"CountingRetriever": "search"}.get(node.name, node.name))
        for node in graph.nodes.values()
    }
    short = {"AdaptiveRetrievalChainInput": "question", "AdaptiveRetrievalChainOutput": "answer"}
    called = {place: short.get(name, name) for place, name in names.items()}
    return {(called[edge.source], called[edge.target], edge.data and str(edge.data)) for edge in graph.edges}


READ = {("search", "context", None), ("context", "answer", None)}
GRAPHS: dict[str, tuple[Any, set[tuple[str, str, str | None]]]] = {
    "adaptive": (
        Adaptive(threshold=0.5),
        {
            ("question", "parametric", None),
            ("parametric", "Adaptive", None),
            ("Adaptive", "answer", "direct"),
            ("Adaptive", "search", "retrieve"),
            *READ,
        },
    ),
    "popularity": (
        PopularityThreshold(threshold=3, lookup=len),
        {
            ("question", "PopularityThreshold", None),
            ("PopularityThreshold", "closed_book", "direct"),
            ("closed_book", "answer", None),
            ("PopularityThreshold", "search", "retrieve"),
            *READ,
        },
    ),
    "always": ("always_retrieve", {("question", "search", None), *READ}),
    "never": ("never_retrieve", {("question", "closed_book", None), ("closed_book", "answer", None)}),
}


@pytest.mark.parametrize("policy", GRAPHS)
def test_the_graph_shows_the_policys_branches(policy: str) -> None:
    given, expected = GRAPHS[policy]
    graph = make(policy=given).get_graph()
    assert edges(graph) == expected
    assert {edge.data for edge in graph.edges if edge.conditional} <= {"direct", "retrieve"}
    assert graph.first_node() is not None
    assert graph.last_node() is not None
    json.dumps(graph.to_json(with_schemas=True))
    mermaid = graph.draw_mermaid()
    assert ("CountingRetriever" in mermaid) == (policy != "never")
    assert mermaid.count("-->") + mermaid.count(".->") == len(expected)


def test_without_a_retriever_there_is_no_retriever_in_the_graph() -> None:
    chain = AdaptiveRetrievalChain(llm=ScriptedLLM(script={}), policy=NeverRetrieve())
    assert edges(chain.get_graph()) == {
        ("question", "closed_book", None),
        ("closed_book", "answer", None),
    }


def test_the_graph_of_a_policy_in_the_config() -> None:
    config: Any = {"configurable": {"policy": "always_retrieve"}}
    assert edges(make().get_graph(config)) == GRAPHS["always"][1]
    assert edges(make().with_config(config).get_graph()) == GRAPHS["always"][1]


def test_the_graph_inside_other_graphs() -> None:
    template = ChatPromptTemplate.from_template("{topic}")
    inside = edges((template | make() | (lambda result: result)).get_graph())
    assert ("ChatPromptTemplate", "parametric", None) in inside
    assert {("Adaptive", "answer", "direct"), ("Adaptive", "search", "retrieve"), *READ} <= inside
    two = RunnableParallel(one=make(), two=make()).get_graph()
    assert len(two.nodes) == 2 + 2 * (6 - 2) + 2


def test_the_graph_as_text() -> None:
    pytest.importorskip("grandalf", reason="LangChain's draw_ascii needs grandalf")
    drawn = make().get_graph().draw_ascii()
    for name in ("AdaptiveRetrievalChainInput", "ScriptedLLM", "Adaptive", "CountingRetriever"):
        assert name in drawn


def test_what_is_written_of_a_chain_holds_no_secret() -> None:
    llm = ScriptedLLM(script={}).bind(api_key="sk-very-secret").with_retry()
    retriever = make().retriever
    assert retriever is not None
    chain = AdaptiveRetrievalChain(llm=llm, retriever=retriever.with_config(metadata={"token": "very-secret"}))
    for written in (dumps(chain), json.dumps(dumpd(chain)), dumps(chain | StrOutputParser())):
        assert "secret" not in written
        assert "AdaptiveRetrievalChain(policy='adaptive', max_rounds=1, on_empty='answer')" in written


@pytest.mark.filterwarnings("ignore:The function `loads` is in beta")
def test_a_chain_that_was_written_is_not_loaded() -> None:
    with pytest.raises(NotImplementedError, match=r"doesn't implement serialization.*AdaptiveRetrievalChain"):
        loads(dumps(make()), allowed_objects=[AdaptiveRetrievalChain], valid_namespaces=["adaptllm_chain"])


def test_results_can_be_written(ask: Any) -> None:
    written = json.loads(dumps(ask(make(), {"messages": test_inputs.MESSAGES})))
    assert written["answer"] == "From the passage."
    assert "route='retrieve'" in written["decision"]["repr"]
