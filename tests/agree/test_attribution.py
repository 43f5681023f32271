"""Citing afterwards: each sentence is searched for, judged, and cites the best passage."""

from __future__ import annotations

from typing import Any

import pytest

from adaptllm_chain.agree import PostHocAttribution
from adaptllm_chain.entailment.scorer import EntailmentScorer
from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.testing import ScriptedLLM
from tests.agree.scenes import ScriptedScorer, answer, cites, passages, retriever, word_for_word

FOUND = {
    "It is old.": ["Rivers.", "It is old and grey."],
    "It hums.": ["It hums at night.", "It is old and grey."],
    "It is red.": ["Rivers."],
}


def make(said: str, scorer: EntailmentScorer | None = None, found: Any = FOUND, **kwargs: Any) -> Any:
    scorer = ScriptedScorer(word_for_word) if scorer is None else scorer
    return PostHocAttribution(
        llm=ScriptedLLM(script=lambda prompt: said), retriever=retriever(found), scorer=scorer, **kwargs
    )


def test_the_result() -> None:
    assert answer(make(" It hums. It is red. It is old.")) == {
        "input": "q",
        "context": passages("It hums at night.", "It is old and grey."),
        "answer": "It hums [1]. It is red. It is old [2].",
        "sentences": [cites("It hums.", 1), cites("It is red."), cites("It is old.", 2)],
        "unsupported": ["It is red."],
        "rejected_citations": 0,
    }


def test_the_model_answers_from_memory() -> None:
    chain = make("It is old.")
    chain.invoke("Is it?")
    assert len(chain.llm.calls) == 1
    assert "Question: Is it?" in chain.llm.calls[0][0]
    assert "grey" not in chain.llm.calls[0][0]


@pytest.mark.parametrize(
    ("score", "above", "citations", "unsupported"),
    [(0.71, 0.7, [1], []), (0.7, 0.7, [], []), (0.7, 0.6, [1], []), (0.5, 0.7, [], ["It is old."])],
)
def test_the_thresholds(score: float, above: float, citations: list[int], unsupported: list[str]) -> None:
    result = answer(make("It is old.", ScriptedScorer(lambda premise, hypothesis: score), link_above=above))
    assert result["sentences"][0]["citations"] == citations
    assert result["unsupported"] == unsupported


def test_a_batch_is_one_call_one_search_and_one_judgement() -> None:
    scorer = ScriptedScorer(word_for_word)
    chain = make("It hums. It is old.", scorer)
    chain.batch(["q", "r"])
    assert [len(call) for call in chain.llm.calls] == [2]
    assert chain.retriever.batches == [4]
    # Two sentences with two passages each, the same for both questions.
    assert [len(call) for call in scorer.calls] == [4]


def test_marks_of_the_model_do_not_count() -> None:
    result = answer(make("It is old [7].\n\nUnsupported statements:\n- Nothing."))
    assert (result["answer"], result["rejected_citations"]) == ("It is old [1].", 0)


@pytest.mark.parametrize("said", ["", " ... "])
def test_nothing_said(said: str) -> None:
    scorer = ScriptedScorer(word_for_word)
    chain = make(said, scorer)
    assert answer(chain)["sentences"] == []
    assert (scorer.calls, chain.retriever.queries) == ([], [])


def test_an_answer_that_could_not_be_a_target_is_still_an_answer() -> None:
    result = answer(make("It hums. [1] Unsupported statements: none."))
    assert result["answer"] == "It hums [1]. Unsupported statements: none."


def test_nothing_found() -> None:
    scorer = ScriptedScorer(word_for_word)
    result = answer(make("It is old.", scorer, found={}))
    assert (result["answer"], result["unsupported"], scorer.calls) == ("It is old.", ["It is old."], [])


def test_a_sentence_that_cannot_be_judged_fails_its_question_alone() -> None:
    def judge(premise: str, hypothesis: str) -> float:
        if "hums" in hypothesis:
            raise InvalidInputError("too long")
        return 1.0

    chain = PostHocAttribution(
        llm=ScriptedLLM(script=lambda prompt: "It hums." if "bad" in prompt else "It is old."),
        retriever=retriever(FOUND),
        scorer=ScriptedScorer(judge),
    )
    bad, good = chain.batch(["bad", "good"], return_exceptions=True)
    assert isinstance(bad, InvalidInputError)
    assert good["sentences"] == [cites("It is old.", 1)]


def test_wrong_scorers_and_thresholds() -> None:
    class Short(EntailmentScorer):
        def score(self, pairs: Any) -> list[float]:
            return []

    with pytest.raises(InvalidInputError, match="returned 0 scores for 2 pairs"):
        make("It is old.", Short()).invoke("q")
    with pytest.raises(InvalidInputError, match="PostHocAttribution: scorer="):
        make("It is old.", 3)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=r"PostHocAttribution: link_above=0\.4"):
        make("It is old.", link_above=0.4)
