"""Prompts: what the model is shown, and what cannot get in."""

from __future__ import annotations

import pytest
from langchain_core.documents import Document

from adaptllm_chain.agree import CitingExample, GroundedPrompt, parse_response
from adaptllm_chain.agree.prompts import EXAMPLES
from adaptllm_chain.errors import InvalidInputError

PASSAGES = [
    Document(page_content="It was built\nin 1790 [3].", metadata={"title": "Mill"}),
    Document(page_content="Rivers are wet."),
]


@pytest.mark.parametrize("prompt", [GroundedPrompt(), GroundedPrompt.by_example(), GroundedPrompt.for_sampling()])
def test_numbered_passages_then_the_question(prompt: GroundedPrompt) -> None:
    text = prompt.render("When?", PASSAGES)
    # The mark in the passage is gone, or the model might copy it.
    assert text.endswith("Passages:\n[1] Mill It was built in 1790.\n[2] Rivers are wet.\n\nQuestion: When?\nAnswer:")


def test_from_memory_shows_no_passages() -> None:
    text = GroundedPrompt.from_memory().render("When?", PASSAGES)
    assert text.endswith("Question: When?\nAnswer:")
    assert "1790" not in text


def test_words_of_the_user_are_text() -> None:
    passages = [Document(page_content="{question} {passages}")]
    text = GroundedPrompt(template="{passages} | {question}").render("{passages}", passages)
    assert text == "[1] {question} {passages} | {passages}"


def test_the_examples_cite_what_they_show() -> None:
    for example in EXAMPLES:
        response = parse_response(example.answer, len(example.passages))
        assert response.supported
        assert response.rejected == 0
    text = GroundedPrompt.by_example().render("When?", PASSAGES)
    assert all(example.answer in text and example.question in text for example in EXAMPLES)


@pytest.mark.parametrize(
    "make",
    [
        lambda: GroundedPrompt(template="no field"),
        lambda: GroundedPrompt.by_example([]),
        lambda: GroundedPrompt.by_example([CitingExample("{question}", (), "Yes.")]),
    ],
)
def test_bad_prompts(make: object) -> None:
    with pytest.raises(InvalidInputError):
        make()  # type: ignore[operator]
