"""Tiny real models, built in memory: a Llama of two layers, and tokenizers of both families."""

from __future__ import annotations

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

CORPUS = [
    "Answer the question Q. If you need help answer <RET> to get the context. Q: Which river runs past the mill?",
    "Answer the question Q given the context C. Q: Who built the mill?, C: The mill was built by Ada Holm in 1881.",
    "Below is an instruction that describes a task. Write a response that appropriately completes the request.",
    "### Instruction: ### Response: Paris London Oslo 1881 the of and a to in",
]
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def byte_level_tokenizer(*, pad: bool = False) -> PreTrainedTokenizerFast:
    """A byte-level BPE with a chat template, like SmolLM2's; its end token pads unless asked otherwise."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=420,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>" if pad else None,
        extra_special_tokens=["<|im_start|>"],
    )
    fast.chat_template = CHAT_TEMPLATE
    return fast


def sentencepiece_tokenizer() -> PreTrainedTokenizerFast:
    """A SentencePiece-like BPE with byte fallback and a begin token, like Llama-2's; no pad token."""
    specials = ["<unk>", "<s>", "</s>"]
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    alphabet = [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(
        vocab_size=700,
        special_tokens=specials + alphabet,
        initial_alphabet=sorted({char for text in CORPUS for char in text} | {"▁"}),
        show_progress=False,
    )
    # Trained word by word, as SentencePiece does; merges across words are not learned.
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="never")
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.pre_tokenizer = None
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in specials])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>", pad_token=None
    )


def tiny_llama(tokenizer: PreTrainedTokenizerFast, *, seed: int = 0) -> LlamaForCausalLM:
    """A Llama with random weights for a tokenizer; large initial weights make its outputs differ by prompt."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        initializer_range=0.3,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        tie_word_embeddings=True,
    )
    return LlamaForCausalLM(config).eval()
