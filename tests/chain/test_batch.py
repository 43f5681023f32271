"""Waves, isolation of errors, limits (B3, B4)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableLambda

from adaptllm_chain.chain import AdaptiveRetrievalChain
from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.ret import PopularityThreshold
from adaptllm_chain.testing import CountingRetriever, ScriptedChatModel, ScriptedLLM
from tests.chain.scenes import make

QUESTIONS = [f"question {number}" for number in range(8)]
BATCHES: dict[str, Callable[..., list[Any]]] = {
    "batch": lambda chain, values, **kwargs: chain.batch(values, **kwargs),
    "abatch": lambda chain, values, **kwargs: asyncio.run(chain.abatch(values, **kwargs)),
}


@pytest.fixture(params=BATCHES)
def ask_all(request: pytest.FixtureRequest) -> Callable[..., list[Any]]:
    return BATCHES[request.param]


def three_ask(prompt: str) -> str:
    if "given the context C" in prompt:
        return "From the passage."
    return "<RET>" if prompt[-1] in "147" else f"Answer to {prompt[-1]}"


def of(llm: Runnable[Any, Any], **settings: Any) -> AdaptiveRetrievalChain:
    return AdaptiveRetrievalChain(llm=llm, retriever=CountingRetriever(documents=lambda query: [query]), **settings)


def sizes(chain: Any) -> list[int]:
    return [len(call) for call in chain.llm.calls]


def test_b3_two_waves_and_one_search(ask_all: Any) -> None:
    chain = of(ScriptedLLM(script=three_ask))
    results = ask_all(chain, QUESTIONS)
    assert sizes(chain) == [8, 3]
    assert chain.retriever.batches == [3]
    assert [result["retrieved"] for result in results] == [number in (1, 4, 7) for number in range(8)]
    assert [result["input"] for result in results] == QUESTIONS
    assert results[4]["context"] == [Document(page_content="question 4")]
    assert results[5]["answer"] == "Answer to 5"


def test_b3_in_fours(ask_all: Any) -> None:
    chain = of(ScriptedLLM(script=three_ask))
    whole = ask_all(chain, QUESTIONS)
    in_fours = of(ScriptedLLM(script=three_ask))
    assert ask_all(in_fours, QUESTIONS, config={"max_concurrency": 4}) == whole
    assert sizes(in_fours) == [4, 4, 3]
    assert in_fours.retriever.batches == [3]


@pytest.mark.parametrize("wrap", [lambda llm: llm.bind(extra=1), lambda llm: llm.with_retry()])
def test_a_wrapped_llm_is_batched_as_well(ask_all: Any, wrap: Any) -> None:
    llm = ScriptedLLM(script=three_ask)
    ask_all(of(wrap(llm)), QUESTIONS)
    assert [len(call) for call in llm.calls] == [8, 3]


def test_a_chat_model_is_asked_once_for_each(ask_all: Any) -> None:
    chain = of(ScriptedChatModel(script=three_ask))
    ask_all(chain, QUESTIONS)
    assert len(chain.llm.calls) == 11
    assert chain.retriever.batches == [3]


def test_b4_all_one_way_twice(ask_all: Any) -> None:
    for said, calls, searches in (("Paris", [8], []), ("<RET>", [8, 8], [8])):
        chain = make(said)
        first = ask_all(chain, QUESTIONS)
        assert sizes(chain) == calls
        assert chain.retriever.batches == searches
        assert ask_all(chain, QUESTIONS) == first
        assert sizes(chain) == calls * 2


def test_without_an_opening_pass_everything_is_one_call(ask_all: Any) -> None:
    policy = PopularityThreshold(threshold=3, lookup=lambda question: float(question[-1]))
    chain = of(ScriptedLLM(script=three_ask), policy=policy)
    ask_all(chain, QUESTIONS)
    assert (sizes(chain), chain.retriever.batches) == ([8], [3])


def test_fallbacks_are_waves_too(ask_all: Any) -> None:
    chain = AdaptiveRetrievalChain(llm=ScriptedLLM(script=three_ask), retriever=CountingRetriever())
    ask_all(chain, QUESTIONS)
    assert sizes(chain) == [8, 3]
    assert all("Q. Q:" in prompt for prompt in chain.llm.calls[1])


def test_nothing_asked(ask_all: Any) -> None:
    assert ask_all(make(), []) == []


def fails(marked: str, script: Callable[[str], str] = three_ask) -> Callable[[str], str]:
    def said(prompt: str) -> str:
        if marked in prompt:
            raise ZeroDivisionError(marked)
        return script(prompt)

    return said


@pytest.mark.parametrize("model", [ScriptedLLM, ScriptedChatModel])
def test_one_bad_prompt_fails_alone(ask_all: Any, model: Any) -> None:
    chain = of(model(script=fails("question 4")))
    results = ask_all(chain, [*QUESTIONS, " ", None], return_exceptions=True)
    assert [type(results[index]) for index in (4, 8, 9)] == [ZeroDivisionError, InvalidInputError, InvalidInputError]
    good = [results[index] for index in range(8) if index != 4]
    whole = ask_all(of(ScriptedLLM(script=three_ask)), QUESTIONS)
    assert good == [result for index, result in enumerate(whole) if index != 4]
    with pytest.raises(ZeroDivisionError):
        ask_all(chain, QUESTIONS)


def test_a_bad_prompt_is_found_by_halving(ask_all: Any) -> None:
    chain = of(ScriptedLLM(script=fails("question 4", lambda prompt: "Paris")))
    results = ask_all(chain, QUESTIONS, return_exceptions=True)
    assert [isinstance(result, Exception) for result in results] == [index == 4 for index in range(8)]
    assert sizes(chain) == [8, 4, 4, 2, 1, 1, 2]


def is_down(prompt: str) -> str:
    raise ConnectionError("connection refused")


def test_a_model_that_is_down_is_not_asked_for_each_question(ask_all: Any) -> None:
    many = [f"question {number}" for number in range(64)]
    chain = of(ScriptedLLM(script=is_down))
    results = ask_all(chain, many, return_exceptions=True)
    assert [str(result) for result in results] == ["connection refused"] * 64
    assert sizes(chain) == [64, 32, 32] + [1] * 8
    in_eights = of(ScriptedLLM(script=is_down))
    ask_all(in_eights, many, return_exceptions=True, config={"max_concurrency": 8})
    assert len(sizes(in_eights)) == 15 + 7 * 2


@pytest.mark.parametrize("limit", [None, 4, 8])
def test_many_bad_prompts_that_fail_alike_are_no_outage(ask_all: Any, limit: int | None) -> None:
    def too_long(prompt: str) -> str:
        if prompt[-2:] in (" 0", " 7", " 8", "15", " 1", " 2", " 3"):
            raise ConnectionError("too long")
        return "Paris"

    results = ask_all(
        of(ScriptedLLM(script=too_long)),
        [f"question {number}" for number in range(16)],
        return_exceptions=True,
        config={"max_concurrency": limit},
    )
    assert [index for index, result in enumerate(results) if isinstance(result, Exception)] == [0, 1, 2, 3, 7, 8, 15]


def test_a_call_that_is_too_large_is_halved_although_it_fails_alike(ask_all: Any) -> None:
    class Small(ScriptedLLM):
        def _generate(self, prompts: list[str], *args: Any, **kwargs: Any) -> Any:
            if len(prompts) > 2:
                raise MemoryError("out of memory")
            return super()._generate(prompts, *args, **kwargs)

    llm = Small(script=lambda prompt: "Paris")
    results = ask_all(of(llm), [f"question {number}" for number in range(16)])
    assert [result["answer"] for result in results] == ["Paris"] * 16


def test_an_output_that_is_no_text_fails_alone_and_at_once(ask_all: Any) -> None:
    asked: list[str] = []

    def say(prompt: str) -> Any:
        asked.append(prompt)
        return 4 if prompt.endswith("4") else "Paris"

    results = ask_all(of(RunnableLambda(say)), QUESTIONS, return_exceptions=True)
    assert [isinstance(result, InvalidInputError) for result in results] == [index == 4 for index in range(8)]
    assert len(asked) == 8


@pytest.mark.parametrize("limit", [-1, 0, True, "4", 2.5])
@pytest.mark.parametrize("model", [ScriptedLLM, ScriptedChatModel])
def test_a_limit_under_which_nothing_runs_is_refused(ask_all: Any, model: Any, limit: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"max_concurrency=.*\n.*at least 1"):
        ask_all(of(model(script=three_ask)), QUESTIONS, config={"max_concurrency": limit})


def test_a_listener_that_fails_for_one_question_fails_it_alone(ask_all: Any) -> None:
    class Strict(BaseCallbackHandler):
        raise_error = True
        heard = 0

        def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
            self.heard += 1
            if self.heard == 5:
                raise ZeroDivisionError

    results = ask_all(
        of(ScriptedLLM(script=three_ask)), QUESTIONS, return_exceptions=True, config={"callbacks": [Strict()]}
    )
    assert [isinstance(result, ZeroDivisionError) for result in results] == [index == 4 for index in range(8)]


def test_one_bad_search_fails_alone(ask_all: Any) -> None:
    def find(query: str) -> list[str]:
        if "4" in query:
            raise ZeroDivisionError
        return [query]

    chain = AdaptiveRetrievalChain(llm=ScriptedLLM(script=three_ask), retriever=CountingRetriever(documents=find))
    results = ask_all(chain, QUESTIONS, return_exceptions=True)
    assert [isinstance(result, Exception) for result in results] == [index == 4 for index in range(8)]
    assert chain.retriever.batches == [3]


def test_a_retriever_that_fails_as_a_whole_is_asked_for_less(ask_all: Any) -> None:
    class Fragile(CountingRetriever):
        def batch(self, inputs: list[str], *args: Any, **kwargs: Any) -> Any:
            if len(inputs) > 1:
                raise MemoryError
            return super().batch(inputs, *args, **kwargs)

        async def abatch(self, inputs: list[str], *args: Any, **kwargs: Any) -> Any:
            if len(inputs) > 1:
                raise MemoryError
            return await super().abatch(inputs, *args, **kwargs)

    retriever = Fragile(documents=["p"])
    chain = AdaptiveRetrievalChain(llm=ScriptedLLM(script=three_ask), retriever=retriever)
    assert sum(result["retrieved"] for result in ask_all(chain, QUESTIONS)) == 3
    assert retriever.batches == [1, 1, 1]


def test_as_completed() -> None:
    chain = of(ScriptedLLM(script=three_ask))
    assert dict(chain.batch_as_completed(QUESTIONS)) == dict(enumerate(chain.batch(QUESTIONS)))

    async def completed() -> dict[int, Any]:
        return {index: result async for index, result in chain.abatch_as_completed(QUESTIONS)}

    assert asyncio.run(completed()) == dict(enumerate(chain.batch(QUESTIONS)))
