"""Transformers' decision pipeline as a decision model: a real model, and the probabilities worked out by hand."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import torch
from langchain_core.decisions import Box, Choice, Noul, NoulCriteria, Score
from langchain_core.messages import AIMessage, HumanMessage
from transformers import pipeline

from adaptllm_chain.chain import AdaptiveRetrievalChain
from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.llms.decision_pipeline import TransformersDecisionModel
from adaptllm_chain.ret import DecisionModelPolicy
from adaptllm_chain.testing import CountingRetriever, ScriptedLLM
from tests.chain.decision_scenes import WAYS_TO_DECIDE
from tests.chain.scenes import script
from tests.tiny_models import byte_level_tokenizer, tiny_llama

NOUL = Noul(instructions="Is a search needed?")
QUESTIONS = ["who?", "Which river runs past the mill?", "Paris"]


def tiny_pipeline(*labels: str) -> Any:
    tokenizer = byte_level_tokenizer()
    tokenizer.add_tokens(list(labels))
    return pipeline("decision", model=tiny_llama(tokenizer), tokenizer=tokenizer)


@pytest.fixture(scope="module")
def tiny() -> TransformersDecisionModel:
    return TransformersDecisionModel(pipeline=tiny_pipeline("Yes", "No"))


def by_hand(judge: TransformersDecisionModel, shown: str, labels: list[str]) -> list[float]:
    """The shares of the labels among one another, as the first token after the user's message."""
    model, tokenizer = judge.pipeline.model, judge.pipeline.tokenizer
    ids = tokenizer.apply_chat_template(
        [{"role": "user", "content": shown}], add_generation_prompt=True, return_tensors="pt", return_dict=True
    )["input_ids"]
    with torch.no_grad():
        logits = model(ids.to(model.device)).logits[0, -1].float()
    return logits[tokenizer.convert_tokens_to_ids(labels)].softmax(-1).tolist()


def asked(state: Any, **questions: Any) -> dict[str, Any]:
    return {"state": state, "questions": questions or {"needed": NOUL}}


@pytest.mark.parametrize("way", WAYS_TO_DECIDE)
def test_a_noul_in_every_way(tiny: TransformersDecisionModel, way: str) -> None:
    expected, _ = by_hand(tiny, "who?\n\nIs a search needed?\nAnswer Yes or No only.", ["Yes", "No"])
    assert WAYS_TO_DECIDE[way](tiny, asked("who?")).nouls["needed"].noul == pytest.approx(expected, abs=1e-5)


def test_criteria_a_choice_and_a_score(tiny: TransformersDecisionModel) -> None:
    response = tiny.invoke(
        asked(
            "who?",
            needed=Noul(instructions="Search?", criteria=NoulCriteria(true="rare", false="common")),
            kind=Choice(instructions="Which?", criteria={"person": "someone", "place": None}),
            rarity=Score(instructions="How rare?", criteria=["common", "rare", "unknown"]),
        )
    )
    assert list(response.answers) == ["needed", "kind", "rarity"]
    yes, _ = by_hand(tiny, "who?\n\nSearch?\nYes: rare\nNo: common\nAnswer Yes or No only.", ["Yes", "No"])
    assert response.nouls["needed"].noul == pytest.approx(yes, abs=1e-5)
    levels = by_hand(
        tiny,
        "who?\n\nHow rare?\nA. common\nB. rare\nC. unknown\n"
        "Answer with the letter of the level that fits best (A to C) only.",
        ["A", "B", "C"],
    )
    assert response.scores["rarity"].score == pytest.approx(levels[1] + 2 * levels[2], abs=1e-5)
    assert response.scores["rarity"].legend == {0: "common", 1: "rare", 2: "unknown"}
    assert set(response.choices["kind"].probabilities) == {"person", "place"}


def test_batches_are_those_of_one(tiny: TransformersDecisionModel) -> None:
    requests = [asked(question) for question in QUESTIONS]
    expected = [tiny.invoke(request) for request in requests]
    assert tiny.batch(requests) == asyncio.run(tiny.abatch(requests)) == expected
    assert len({response.nouls["needed"].noul for response in expected}) == 3


def test_messages_and_json(tiny: TransformersDecisionModel) -> None:
    plain = tiny.invoke(asked("who?"))
    assert tiny.invoke(asked(HumanMessage("who?"))) == plain
    assert tiny.invoke(asked(HumanMessage([{"type": "text", "text": "who?"}]))) == plain
    history = [HumanMessage("who?"), AIMessage("Ada")]
    spelled = [{"role": "user", "content": "who?"}, {"role": "assistant", "content": "Ada"}]
    assert tiny.invoke(asked({"messages": history, "n": 1})) == tiny.invoke(asked({"messages": spelled, "n": 1}))
    assert tiny.invoke(asked(history)) != plain


IMAGE = {"type": "image", "base64": "AAAA", "mime_type": "image/png"}


@pytest.mark.parametrize("state", [HumanMessage([IMAGE]), [HumanMessage([IMAGE])], {"photo": IMAGE}, [[IMAGE]]])
def test_media_are_refused_not_printed(tiny: TransformersDecisionModel, state: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"a block of the type 'image'(?s:.*)assets="):
        tiny.invoke(asked(state))


def test_what_the_pipeline_cannot_answer(tiny: TransformersDecisionModel) -> None:
    with pytest.raises(InvalidInputError, match="'cat' is a Box"):
        tiny.invoke(asked("who?", cat=Box(instructions="Where?")))
    with pytest.raises(InvalidInputError, match=r"not distinct single tokens(?s:.*)labels="):
        TransformersDecisionModel(pipeline=tiny_pipeline()).invoke(asked("who?"))


def test_what_is_no_decision_pipeline() -> None:
    with pytest.raises(InvalidInputError, match=r"is no decision pipeline(?s:.*)from_pretrained"):
        TransformersDecisionModel(pipeline=lambda request: {})


def test_its_name(tiny: TransformersDecisionModel) -> None:
    assert tiny.model == "LlamaForCausalLM"
    assert TransformersDecisionModel(pipeline=tiny.pipeline, model="mine").invoke(asked("who?")).model == "mine"


def chain_of(judge: TransformersDecisionModel, threshold: float) -> AdaptiveRetrievalChain:
    policy = DecisionModelPolicy(model=judge, instructions="Is a search needed?", threshold=threshold)
    return AdaptiveRetrievalChain(
        llm=ScriptedLLM(script=script("?")), retriever=CountingRetriever(documents=["p"]), policy=policy
    )


def test_as_the_policy_of_a_chain(tiny: TransformersDecisionModel) -> None:
    probabilities = [tiny.invoke(asked(question)).nouls["needed"].noul for question in QUESTIONS]
    chain = chain_of(tiny, threshold=sorted(probabilities)[1])
    results = chain.batch(list(QUESTIONS))
    assert [result["ret_probability"] for result in results] == probabilities
    assert sorted(result["retrieved"] for result in results) == [False, True, True]
    assert [chain.invoke(question) for question in QUESTIONS] == results


@pytest.mark.embedded
def test_the_embedded_model() -> None:
    judge = TransformersDecisionModel.from_pretrained("embedded")
    expected, _ = by_hand(judge, f"{QUESTIONS[1]}\n\nIs a search needed?\nAnswer Yes or No only.", ["Yes", "No"])
    result = chain_of(judge, threshold=expected / 2).invoke(QUESTIONS[1])
    assert result["ret_probability"] == pytest.approx(expected, abs=1e-4)
    assert (result["retrieved"], judge.model) == (True, "embedded")
