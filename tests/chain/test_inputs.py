"""L5: what is a question, and what is not."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.prompt_values import ChatPromptValue, StringPromptValue

from adaptllm_chain.errors import InvalidInputError
from tests.chain.scenes import make

HUMAN = HumanMessage([{"type": "text", "text": "who?"}])
MESSAGES = [SystemMessage("be brief"), HumanMessage("hello"), AIMessage("yes?"), HUMAN]


@pytest.mark.parametrize(
    "value",
    [
        "who?",
        {"question": "who?"},
        {"input": "who?"},
        {"query": "who?"},
        {"messages": MESSAGES},
        {"input": None, "query": "who?"},
        {"input": "who?", "query": "something else"},
        {"input": MESSAGES},
        {"input": HUMAN},
        MESSAGES,
        HUMAN,
        [("system", "be brief"), ("human", "who?")],
        [{"role": "user", "content": "who?"}],
        {"role": "user", "content": "who?"},
        {"question": "who?", "role": "teacher"},
        {"role": "user", "content": "what?", "input": "who?"},
        StringPromptValue(text="who?"),
        ChatPromptValue(messages=MESSAGES),
    ],
    ids=repr,
)
def test_l5_accepted(ask: Any, value: Any) -> None:
    chain = make()
    result = ask(chain, value)
    assert result["input"] == "who?"
    assert type(result["input"]) is str
    assert chain.retriever.queries == ["who?"]


def test_other_keys_are_carried_over(ask: Any) -> None:
    result = ask(make("Paris"), {"question": "q", "id": 7, "answer": "gold", "context": "given"})
    assert {key: result[key] for key in ("question", "id", "input", "answer")} == {
        "question": "q",
        "id": 7,
        "input": "q",
        "answer": "Paris",
    }
    assert result["context"] == []


def test_a_role_beside_a_question_is_carried_over(ask: Any) -> None:
    assert ask(make("Paris"), {"question": "q", "role": "teacher"})["role"] == "teacher"


@pytest.mark.parametrize(
    "value",
    [None, "", " \n", 3, b"who?", {}, {"text": "who?"}, {"question": ""}, {"question": 3}, [], ["a", "b"],
     [AIMessage("who?")], [3], {"messages": []}, {"role": "user", "content": ""}, {"role": "teacher"},
     ChatPromptValue(messages=[])],
    ids=repr,
)  # fmt: skip
def test_refused_with_the_accepted_forms(ask: Any, value: Any) -> None:
    with pytest.raises(InvalidInputError, match="expected"):
        ask(make(), value)


def test_a_list_of_questions_is_for_batch() -> None:
    with pytest.raises(InvalidInputError, match=r"chain\.batch"):
        make().invoke(["who?", "when?"])
