"""What a chain is made of, and what is refused when it is made."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import ConfigurableField, RunnableLambda

from adaptllm_chain.chain import AdaptiveRetrievalChain
from adaptllm_chain.errors import InvalidInputError, PromptMismatchError
from adaptllm_chain.prompts import PromptSpec, PromptTemplates
from adaptllm_chain.ret import Adaptive, PopularityThreshold
from adaptllm_chain.testing import CountingRetriever, Reply, ScriptedLLM
from tests.chain.scenes import PASSAGES, make, script


class Trained(ScriptedLLM):
    prompt_spec: PromptSpec | None = None


OWN = PromptTemplates(parametric="P {question}", context="C {question} {context}", closed_book="M {question}")
SAID = {"P ": Reply("<RET>", info={"ret_probability": 0.4}), "C ": "found", "M ": "by heart"}


def trained(found: Any = PASSAGES, spec: dict[str, Any] | None = None, wrap: Any = None, **settings: Any) -> Any:
    llm: Any = Trained(script=SAID, prompt_spec=PromptSpec(templates=OWN, **(spec or {})))
    return AdaptiveRetrievalChain(
        llm=wrap(llm) if wrap else llm, retriever=CountingRetriever(documents=found), **settings
    )


@pytest.mark.parametrize("wrap", [None, lambda llm: llm.bind(extra=1), lambda llm: llm.with_retry()])
def test_the_adapters_prompts_are_used(ask: Any, wrap: Any) -> None:
    chain = trained(wrap=wrap)
    assert chain.templates == OWN
    assert ask(chain, "q")["answer"] == "found"


@pytest.mark.parametrize(
    ("wrap", "stops"),
    [
        (lambda llm: llm | StrOutputParser(), ["."]),
        (lambda llm: (llm.bind(extra=1) | StrOutputParser()).with_retry(), ["."]),
        (lambda llm: RunnableLambda(lambda prompt: prompt) | llm | StrOutputParser(), None),
    ],
)
def test_an_adapter_in_a_sequence_is_found(ask: Any, wrap: Any, stops: Any) -> None:
    llm = Trained(script=SAID, prompt_spec=PromptSpec(templates=OWN, ret_threshold=0.3))
    chain = AdaptiveRetrievalChain(llm=wrap(llm), retriever=lambda query: PASSAGES, stop=["."])
    assert chain.templates == OWN
    assert chain.policy == Adaptive(threshold=0.3)
    assert ask(chain, "q")["answer"] == "found"
    assert llm.stops == [stops, stops]


def test_a_sequence_without_a_language_model(ask: Any) -> None:
    llm = RunnableLambda(lambda prompt: "Paris.") | StrOutputParser()
    assert ask(AdaptiveRetrievalChain(llm=llm, retriever=lambda query: [], stop=["."]), "q")["answer"] == "Paris"


def test_other_prompts_are_refused() -> None:
    assert trained(prompts=OWN).templates == OWN
    with pytest.raises(PromptMismatchError, match="leave prompts out"):
        trained(prompts=PromptTemplates())


def test_a_bare_model_takes_any_prompts(ask: Any) -> None:
    llm = Trained(script=SAID, prompt_spec=None)
    chain = AdaptiveRetrievalChain(llm=llm, retriever=lambda query: PASSAGES, prompts=OWN)
    assert ask(chain, "q")["answer"] == "found"


@pytest.mark.parametrize(
    ("policy", "kinds"),
    [
        ("never_retrieve", ("parametric", "context")),
        (PopularityThreshold(threshold=1), ("parametric", "context")),
        ("adaptive", ("context", "closed_book")),
        ("adaptive", ("parametric",)),
        ("always_retrieve", ("closed_book",)),
    ],
)
def test_a_kind_of_prompt_that_the_adapter_never_saw_is_refused_at_once(policy: Any, kinds: tuple[Any, ...]) -> None:
    with pytest.raises(PromptMismatchError, match="not trained on"):
        trained(spec={"trained_on": kinds}, policy=policy)


def test_a_closed_book_prompt_that_may_never_be_needed_is_refused_when_it_is(ask: Any) -> None:
    assert ask(trained(), "q")["answer"] == "found"
    with pytest.raises(PromptMismatchError, match="abstain"):
        ask(trained(found=[]), "q")
    assert ask(trained(found=[], on_empty="abstain"), "q")["answer"] == "I don't know."
    with pytest.raises(PromptMismatchError, match="threshold"):
        ask(trained(policy=Adaptive(threshold=0.9)), "q")


def test_the_adapters_threshold_is_the_default() -> None:
    assert trained(spec={"ret_threshold": 0.3}).policy == Adaptive(threshold=0.3)
    assert trained(spec={"ret_threshold": 0.3}, policy="adaptive").policy == Adaptive()
    assert trained().policy == Adaptive()


def test_the_adapters_marker_is_the_one_that_counts(ask: Any) -> None:
    said = {"P ": Reply("[SEARCH]", ("[SE", "ARCH]")), "C ": "found <RET> [sea"}
    llm = Trained(script=said, prompt_spec=PromptSpec(templates=OWN, ret_marker="[SEARCH]"))
    chain = AdaptiveRetrievalChain(llm=llm, retriever=lambda query: PASSAGES)
    assert ask(chain, "q")["answer"] == "found <RET>"


def test_wrong_settings() -> None:
    with pytest.raises(InvalidInputError, match="never_retrieve"):
        AdaptiveRetrievalChain(llm=ScriptedLLM(script={}))
    with pytest.raises(InvalidInputError, match="llm='gpt'"):
        AdaptiveRetrievalChain(llm="gpt", retriever=lambda query: [])  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="retriever=3"):
        AdaptiveRetrievalChain(llm=ScriptedLLM(script={}), retriever=3)  # type: ignore[arg-type]
    for wrong in ("\n", [""], [3]):
        with pytest.raises(InvalidInputError, match="stop="):
            make(stop=wrong)
    with pytest.raises(InvalidInputError, match=r"max_rounds=0\n.*greater than or equal to 1\n.*max_rounds=1"):
        make(max_rounds=0)
    with pytest.raises(
        InvalidInputError, match=r"on_empty='panic'\n.*'answer', 'abstain' or 'raise'\n.*on_empty='answer'"
    ):
        make(on_empty="panic")
    with pytest.raises(InvalidInputError, match="abstain_text=3"):
        make(abstain_text=3)
    with pytest.raises(InvalidInputError, match="unknown policy"):
        make(policy="sometimes")


def test_functions_are_retrievers_and_models(ask: Any) -> None:
    chain = AdaptiveRetrievalChain(llm=lambda prompt: "<RET>" if "help" in prompt else "found", retriever=tuple)
    with pytest.raises(InvalidInputError, match="retriever returned"):
        ask(chain, "q")
    chain = AdaptiveRetrievalChain(
        llm=lambda prompt: "<RET>" if "help" in prompt else "found", retriever=lambda query: PASSAGES
    )
    assert ask(chain, "q")["answer"] == "found"


def test_a_model_that_makes_no_text(ask: Any) -> None:
    with pytest.raises(InvalidInputError, match="StrOutputParser"):
        ask(AdaptiveRetrievalChain(llm=RunnableLambda(len), retriever=lambda query: []), "q")


def test_settings_can_be_configured(ask: Any) -> None:
    chain = make().configurable_fields(policy=ConfigurableField(id="policy"))
    assert ask(chain, "q", config={"configurable": {"policy": "never_retrieve"}})["answer"] == "By heart."
    assert ask(chain, "q")["answer"] == "From the passage."


def test_configurable_children_show_and_work(ask: Any) -> None:
    llm = ScriptedLLM(script=script("<RET>")).configurable_alternatives(
        ConfigurableField(id="llm"), default_key="one", other=ScriptedLLM(script=script("Paris"))
    )
    retriever = CountingRetriever(documents=PASSAGES).configurable_fields(tags=ConfigurableField(id="tags"))
    chain = AdaptiveRetrievalChain(llm=llm, retriever=retriever)
    assert {spec.id for spec in chain.config_specs} == {"llm", "tags", "policy", "threshold", "k"}
    assert ask(chain, "q")["answer"] == "From the passage."
    assert ask(chain, "q", config={"configurable": {"llm": "other"}})["answer"] == "Paris"
