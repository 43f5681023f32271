"""The service around a real local model, tiny and untrained."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from adaptllm_chain.llms import LocalLLM
from tests.serve.scenes import ask, client_of, events_of, make_app, make_chain, send
from tests.tiny_models import byte_level_tokenizer, tiny_llama

QUESTIONS = ["Which river runs past the mill?", "Who built it?", "Where does the harbour of Oslo lie?"]


@pytest.fixture(scope="module")
def llm() -> LocalLLM:
    tokenizer = byte_level_tokenizer()
    return LocalLLM(model=tiny_llama(tokenizer), tokenizer=tokenizer, format="chat", max_new_tokens=8, batch_size=4)


async def test_streams_and_batches_take_turns_at_the_model(llm: LocalLLM, monkeypatch: pytest.MonkeyPatch) -> None:
    chain = make_chain(llm, policy="always_retrieve")
    expected = [chain.invoke(question)["answer"] for question in QUESTIONS]
    inside, overlaps = threading.Lock(), []
    generate = llm.model.generate

    def watched(**arguments: Any) -> Any:
        overlaps.append(not inside.acquire(blocking=False))
        try:
            return generate(**arguments)
        finally:
            inside.release()

    monkeypatch.setattr(llm.model, "generate", watched)
    async with client_of(make_app(chain, batch_size=1, parallel_batches=3)) as client:
        responses = await asyncio.gather(
            *(
                client.post("/ask", json={"question": question, "stream": stream})
                for question in QUESTIONS
                for stream in (False, True)
            )
        )
    answers = [
        (events_of(response.text)[-1][1] if "event-stream" in response.headers["content-type"] else response.json())
        for response in responses
    ]
    assert [row["answer"] for row in answers] == [answer for answer in expected for _ in range(2)]
    assert overlaps == [False] * 6


def test_tokens(llm: LocalLLM) -> None:
    app = make_app(make_chain(llm, policy="never_retrieve"))
    used = []
    for limit in (None, 3, 100):
        body = {"model": "adaptllm", "messages": [{"role": "user", "content": QUESTIONS[0]}], "max_tokens": limit}
        used.append(send(app, "POST", "/v1/chat/completions", json=body).json()["usage"])
    assert used[0] == used[2]
    assert used[1]["completion_tokens"] == 3 < used[0]["completion_tokens"] <= 8
    prompt = f"Answer the question Q. Q: {QUESTIONS[0]}"
    framed = llm._encoder.frame(prompt).text
    assert used[0]["prompt_tokens"] == len(llm.tokenizer(framed).input_ids)


@pytest.mark.parametrize("stream", [False, True])
def test_a_question_that_the_model_cannot_read(llm: LocalLLM, *, stream: bool) -> None:
    response = ask(make_app(make_chain(llm)), "long " * 300, stream=stream)
    error = (events_of(response.text)[-1][1] if stream else response.json())["error"]
    assert response.status_code == (200 if stream else 422)
    assert "the prompt has" in error["message"]
    assert error["hint"]
