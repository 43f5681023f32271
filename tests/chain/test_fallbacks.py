"""D10 and its siblings: retrieval that brings nothing, and a model that goes on asking."""

from typing import Any

import pytest
from langchain_core.documents import Document

from adaptllm_chain.errors import EmptyRetrievalError
from tests.chain.scenes import make, script, summary


def test_d10_answer(ask: Any) -> None:
    result = ask(make(found=[]), "q")
    assert summary(result) == ("By heart.", "retrieve", True, 0)
    assert result["decision"].reason == (
        "the model asked for retrieval; the search brought nothing: answered from memory"
    )


def test_d10_abstain(ask: Any) -> None:
    chain = make(found=[], on_empty="abstain", abstain_text="No idea.")
    result = ask(chain, "q")
    assert summary(result) == ("No idea.", "retrieve", True, 0)
    assert result["decision"].reason.endswith("the search brought nothing: abstained")
    assert len(chain.llm.calls) == 1


def test_d10_raise(ask: Any) -> None:
    with pytest.raises(EmptyRetrievalError, match=r"brought nothing: 'who\?'"):
        ask(make(found=[], on_empty="raise"), "who?")


def test_a_request_instead_of_an_answer_from_memory_is_an_abstention(ask: Any) -> None:
    result = ask(make(script("<RET>", memory="<RET> please"), found=[], abstain_text="Pass."), "q")
    assert result["answer"] == "Pass."
    assert result["decision"].reason.endswith("asked for retrieval even with the closed-book prompt: abstained")


@pytest.mark.parametrize("again", ["<RET>", "\n<ret>.", "<RET"])
def test_a_model_that_goes_on_asking(ask: Any, again: str) -> None:
    chain = make(script("<RET>", context=again))
    result = ask(chain, "q")
    assert summary(result) == ("By heart.", "retrieve", True, 0)
    assert "still asked for retrieval after 1 search:" in result["decision"].reason
    assert chain.retriever.queries == ["q"]


def test_an_empty_answer_from_passages_is_an_answer(ask: Any) -> None:
    assert summary(ask(make(script("<RET>", context="  ")), "q")) == ("", "retrieve", True, 2)


def test_a_second_round_searches_with_the_best_passage_and_shows_others(ask: Any) -> None:
    said = {"If you need help": "<RET>", "C: first": "<RET>", "C: second": "Found.", "Q. Q:": "By heart."}
    chain = make(said, found=lambda query: ["first"] if query == "q" else ["first", "second"], max_rounds=2)
    result = ask(chain, "q")
    assert chain.retriever.queries == ["q", "q first"]
    assert summary(result) == ("Found.", "retrieve", True, 1)
    assert [passage.page_content for passage in result["context"]] == ["second"]


def test_a_second_round_that_brings_nothing_new(ask: Any) -> None:
    chain = make(script("<RET>", context="<RET>"), max_rounds=5)
    result = ask(chain, "q")
    assert len(chain.retriever.queries) == 2
    assert "a further search brought nothing new: answered from memory" in result["decision"].reason


def test_rounds_are_limited(ask: Any) -> None:
    chain = make(script("<RET>", context="<RET>"), found=lambda query: [query], max_rounds=3, on_empty="abstain")
    result = ask(chain, "q")
    assert len(chain.retriever.queries) == 3
    assert "still asked for retrieval after 3 searches: abstained" in result["decision"].reason


def test_passages_with_one_text_and_two_titles_are_two(ask: Any) -> None:
    found = {"q": [Document(page_content="same", metadata={"title": "A"})]}
    chain = make(
        {"If you need help": "<RET>", "C: A same": "<RET>", "C: B same": "Found.", "Q. Q:": "By heart."},
        found=lambda query: found.get(query, [Document(page_content="same", metadata={"title": "B"})]),
        max_rounds=2,
    )
    assert ask(chain, "q")["answer"] == "Found."
