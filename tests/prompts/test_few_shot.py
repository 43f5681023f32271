"""The prompts for a model that was never trained to say the marker."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptllm_chain import AdaptiveRetrievalChain
from adaptllm_chain.errors import InvalidInputError, PromptMismatchError
from adaptllm_chain.prompts import PromptSpec, PromptTemplates
from adaptllm_chain.prompts.few_shot import EXAMPLES
from adaptllm_chain.ret import read_spelling
from adaptllm_chain.testing import CountingRetriever, ScriptedLLM
from tests.chain.scenes import PASSAGES

texts = st.text(min_size=1).filter(lambda text: text.strip() and "{question}" not in text)
pairs = st.tuples(texts, texts.filter(lambda reply: reply != "<RET>"))
KNOWN, UNKNOWN = ("who wrote it?", "Ada"), ("who built it?", "<RET>")


@settings(deadline=None)
@given(st.lists(pairs, min_size=1, max_size=4), texts, texts)
def test_every_example_and_the_question_stand_in_the_prompt(shown: Any, asked: str, question: str) -> None:
    prompt = PromptTemplates.few_shot([*shown, (asked, "<RET>")]).render("parametric", question)
    for known, reply in shown:
        assert f"Question: {known}\nAnswer: {reply}\n" in prompt
    assert f"Question: {asked}\nAnswer: <RET>\n" in prompt
    assert prompt.endswith(f"\n\nQuestion: {question}\nAnswer:")


def test_the_examples_teach_no_habit() -> None:
    replies = [reply for _, reply in EXAMPLES]
    requests = [read_spelling(reply) == "marker" for reply in replies]
    assert sum(requests) == len(EXAMPLES) / 2
    # Neither "the one after the other" nor "the same again" explains the replies.
    changes = sum(one != other for one, other in pairwise(requests))
    assert 1 < changes < len(EXAMPLES) - 1
    # The first word of the question does not say which it is.
    first = {
        kind: {question.split()[0] for (question, _), is_ret in zip(EXAMPLES, requests, strict=True) if is_ret == kind}
        for kind in (True, False)
    }
    assert {"Who", "In", "How"} <= first[True] & first[False]


@pytest.mark.parametrize(
    ("examples", "what"),
    [
        ([], "0 of 0 examples"),
        ([KNOWN], "0 of 1 examples"),
        ([UNKNOWN, UNKNOWN], "2 of 2 examples"),
        ([KNOWN, ("who?", "<ret>")], "0 of 2 examples"),
        ([KNOWN, UNKNOWN, ("who?", " ")], "non-empty"),
        ([KNOWN, UNKNOWN, ("who is {question}?", "me")], "without {question}"),
        ([KNOWN, UNKNOWN, ("who?",)], "pairs"),
        ([KNOWN, UNKNOWN, "ab"], "pairs"),
        ("who?", "pairs"),
        ([KNOWN, UNKNOWN, None], "pairs"),
        (None, "pairs"),
        (iter([KNOWN, UNKNOWN]), "a list of pairs"),
    ],
)
def test_examples_that_cannot_be_shown_are_refused(examples: Any, what: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        PromptTemplates.few_shot(examples)
    assert what in str(caught.value)


def test_any_model_can_be_asked_with_them() -> None:
    # The first of these that stands in a prompt is what the model goes by.
    llm = ScriptedLLM(script={"reply <RET>": "<RET>", "Passage: Paris": "Paris", "Question: who?": "By heart."})
    prompts = PromptTemplates.few_shot()
    chain = AdaptiveRetrievalChain(llm=llm, retriever=CountingRetriever(documents=PASSAGES), prompts=prompts)
    result = chain.invoke("who?")
    assert (result["answer"], result["retrieved"], result["context"]) == ("Paris", True, PASSAGES)
    direct = AdaptiveRetrievalChain(llm=llm, policy="never_retrieve", prompts=prompts)
    assert direct.invoke("who?")["answer"] == "By heart."


def test_an_adapter_that_was_trained_on_other_prompts_is_refused() -> None:
    class Trained(ScriptedLLM):
        prompt_spec: PromptSpec | None = None

    def make(spec: PromptSpec) -> AdaptiveRetrievalChain:
        return AdaptiveRetrievalChain(
            llm=Trained(script={"": "x"}, prompt_spec=spec),
            retriever=CountingRetriever(documents=PASSAGES),
            prompts=PromptTemplates.few_shot(),
        )

    with pytest.raises(PromptMismatchError, match="leave prompts out"):
        make(PromptSpec())
    assert make(PromptSpec(templates=PromptTemplates.few_shot())).templates == PromptTemplates.few_shot()
