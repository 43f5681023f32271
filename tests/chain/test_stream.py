"""Streams: pieces as they come, no part of the marker, and no token too many (L2, L4, L6)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.language_models import FakeStreamingListLLM
from langchain_core.runnables import RunnableGenerator

from adaptllm_chain.chain import AdaptiveRetrievalChain
from adaptllm_chain.testing import Reply, ScriptedLLM
from tests.chain.scenes import MODELS, PASSAGES, added, make, script

STREAMS: dict[str, Any] = {
    "stream": lambda chain, value: list(chain.stream(value)),
    "astream": lambda chain, value: asyncio.run(_astream(chain, value)),
}


async def _astream(chain: Any, value: Any) -> list[Any]:
    return [chunk async for chunk in chain.astream(value)]


@pytest.fixture(params=STREAMS)
def streamed(request: pytest.FixtureRequest) -> Any:
    return STREAMS[request.param]


def answers(chunks: list[Any]) -> list[str]:
    return [chunk["answer"] for chunk in chunks if "answer" in chunk]


@pytest.mark.parametrize("model", sorted(set(MODELS) - {"runnable"}))
def test_l2_three_chunks_in_three_chunks_out(streamed: Any, model: str) -> None:
    direct = streamed(make(Reply("Paris, of course.", ("Paris", ", of", " course.")), model=model), "q")
    assert answers(direct) == ["Paris", ", of", " course."]
    said = script(Reply("<RET>", ("<", "RET", ">")), context=Reply("It is Paris", ("It ", "is ", "Paris")))
    retrieved = streamed(make(said, model=model), "q")
    assert answers(retrieved) == ["It", " is", " Paris"]
    for chunk in [*answers(direct), *answers(retrieved)]:
        assert not any(part in chunk for part in ("<", "RET", ">"))


def test_what_was_held_back_comes_piece_by_piece(streamed: Any) -> None:
    said = Reply("<R is a tag, I need <RET> it", ("<", "R", " is a tag,", " I need <", "RET> it"))
    assert answers(streamed(make(said), "q")) == ["<R is a tag,", " I need"]
    said = Reply("<b> Paris", ("<", "b", "> ", "Paris"))
    assert answers(streamed(make(said), "q")) == ["<b", ">", " Paris"]


def test_the_order_of_what_is_told(streamed: Any) -> None:
    chunks = streamed(make(), {"question": "q", "id": 7, "answer": "old", "context": "old"})
    assert dict(chunks[0]) == {"question": "q", "id": 7, "input": "q"}
    assert dict(chunks[1]) == {"retrieved": True, "ret_probability": None}
    assert chunks[2]["context"] == PASSAGES
    assert list(chunks[3]) == ["answer"]
    assert added(chunks) == make().invoke({"question": "q", "id": 7})


def test_the_model_is_stopped_at_the_marker(streamed: Any) -> None:
    said = Reply("<RET> and on and on", ("<RET>", "", " and", " on", " and", " on"))
    chain = make(script(said, context="Paris"))
    assert added(streamed(chain, "q"))["answer"] == "Paris"
    # The marker, the empty chunk that may have been the end, one more, and the answer's.
    assert chain.llm.streamed == 4


def test_the_model_is_stopped_at_a_stop(streamed: Any) -> None:
    chain = make(Reply("Paris\nQ: next and on", ("Paris", "\n", "Q: ", "next", " and", " on")), stop=["\n"])
    assert added(streamed(chain, "q"))["answer"] == "Paris"
    assert chain.llm.streamed == 3


def test_a_reader_who_leaves_stops_the_model() -> None:
    chain = make(Reply("a b c d e"))
    stream = chain.stream("q")
    while "answer" not in next(stream):
        pass
    stream.close()
    assert chain.llm.streamed < 5

    async def leave() -> int:
        chain = make(Reply("a b c d e"))
        stream = chain.astream("q")
        async for chunk in stream:
            if "answer" in chunk:
                break
        await stream.aclose()
        return chain.llm.streamed

    assert asyncio.run(leave()) < 5


@pytest.mark.parametrize("output", ["Paris\nQ: next", "\nParis\nQ: next", "Paris"])
@pytest.mark.parametrize("model", MODELS)
def test_l4_stops_are_enforced_though_the_model_ignores_them(ask: Any, output: str, model: str) -> None:
    assert ask(make(output, model=model, stop=["\n"]), "q")["answer"] == "Paris"
    assert ask(make(output, model=model, stop=["Q:"]).bind(stop=["\n"]), "q")["answer"] == "Paris"
    assert ask(make(script("<RET>", context=output), model=model, stop=["\n"]), "q")["answer"] == "Paris"


@pytest.mark.parametrize("model", ["llm", "chat"])
def test_l4_stops_are_passed_on(ask: Any, model: str) -> None:
    chain = make("<RET>", model=model, stop=["\n"])
    ask(chain, "q")
    assert chain.llm.stops == [["\n"], ["\n"]]
    ask(chain.bind(stop=["Q:"]), "q")
    assert chain.llm.stops[2:] == [["Q:"], ["Q:"]]


def test_other_arguments_go_to_the_model(ask: Any) -> None:
    heard = []

    class Listening(ScriptedLLM):
        def _generate(self, prompts: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
            heard.append(kwargs)
            return super()._generate(prompts, stop)

        async def _agenerate(self, prompts: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
            heard.append(kwargs)
            return super()._generate(prompts, stop)

        def _stream(self, prompt: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
            heard.append(kwargs)
            return super()._stream(prompt, stop)

        def _astream(self, prompt: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
            heard.append(kwargs)
            return super()._astream(prompt, stop)

    chain = AdaptiveRetrievalChain(llm=Listening(script=script("Paris")).bind(top=1), retriever=lambda query: [])
    ask(chain.bind(temperature=0.5), "q")
    assert heard == [{"top": 1, "temperature": 0.5}]


def test_an_echoed_prompt_is_taken_off(ask: Any) -> None:
    # HuggingFacePipeline returns the prompt and the output, but streams the output alone.
    class Echoing(ScriptedLLM):
        def _generate(self, prompts: Any, *args: Any, **kwargs: Any) -> Any:
            result = super()._generate(prompts)
            for prompt, (generation,) in zip(prompts, result.generations, strict=True):
                generation.text = prompt + generation.text
            return result

    chain = AdaptiveRetrievalChain(llm=Echoing(script=script("<RET>")), retriever=lambda query: PASSAGES)
    assert ask(chain, "q")["answer"] == "From the passage."


def test_models_that_do_not_stream(streamed: Any) -> None:
    llm = FakeStreamingListLLM(responses=["<RET>", "Paris"])
    assert "".join(answers(streamed(AdaptiveRetrievalChain(llm=llm, retriever=lambda query: PASSAGES), "q"))) == "Paris"
    assert answers(streamed(make("Paris it is", model="runnable"), "q")) == ["Paris it is"]


def test_a_question_that_comes_in_pieces(streamed: Any) -> None:
    def pieces(values: Any) -> Any:
        for value in values:
            yield from (value[:3], value[3:])

    async def apieces(values: Any) -> Any:
        async for value in values:
            yield value[:3]
            yield value[3:]

    chain = RunnableGenerator(pieces, apieces) | make("Paris")
    assert added(streamed(chain, "who is it?"))["input"] == "who is it?"
