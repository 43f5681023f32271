"""Answers whose sentences cite passages, in all ways of running a chain."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.load import dumpd
from langchain_core.runnables import ConfigurableField

from adaptllm_chain.agree import GroundedAnswerChain, GroundedPrompt, GroundingLoop
from adaptllm_chain.agree.response import UNSUPPORTED, parse_response
from adaptllm_chain.errors import EmptyRetrievalError, InvalidInputError
from adaptllm_chain.testing import CountingRetriever, Reply, ScriptedLLM
from tests.agree.scenes import CHAINS, MODELS, answer, cites, counted, passages, retriever
from tests.chain.scenes import all_ways

WHOLE = "It is old [1]. It hums [2][9].\n\nUnsupported statements:\n- It hums."


def make(said: Any = WHOLE, found: Any = ("It is old.", "It was sold."), model: str = "llm", **kwargs: Any) -> Any:
    script = said if callable(said) else lambda prompt: said
    return GroundedAnswerChain(llm=MODELS[model](script), retriever=retriever(found), **kwargs)


@pytest.mark.parametrize("model", MODELS)
def test_the_result(model: str) -> None:
    assert answer(make(model=model), {"question": "q", "id": 7, "sentences": "of the input", "calls": 3}) == {
        "question": "q",
        "id": 7,
        "input": "q",
        "context": passages("It is old.", "It was sold."),
        "answer": "It is old [1]. It hums [2][9].",
        "sentences": [cites("It is old.", 1), cites("It hums.", 2, rejected=1)],
        "unsupported": ["It hums."],
        "rejected_citations": 1,
    }


def test_the_prompt_holds_the_passages_and_the_question() -> None:
    chain = make()
    chain.invoke("When?")
    assert chain.llm.calls == [[GroundedPrompt().render("When?", passages("It is old.", "It was sold."))]]
    chain = make(prompt=GroundedPrompt.by_example())
    chain.invoke("When?")
    assert chain.llm.calls[0][0].startswith("Answer the question in one to three sentences")


def test_a_batch_is_one_search_and_one_call() -> None:
    chain = make(lambda prompt: f"{prompt[-30:-20]} [1].")
    results = chain.batch([f"question {number:020}" for number in range(5)])
    assert len({result["answer"] for result in results}) == 1
    assert [len(call) for call in chain.llm.calls] == [5]
    assert chain.retriever.batches == [5]


def test_a_stream_is_live_and_never_shows_the_section() -> None:
    chain = make(Reply(WHOLE, tuple(WHOLE)))
    chunks = list(chain.stream("q"))
    assert [key for chunk in chunks for key in chunk if key != "answer"] == [
        *("input", "context", "sentences", "unsupported", "rejected_citations"),
    ]
    pieces = [chunk["answer"] for chunk in chunks if "answer" in chunk]
    assert "".join(pieces) == "It is old [1]. It hums [2][9]."
    assert len(pieces) > 15
    stream = chain.stream("q")
    before = chain.llm.streamed
    first = next(chunk for chunk in stream if "answer" in chunk)
    assert (first["answer"], chain.llm.streamed - before < 5) == ("I", True)
    stream.close()


# Passages.


def test_five_passages_or_as_many_as_the_call_says() -> None:
    found = [f"P{number}." for number in range(9)]
    takes_k = GroundedAnswerChain(llm=ScriptedLLM(script=lambda prompt: "Yes."), retriever=counted({"q": found}))
    for chain in (make(found=found), takes_k):
        assert answer(chain)["context"] == passages(*found[:5])
        assert answer(chain, config={"configurable": {"k": 7}})["context"] == passages(*found[:7])
        assert answer(chain.with_config(configurable={"k": 2}))["context"] == passages(*found[:2])
    assert answer(make(found=found, k=1))["context"] == passages("P0.")


def test_a_retriever_with_a_configurable_k_is_asked_for_it() -> None:
    class Counted(CountingRetriever):
        k: int = 1

        def _find(self, query: str) -> list[Document]:
            return super()._find(query)[: self.k]

    declared = Counted(documents=["A.", "B.", "C."]).configurable_fields(k=ConfigurableField(id="k"))
    chain = GroundedAnswerChain(llm=ScriptedLLM(script=lambda prompt: "Yes."), retriever=declared, k=2)
    assert answer(chain)["context"] == passages("A.", "B.")
    assert [spec.id for spec in chain.config_specs] == ["k"]
    assert [(spec.id, spec.default) for spec in make(k=3).config_specs] == [("k", 3)]


def test_equal_passages_are_shown_once() -> None:
    assert answer(make(found=["A.", "A.", "B."]))["context"] == passages("A.", "B.")


@pytest.mark.parametrize("kind", ["grounded", "loop"])
def test_nothing_found(kind: str) -> None:
    settings: dict[str, Any] = {"llm": ScriptedLLM(script={}), "retriever": retriever([])}
    result = answer(CHAINS[kind](abstain_text="No idea.", **settings))
    assert (result["answer"], result["context"], result["sentences"]) == ("No idea.", [], [])
    assert settings["llm"].calls == []
    with pytest.raises(EmptyRetrievalError, match="brought nothing: 'q'"):
        CHAINS[kind](on_empty="raise", **settings).invoke("q")


# One way or the other.

pieces = st.lists(
    st.sampled_from(["It is old", " [1]", ".", " ", "\n", "[2", "] ", "[9]", UNSUPPORTED, "- It hums.", "<RET>"]),
    min_size=1,
    max_size=7,
)
replies = st.builds(lambda chunks: Reply("".join(chunks), tuple(chunks)), pieces)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(replies, min_size=1, max_size=3),
    st.sampled_from(["llm", "chat"]),
    st.sampled_from(sorted(CHAINS)),
    st.lists(st.sampled_from(["It is old.", "It hums.", "x", "y"]), max_size=4),
    st.sampled_from([None, ["\n"], ["old", "- It"]]),
    st.integers(1, 2),
)
def test_all_ways_agree_on_anything(
    said: list[Reply], model: str, kind: str, found: list[str], stop: list[str] | None, k: int
) -> None:
    def search(query: str) -> list[str]:
        return found[len(query) % 2 :]

    chain = CHAINS[kind](
        llm=MODELS[model](lambda prompt: said[len(prompt) % len(said)]),
        retriever=CountingRetriever(documents=search),
        stop=stop,
        k=k,
    )
    first, *others = all_ways(chain, {"question": "q", "id": 7})
    assert all(other == first for other in others)
    assert {*("id", "question", "input", "context", "answer", "sentences", "unsupported", "rejected_citations")} <= {
        *first
    }
    if kind != "attribution" and first["context"]:
        # What was streamed is what was read.
        response = parse_response(first["answer"], len(first["context"]))
        assert (response.answer, list(response.sentences)) == (first["answer"], first["sentences"])
    cited = {number for sentence in first["sentences"] for number in sentence["citations"]}
    assert cited <= set(range(1, len(first["context"]) + 1))


@pytest.mark.parametrize("kind", CHAINS)
def test_a_bad_question_fails_alone(kind: str) -> None:
    def said(prompt: str) -> str:
        if "bad" in prompt:
            raise RuntimeError("too bad")
        return "It is old [1]."

    chain = CHAINS[kind](llm=ScriptedLLM(script=said), retriever=retriever(["It is old."]))
    good, bad, empty = chain.batch(["good", "bad", ""], return_exceptions=True)
    assert good["sentences"] == [cites("It is old.", 1)]
    assert isinstance(bad, RuntimeError)
    assert isinstance(empty, InvalidInputError)


def test_stop_of_the_call_and_of_the_chain() -> None:
    said = "It is old [1].\nIt hums [2]."
    assert answer(make(said, stop=["\n"]))["answer"] == "It is old [1]."
    result = answer(make(said), stop=["hums"])
    assert (result["answer"], result["sentences"][1]["sentence"]) == ("It is old [1].\nIt", "It")


# Settings.


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"k": 0}, "GroundedAnswerChain: k=0"),
        ({"on_empty": "answer"}, "GroundedAnswerChain: on_empty='answer'"),
        ({"llm": 3}, "llm=3 is a int"),
        ({"stop": "x"}, "stop='x'"),
    ],
)
def test_wrong_settings(wrong: dict[str, Any], message: str) -> None:
    given = {"llm": ScriptedLLM(script={}), "retriever": retriever([]), **wrong}
    with pytest.raises(InvalidInputError, match=message):
        GroundedAnswerChain(**given)


def test_a_setting_that_there_is_not() -> None:
    with pytest.raises(TypeError, match="budget"):
        make(budget=3)


def test_wrong_k_of_a_call() -> None:
    with pytest.raises(InvalidInputError, match="k=0"):
        make().invoke("q", config={"configurable": {"k": 0}})


def test_dumping_hides_the_model() -> None:
    chain = GroundingLoop(llm=ScriptedLLM(script={}).bind(api_key="secret"), retriever=retriever([]), name="mine")
    dumped = json.dumps(dumpd(chain))
    assert "GroundingLoop(" in dumped
    assert "secret" not in dumped


@pytest.mark.parametrize("kind", CHAINS)
def test_schemas(kind: str) -> None:
    chain = CHAINS[kind](llm=ScriptedLLM(script={}), retriever=retriever([]))
    schema = chain.get_output_jsonschema()
    properties = schema["$defs"][schema["$ref"].rpartition("/")[2]]["properties"]
    assert {"input", "context", "answer", "sentences", "unsupported", "rejected_citations"} <= properties.keys()
    assert ("stopped" in properties) == (kind == "loop")
    assert chain.get_input_jsonschema()
