"""Tiny real models of entailment with random weights: a BERT with labels, and a T5 that says 1 or 0."""

from __future__ import annotations

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertTokenizerFast,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)

WORDS = ["the", "a", "mill", "was", "built", "in", "by", "river", "stone", "lamp", "salt", "moon", "not", "old", "."]
MNLI = {0: "CONTRADICTION", 1: "ENTAILMENT", 2: "NEUTRAL"}


def bert_tokenizer(max_length: int = 64) -> BertTokenizerFast:
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    return BertTokenizerFast(
        vocab={word: place for place, word in enumerate([*specials, *WORDS])}, model_max_length=max_length
    )


def bert(labels: dict[int, str] = MNLI, *, positions: int = 64, seed: int = 0) -> BertForSequenceClassification:
    """Large initial weights make the scores differ from pair to pair."""
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=len(WORDS) + 5,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=positions,
        id2label=labels,
        label2id={name: number for number, name in labels.items()},
        initializer_range=0.3,
    )
    return BertForSequenceClassification(config).eval()


def t5_tokenizer() -> PreTrainedTokenizerFast:
    """A SentencePiece-like vocabulary in which, as in T5's own, "1" is one piece and "0" two."""
    pieces = ["<pad>", "</s>", "<unk>", "▁", "▁1", "0", ":", "▁premise", "▁hypothesis", *(f"▁{word}" for word in WORDS)]
    tokenizer = Tokenizer(models.Unigram([(piece, -1.0) for piece in pieces], unk_id=2))
    tokenizer.normalizer = normalizers.Replace("  ", " ")
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>")


def t5(*, seed: int = 0) -> T5ForConditionalGeneration:
    torch.manual_seed(seed)
    config = T5Config(
        vocab_size=len(t5_tokenizer()),
        d_model=32,
        d_kv=8,
        d_ff=64,
        num_layers=2,
        num_heads=4,
        decoder_start_token_id=0,
        pad_token_id=0,
        eos_token_id=1,
        initializer_factor=3.0,
    )
    return T5ForConditionalGeneration(config).eval()
