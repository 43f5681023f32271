"""The two local scorers: order, batches, windows, labels, errors; compared with plain forward passes."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from adaptllm_chain.entailment import ClassifierScorer, TrueNliScorer
from adaptllm_chain.entailment.windowed import WindowedScorer
from adaptllm_chain.errors import InvalidInputError
from tests.entailment.tiny import MNLI, WORDS, bert, bert_tokenizer, t5, t5_tokenizer

BERT, BERT_TOKENIZER = bert(), bert_tokenizer()
T5, T5_TOKENIZER = t5(), t5_tokenizer()

sentences = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)
passages = st.lists(st.sampled_from(WORDS), min_size=1, max_size=90).map(" ".join)


def make(kind: str, **arguments: Any) -> WindowedScorer:
    if kind == "classifier":
        return ClassifierScorer(BERT, BERT_TOKENIZER, **{"max_tokens": 24} | arguments)
    return TrueNliScorer(T5, T5_TOKENIZER, **{"max_tokens": 24} | arguments)


both = pytest.mark.parametrize("kind", ["classifier", "true_nli"])


@both
@settings(max_examples=15, deadline=None)
@given(pairs=st.lists(st.tuples(passages, sentences), max_size=7), batch_size=st.integers(1, 9))
def test_neither_the_batch_size_nor_the_company_changes_a_score(
    kind: str, pairs: list[tuple[str, str]], batch_size: int
) -> None:
    together = make(kind, batch_size=batch_size).score(pairs)
    alone = [make(kind, batch_size=1).score([pair])[0] for pair in pairs]
    assert together == pytest.approx(alone, abs=1e-5)
    assert all(0 <= score <= 1 for score in together)


@both
@settings(max_examples=40, deadline=None)
@given(premise=passages, hypothesis=sentences, max_tokens=st.integers(24, 60))
def test_windows_fit_overlap_and_hold_every_token_of_the_premise(
    kind: str, premise: str, hypothesis: str, max_tokens: int
) -> None:
    scorer = make(kind, max_tokens=max_tokens)
    room = scorer._room(hypothesis)
    overlap = room // 3
    windows = [window["input_ids"] for window in scorer._windows(premise, hypothesis, room=room, overlap=overlap)]
    assert all(len(window) <= max_tokens for window in windows)
    said = scorer.tokenizer(hypothesis, add_special_tokens=False)["input_ids"]
    first = 1 if kind == "classifier" else len(scorer._premise)
    behind = scorer._framing_tokens - first + len(said)
    parts = [window[first : len(window) - behind] for window in windows]
    # Each window begins where the one before it has `overlap` tokens left; put end to end they are the premise.
    joined = [*parts[0], *(token for part in parts[1:] for token in part[overlap:])]
    assert joined == scorer.tokenizer(premise, add_special_tokens=False)["input_ids"]
    assert all(part[:overlap] == before[-overlap:] for before, part in pairwise(parts) if overlap)
    assert all(str(said)[1:-1] in str(window) for window in windows)


@both
@settings(max_examples=10, deadline=None)
@given(premise=passages, hypothesis=sentences)
def test_a_score_is_the_best_of_its_windows(kind: str, premise: str, hypothesis: str) -> None:
    scorer = make(kind)
    room = scorer._room(hypothesis)
    windows = list(scorer._windows(premise, hypothesis, room=room, overlap=room // 3))
    with torch.inference_mode():
        each = [
            float(scorer._probabilities({k: torch.tensor([v]) for k, v in window.items()})[0]) for window in windows
        ]
    assert scorer.score([(premise, hypothesis)]) == pytest.approx([max(each)], abs=1e-5)


@both
async def test_a_thread_gives_the_same(kind: str) -> None:
    pairs = [("the mill was old .", "a mill"), ("salt " * 60, "the moon")]
    scorer = make(kind)
    assert await scorer.ascore(pairs) == scorer.score(pairs)
    assert scorer.score([]) == await scorer.ascore([]) == []


def test_a_classifier_gives_the_softmax_of_its_entailment_label() -> None:
    batch = BERT_TOKENIZER("the mill was old .", "a mill", return_tensors="pt")
    with torch.inference_mode():
        expected = BERT(**batch).logits.softmax(-1)[0, 1].item()
    assert ClassifierScorer(BERT, BERT_TOKENIZER).score([("the mill was old .", "a mill")]) == pytest.approx([expected])


@pytest.mark.parametrize(
    ("labels", "index"),
    [
        (MNLI, 1),
        ({0: "not_entailment", 1: "entailment"}, 1),
        ({0: "Entailment", 1: "Neutral", 2: "Contradiction"}, 0),
        ({0: "entailed", 1: "refuted"}, 0),
        ({0: "whatever"}, 0),
    ],
)
def test_the_label_is_found_by_its_name(labels: dict[int, str], index: int) -> None:
    assert ClassifierScorer(bert(labels), BERT_TOKENIZER).entailment_index == index


def test_a_single_output_and_labels_that_do_not_exclude_one_another_go_through_a_sigmoid() -> None:
    pair = ("the river", "the lamp")
    for labels, kind, index in ((({0: "score"}), None, 0), (MNLI, "multi_label_classification", 1)):
        model = bert(labels)
        model.config.problem_type = kind
        with torch.inference_mode():
            logit = model(**BERT_TOKENIZER(*pair, return_tensors="pt")).logits[0, index]
        assert ClassifierScorer(model, BERT_TOKENIZER).score([pair]) == pytest.approx([logit.sigmoid().item()])


def test_labels_without_names_are_refused_until_one_is_named() -> None:
    model = bert({0: "LABEL_0", 1: "LABEL_1"})
    with pytest.raises(InvalidInputError, match=r"LABEL_0.*LABEL_1.*\n.*\n.*entailment_label=0"):
        ClassifierScorer(model, BERT_TOKENIZER)
    assert ClassifierScorer(model, BERT_TOKENIZER, entailment_label=1).entailment_index == 1
    assert ClassifierScorer(model, BERT_TOKENIZER, entailment_label="label_0").entailment_index == 0
    for wrong in (2, "entailment"):
        with pytest.raises(InvalidInputError, match="LABEL_1"):
            ClassifierScorer(model, BERT_TOKENIZER, entailment_label=wrong)


def test_t5_gives_the_softmax_of_the_answers_where_they_first_differ() -> None:
    scorer = TrueNliScorer(T5, T5_TOKENIZER)
    # "1" is one piece, "0" is "▁" and "0": they differ at once, as in T5's own vocabulary.
    one, space = T5_TOKENIZER.convert_tokens_to_ids(["▁1", "▁"])
    batch = T5_TOKENIZER("premise: the mill was old . hypothesis: a mill", return_tensors="pt")
    with torch.inference_mode():
        logits = T5(
            input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], decoder_input_ids=torch.tensor([[0]])
        ).logits[0, 0]
    expected = logits[[one, space]].softmax(-1)[0].item()
    assert scorer.score([("the mill was old .", "a mill")]) == pytest.approx([expected], abs=1e-6)


def test_t5_goes_behind_a_piece_that_both_answers_begin_with() -> None:
    scorer = TrueNliScorer(T5, _SharesASpace())
    space, one, nought = T5_TOKENIZER.convert_tokens_to_ids(["▁", ":", "0"])
    assert scorer._prompt == [0, space]
    assert scorer._answers == [one, nought]


class _SharesASpace:
    """T5's tokenizer, but for its spelling of "1": "▁" and ":" in place of "▁1"."""

    def __getattr__(self, name: str) -> Any:
        return getattr(T5_TOKENIZER, name)

    def __call__(self, text: str, **arguments: Any) -> Any:
        if text == "1":
            return {"input_ids": T5_TOKENIZER.convert_tokens_to_ids(["▁", ":"])}
        return T5_TOKENIZER(text, **arguments)


def test_answers_that_are_spelled_alike_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="cannot be told apart"):
        TrueNliScorer(T5, BERT_TOKENIZER)  # it knows no figures: both are [UNK]


@both
@pytest.mark.parametrize(
    ("pair", "says"),
    [
        (("the mill", "  "), "blank hypothesis"),
        (("\n", "the mill"), "blank premise"),
        (("the mill",), "pair 1"),
        ("ab", "pair 1"),
        (("the mill", 7), "pair 1"),
    ],
)
def test_what_is_no_pair_of_texts_is_refused(kind: str, pair: Any, says: str) -> None:
    with pytest.raises(InvalidInputError, match=says):
        make(kind).score([("the mill", "the mill"), pair])


def test_a_hypothesis_of_which_nothing_is_left_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="finds nothing"):
        make("classifier").score([("the mill", "\u200b")])


@both
def test_a_hypothesis_is_never_cut(kind: str) -> None:
    with pytest.raises(InvalidInputError, match=r"13 tokens, more than half of the 24.*\n.*\n.*split it"):
        make(kind).score([("the mill", " ".join(["salt"] * 13))])
    assert len(make(kind).score([("salt " * 200, "salt " * 8)])) == 1


@both
@pytest.mark.parametrize("arguments", [{"batch_size": 0}, {"max_tokens": 7}])
def test_settings_are_checked(kind: str, arguments: dict[str, int]) -> None:
    with pytest.raises(InvalidInputError, match=next(iter(arguments))):
        make(kind, **arguments)


def test_no_more_tokens_than_there_are_positions() -> None:
    assert ClassifierScorer(BERT, bert_tokenizer(max_length=48)).max_tokens == 48
    assert ClassifierScorer(BERT, bert_tokenizer(max_length=100)).max_tokens == 64
    with pytest.raises(InvalidInputError, match="64 tokens at most"):
        ClassifierScorer(BERT, bert_tokenizer(max_length=100), max_tokens=65)


def test_a_slow_tokenizer_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BertTokenizerFastStandIn, "is_fast", False)
    with pytest.raises(InvalidInputError, match="slow tokenizer"):
        ClassifierScorer(BERT, BertTokenizerFastStandIn())


class BertTokenizerFastStandIn:
    is_fast = True
    model_max_length = 64


def test_models_are_loaded_from_folders_and_quietly(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for model, tokenizer, name in ((BERT, BERT_TOKENIZER, "bert"), (T5, T5_TOKENIZER, "t5")):
        model.save_pretrained(tmp_path / name)
        tokenizer.save_pretrained(tmp_path / name)
    capfd.readouterr()
    pairs = [("the mill was old .", "a mill")]
    loaded = ClassifierScorer.from_pretrained(tmp_path / "bert", device="cpu", batch_size=2)
    assert loaded.score(pairs) == pytest.approx(ClassifierScorer(BERT, BERT_TOKENIZER).score(pairs), abs=1e-6)
    other = TrueNliScorer.from_pretrained(tmp_path / "t5", device="cpu", dtype="float32")
    assert other.score(pairs) == pytest.approx(TrueNliScorer(T5, T5_TOKENIZER).score(pairs), abs=1e-6)
    assert capfd.readouterr() == ("", "")


def test_what_cannot_be_loaded_says_what_to_type(tmp_path: Path) -> None:
    BERT.save_pretrained(tmp_path / "bert")
    BERT_TOKENIZER.save_pretrained(tmp_path / "bert")
    with pytest.raises(InvalidInputError, match="hf download"):
        ClassifierScorer.from_pretrained(tmp_path / "nowhere")
    with pytest.raises(InvalidInputError, match="no-such-device"):
        ClassifierScorer.from_pretrained(tmp_path / "bert", device="no-such-device")
    with pytest.raises(InvalidInputError, match="int8"):
        ClassifierScorer.from_pretrained(tmp_path / "bert", dtype="int8")
