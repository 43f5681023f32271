"""The head on top of a frozen encoder: padding, company and order of computing change nothing; files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import BertConfig, BertModel

from adaptllm_chain.entailment import ClassifierScorer
from adaptllm_chain.entailment.cross_head import CrossHead, Encoded, HeadShape
from adaptllm_chain.entailment.embedded import CrossEncoder
from adaptllm_chain.entailment.head_files import SHAPE_FILE, WEIGHTS_FILE, load_head, save_head
from adaptllm_chain.errors import InvalidInputError
from tests.entailment.tiny import WORDS, bert_tokenizer
from training.nli.frozen_states import FrozenStates

SHAPE = HeadShape(width=16, blocks=2, heads=2, layers=(0, 1, 2), encoder_width=32)
TOKENIZER = bert_tokenizer()

texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).map(" ".join)


def cross_encoder(seed: int = 0) -> CrossEncoder:
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=len(WORDS) + 5,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=64,
        initializer_range=0.3,
    )
    return CrossEncoder(BertModel(config).eval(), CrossHead(SHAPE)).eval()


MODEL = cross_encoder()


@settings(max_examples=25, deadline=None)
@given(pairs=st.lists(st.tuples(texts, texts), min_size=1, max_size=6))
def test_padding_and_company_change_nothing(pairs: list[tuple[str, str]]) -> None:
    together = ClassifierScorer(MODEL, TOKENIZER, batch_size=8).score(pairs)
    alone = [ClassifierScorer(MODEL, TOKENIZER).score([pair])[0] for pair in pairs]
    assert together == pytest.approx(alone, abs=1e-5)


@settings(max_examples=25, deadline=None)
@given(pairs=st.lists(st.tuples(texts, texts), min_size=1, max_size=6))
def test_frozen_states_give_the_scores_of_the_whole_model(pairs: list[tuple[str, str]]) -> None:
    states = FrozenStates(MODEL.encode, TOKENIZER, [text for pair in pairs for text in pair], progress=lambda *_: None)
    with torch.inference_mode():
        logits = MODEL.head(states.batch([one for one, _ in pairs]), states.batch([other for _, other in pairs]))
    # The states are kept in float16.
    assert logits.softmax(-1)[:, 1].tolist() == pytest.approx(ClassifierScorer(MODEL, TOKENIZER).score(pairs), abs=5e-3)
    for premise, _ in pairs:
        assert states.length(premise) == len(premise.split())


def test_both_texts_and_their_order_matter() -> None:
    scorer = ClassifierScorer(MODEL, TOKENIZER)
    one, other = "the old mill was built in salt", "the moon"
    scores = scorer.score([(one, other), (other, one), (one, one), (one, "the old mill was built by salt")])
    assert len({round(score, 4) for score in scores}) == 4


def test_states_at_special_tokens_and_padding_are_zero() -> None:
    ids = [torch.tensor(TOKENIZER(text)["input_ids"]) for text in ("the mill", "salt")]
    encoded = MODEL.encode(ids)
    assert encoded.states.shape == (2, 4, 3, 32)
    assert encoded.mask.tolist() == [[False, True, True, False], [False, True, False, False]]
    assert not encoded.states[~encoded.mask].any()
    # Layer 0 is the word's own vector, the same wherever it stands.
    words = MODEL.encoder.get_input_embeddings().weight
    assert torch.equal(encoded.states[0, 2, 0], words[ids[0][2]])


def test_a_head_learns_what_a_match_means() -> None:
    """Random vectors; entailed where every vector of the hypothesis stands in the premise: nothing else tells."""
    torch.manual_seed(1)
    shape = HeadShape(width=16, blocks=1, heads=2, layers=(0,), encoder_width=24)
    head = CrossHead(shape)
    optimizer = torch.optim.Adam(head.parameters(), 5e-3)
    right = 0.0
    for step in range(120):
        premise = torch.randn(32, 8, 1, 24)
        places = torch.randint(0, 8, (32, 3))
        hypothesis = torch.gather(premise, 1, places[:, :, None, None].expand(-1, -1, 1, 24)).clone()
        truth = torch.arange(32) % 2
        hypothesis[truth == 0, 1] = torch.randn(16, 1, 24)
        logits = head(Encoded(premise, torch.ones(32, 8).bool()), Encoded(hypothesis, torch.ones(32, 3).bool()))
        if step >= 110:
            right += (logits.argmax(-1) == truth).float().mean().item() / 10
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(logits, truth).backward()
        optimizer.step()
    assert right > 0.95


def test_a_head_on_disk_is_the_same_head_and_names_its_encoder(tmp_path: Path) -> None:
    save_head(MODEL.head, tmp_path / "new" / "folder", base="some/encoder")
    folder = tmp_path / "new" / "folder"
    assert sorted(path.name for path in folder.iterdir()) == [SHAPE_FILE, WEIGHTS_FILE]
    head = load_head(folder, base="some/encoder")
    assert head.shape == SHAPE
    assert not head.training
    pairs = [("the old mill", "a mill"), ("salt", "the moon")]
    again = ClassifierScorer(CrossEncoder(MODEL.encoder, head), TOKENIZER).score(pairs)
    assert again == pytest.approx(ClassifierScorer(MODEL, TOKENIZER).score(pairs), abs=5e-3)
    with pytest.raises(InvalidInputError, match="belongs to 'some/encoder'"):
        load_head(folder, base="another/encoder")


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / WEIGHTS_FILE).unlink(),
        lambda folder: (folder / WEIGHTS_FILE).write_bytes(b"not weights"),
        lambda folder: (folder / SHAPE_FILE).unlink(),
        lambda folder: (folder / SHAPE_FILE).write_text("[]", encoding="utf-8"),
        lambda folder: (folder / SHAPE_FILE).write_text(
            json.dumps({"base": "b", "shape": {"width": 8, "layers": [0]}}), encoding="utf-8"
        ),
    ],
)
def test_a_damaged_folder_says_what_was_expected(damage, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    save_head(MODEL.head, tmp_path, base="b")
    damage(tmp_path)
    with pytest.raises(InvalidInputError, match=r"no head could be loaded.*\n.*head\.safetensors"):
        load_head(tmp_path, base="b")
