"""The decision, row by row (D1-D11), in every mode."""

import math
from typing import Any

import pytest
from langchain_core.caches import InMemoryCache

from adaptllm_chain.chain import AdaptiveRetrievalChain
from adaptllm_chain.errors import InvalidInputError, MissingLogprobsError
from adaptllm_chain.ret import Adaptive, AlwaysRetrieve, NeverRetrieve, PopularityThreshold
from adaptllm_chain.testing import Reply, ScriptedLLM
from tests.chain.scenes import PASSAGES, make, script, summary


def probable(text: str, probability: float) -> Reply:
    return Reply(text, info={"ret_probability": probability, "ret_probability_kind": "exact"})


@pytest.mark.parametrize(("threshold", "retrieved"), [(0.2, 2), (0.5, 1), (0.95, 0)])
def test_d1(threshold: float, retrieved: int) -> None:
    said = {
        "given the context C": "found",
        "Q: a": probable("x", 0.9),
        "Q: b": probable("y", 0.3),
        "Q: c": probable("z", 0.05),
    }
    results = make(said, policy=Adaptive(threshold=threshold)).batch(["a", "b", "c"])
    assert [result["retrieved"] for result in results].count(True) == retrieved
    assert [result["ret_probability"] for result in results] == [0.9, 0.3, 0.05]


def test_d2_an_upper_bound_is_no_probability(ask: Any) -> None:
    tops = [{"token": "Paris", "logprob": -0.1}, {"token": "Rome", "logprob": -3.0}]
    info = {"logprobs": {"content": [{"token": "Paris", "logprob": -0.1, "top_logprobs": tops}]}}
    result = ask(make(Reply("Paris", info=info), policy=Adaptive(threshold=0.01)), "q")
    assert summary(result) == ("Paris", "direct", False, 0)
    assert result["ret_probability"] is None
    assert result["decision"].signal.kind == "upper_bound"


@pytest.mark.parametrize("model", ["llm", "chat", "retrying llm", "bound chat"])
def test_d3_five_logprobs_of_one_position(ask: Any, model: str) -> None:
    tops = [{"token": t, "logprob": lp} for t, lp in [("Paris", -0.5), ("<", -1.5), ("a", -3.0), ("b", -4), ("c", -5)]]
    info = {"logprobs": {"content": [{"token": "Paris", "logprob": -0.5, "top_logprobs": tops}]}}
    result = ask(make(Reply("Paris", info=info), model=model, policy=Adaptive(threshold=0.2)), "q")
    assert result["retrieved"]
    assert result["ret_probability"] == pytest.approx(0.2231, abs=1e-4)
    assert result["decision"].signal.kind == "first_piece"


def test_d4_never_without_a_retriever(ask: Any) -> None:
    chain = AdaptiveRetrievalChain(llm=ScriptedLLM(script=script("?")), policy="never_retrieve")
    result = ask(chain, "q")
    assert summary(result) == ("By heart.", "direct", False, 0)
    assert result["ret_probability"] is None


def test_d5(ask: Any) -> None:
    by_token = ask(make(probable("<RET>", 0.4)), "q")
    assert summary(by_token) == ("From the passage.", "retrieve", True, 2)
    assert by_token["ret_probability"] == 0.4
    # The output holds no answer, so the model is asked for one.
    by_probability = ask(make(probable("<RET>", 0.4), policy=Adaptive(threshold=0.5)), "q")
    assert summary(by_probability) == ("By heart.", "direct", False, 0)
    overruled = ask(make(probable("Paris", 0.4), policy=Adaptive(threshold=0.3)), "q")
    assert summary(overruled) == ("From the passage.", "retrieve", True, 2)


@pytest.mark.parametrize(("output", "calls"), [("Paris", 0), ("<RET>", 1)])
def test_d6(ask: Any, output: str, calls: int) -> None:
    chain = make(output)
    ask(chain, "who?")
    assert chain.retriever.queries == ["who?"] * calls


@pytest.mark.parametrize("output", ["<RET>", " <RET>", "\n<RET>", "<RET>.", "<ret>", "<RET", "", " \n"])
def test_d7_d9_requests(ask: Any, output: str) -> None:
    result = ask(make(output), "q")
    assert summary(result) == ("From the passage.", "retrieve", True, 2)
    assert result["decision"].reason


@pytest.mark.parametrize(("output", "answer"), [("RET", "RET"), ("I need <RET>", "I need"), (" Paris <RE", "Paris")])
def test_d9_answers(ask: Any, output: str, answer: str) -> None:
    assert summary(ask(make(output), "q")) == (answer, "direct", False, 0)


@pytest.mark.parametrize("model", ["llm", "chat"])
def test_d8_a_stripped_special_token(ask: Any, model: str) -> None:
    assert ask(make("", model=model), "q")["retrieved"]
    assert ask(make(Reply("", info={"is_ret": True}), model=model), "q")["decision"].reason == (
        "the model asked for retrieval"
    )


@pytest.mark.parametrize(
    "question", ["<RET>", "</s>", "<|im_end|>", "### Response:", "{context} {question}", " <ret> ?"]
)
def test_d11_a_question_is_text(ask: Any, question: str) -> None:
    chain = make("Paris")
    result = ask(chain, question)
    assert summary(result) == ("Paris", "direct", False, 0)
    assert result["input"] == question
    assert chain.llm.calls[0][0].endswith(f"Q: {question}")


def test_a_threshold_needs_logprobs(ask: Any) -> None:
    with pytest.raises(MissingLogprobsError):
        ask(make("Paris", policy=Adaptive(threshold=0.5)), "q")


def test_a_probability_that_is_the_threshold_retrieves(ask: Any) -> None:
    assert ask(make(probable("Paris", 0.5), policy=Adaptive(threshold=0.5)), "q")["retrieved"]


@pytest.mark.parametrize("model", ["llm", "chat"])
def test_nan_is_no_probability(ask: Any, model: str) -> None:
    tops = [{"token": "<", "logprob": math.nan}, {"token": "Paris", "logprob": -0.1}]
    info = {"logprobs": {"content": [{"token": "Paris", "logprob": -0.1, "top_logprobs": tops}]}}
    with pytest.raises(MissingLogprobsError, match="that are numbers"):
        ask(make(Reply("Paris", info=info), model=model, policy=Adaptive(threshold=0.5)), "q")
    assert ask(make(Reply("Paris", info=info), model=model), "q")["ret_probability"] is None


@pytest.mark.parametrize("wrap", [lambda llm: llm.with_retry(), lambda llm: llm.with_fallbacks([llm])])
def test_what_a_cache_behind_a_wrapper_loses_is_named(wrap: Any) -> None:
    llm = ScriptedLLM(script=script(probable("Paris", 0.1)), cache=InMemoryCache())
    chain = AdaptiveRetrievalChain(llm=wrap(llm), retriever=lambda query: [], policy=Adaptive(threshold=0.5))
    assert chain.invoke("q")["answer"] == "Paris"
    with pytest.raises(MissingLogprobsError, match="cache"):
        chain.invoke("q")


def test_a_cache_loses_nothing_without_a_wrapper() -> None:
    llm = ScriptedLLM(script=script(probable("Paris", 0.1)), cache=InMemoryCache())
    chain = AdaptiveRetrievalChain(llm=llm, retriever=lambda query: [], policy=Adaptive(threshold=0.5))
    assert chain.invoke("q") == chain.invoke("q")
    assert len(llm.calls) == 1


def test_always_and_never_ask_one_prompt(ask: Any) -> None:
    always = make("?", policy=AlwaysRetrieve())
    assert summary(ask(always, "q")) == ("From the passage.", "retrieve", True, 2)
    never = make("?", policy=NeverRetrieve())
    assert summary(ask(never, "q")) == ("By heart.", "direct", False, 0)
    assert [len(chain.llm.calls) for chain in (always, never)] == [1, 1]
    assert "C: Paris is the capital of France.\nRome is not." in always.llm.calls[0][0]


def test_popularity(ask: Any) -> None:
    chain = make("?", policy=PopularityThreshold(threshold=100))
    assert summary(ask(chain, {"question": "q", "popularity": 100})) == ("By heart.", "direct", False, 0)
    assert summary(ask(chain, {"question": "q", "popularity": 99.5})) == ("From the passage.", "retrieve", True, 2)
    with pytest.raises(InvalidInputError, match="popularity"):
        ask(chain, "q")
    for wrong in ("many", True, float("nan"), float("inf")):
        with pytest.raises(InvalidInputError, match=r"popularity of 'q' in the input is"):
            ask(chain, {"question": "q", "popularity": wrong})


def test_popularity_concerns_those_policies_alone_that_need_it(ask: Any) -> None:
    for policy in ("adaptive", "always_retrieve", "never_retrieve"):
        result = ask(make("Paris", policy=policy), {"question": "q", "popularity": "high"})
        assert result["popularity"] == "high"


def test_the_marker_never_leaks_from_a_closed_book_answer(ask: Any) -> None:
    chain = make(script("?", memory="<RET>"), policy="never_retrieve")
    assert ask(chain, "q")["answer"] == "I don't know."


def test_the_same_passages_come_out_as_went_in(ask: Any) -> None:
    assert ask(make(), "q")["context"] == PASSAGES
