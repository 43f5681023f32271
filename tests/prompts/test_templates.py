"""Filling the prompts, and writing passages down."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document

from adaptllm_chain.prompts import PromptTemplates, join_passages

TWICE = PromptTemplates(
    parametric="{question} {context} Again: {question}",
    context="{context} | {question} | {context} | {question}",
    closed_book="{question}{question}",
)
texts = st.text() | st.sampled_from(["{question}", "{context}", "a {context} b {question}", "\\\\1 \\\\g<0>"])


def passage(text: str, title: str | None = None) -> Document:
    return Document(page_content=text, metadata={} if title is None else {"title": title})


@given(texts, texts)
def test_every_field_is_filled_and_nothing_that_was_filled_in(question: str, text: str) -> None:
    passages = [passage(text)]
    context = join_passages(passages)
    assert TWICE.render("context", question, passages) == f"{context} | {question} | {context} | {question}"
    assert TWICE.render("parametric", question) == f"{question} {{context}} Again: {question}"
    assert TWICE.render("closed_book", question) == question * 2


@pytest.mark.parametrize(
    ("title", "text", "line"),
    [
        ("US", "USSR was a state.", "US USSR was a state."),
        ("US", "US_x", "US US_x"),
        ("US", "US is a state.", "US is a state."),
        ("US", "US-based", "US-based"),
        ("US", "US", "US"),
        ("St.", "St.Gallen", "St.Gallen"),
        ("Mercury (planet)", "Mercury (planet) is small.", "Mercury (planet) is small."),
        ("New  York", "New York is big.", "New York is big."),
        ("Paris", "It is  big.\n", "Paris It is big."),
        ("", "Text", "Text"),
        (None, "Text", "Text"),
    ],
)
def test_a_title_is_written_once(title: str | None, text: str, line: str) -> None:
    assert join_passages([passage(text, title), passage("Last")]) == f"{line}\nLast"
