"""A tiny base that is made in a minute: it can read passages of made-up worlds and knows no fact of this one."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from langchain_core.documents import Document

from adaptllm_chain.prompts import PromptTemplates
from adaptllm_chain.records import PromptKind
from training.made_up_world.teaching import Text, teach
from training.made_up_world.wordings import KINDS
from training.made_up_world.world import Fact, make_names, make_world

_OTHER_WORLDS = 1_000_000  # seeds from here on: no world of an experiment
_GENERAL, _PASSING = 80, 600  # names of the world that stays, and of those that pass
_END, _PAD = "<|end|>", "<|pad|>"


class Elsewhere:
    """What a base hears of other worlds, as any language model has: how to read, and things that it knows.

    Args:
        seed: Of the other worlds.
        taken: Names of the experiment's world, which do not occur in the others.
    """

    def __init__(self, seed: int, taken: Sequence[str]) -> None:
        self._first = _OTHER_WORLDS * (seed + 1)
        rng = random.Random(self._first)
        names = make_names(_GENERAL + _PASSING, rng, taken=taken)
        self._general = make_world(self._first, _GENERAL // len(KINDS), names[:_GENERAL])
        self._passing = names[_GENERAL:]
        self.names = names

    def texts(self, epoch: int, *, read: int, general: int) -> list[Text]:
        """Write the texts of an epoch.

        Args:
            epoch: Counted from 0; what is read comes from another world in each.
            read: Passages with a question.
            general: Questions on a world that is the same in each epoch.

        Returns:
            The texts.
        """
        rng = random.Random(self._first + epoch)
        fresh = make_world(self._first + 1 + epoch, 40, self._passing)
        rng.shuffle(fresh)
        heard = rng.choices(self._general, k=general)
        return [*(_reading_text(fact, rng) for fact in fresh[:read]), *(_memory_text(fact, rng) for fact in heard)]


def make_tiny_base(elsewhere: Elsewhere, names: Sequence[str], seed: int, epochs: int) -> tuple[Any, Any]:
    """Make a small Llama and bring it up on other worlds.

    Args:
        elsewhere: The other worlds.
        names: Those of the experiment's world. Each becomes a token of its own, so that a name which was never
            heard is easy to tell from one that was; a large model does that with layers that this one lacks.
        seed: Of its weights.
        epochs: Passes.

    Returns:
        The model and its tokenizer.
    """
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    texts = partial(elsewhere.texts, read=240, general=160)
    tokenizer = _tokenizer((" ".join(text) for epoch in (0, 1) for text in texts(epoch)), [*elsewhere.names, *names])
    torch.manual_seed(seed)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=128,
            intermediate_size=384,
            num_hidden_layers=4,
            num_attention_heads=8,
            num_key_value_heads=8,
            max_position_embeddings=512,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
            tie_word_embeddings=True,
        )
    )
    teach(
        model, tokenizer, texts, epochs=epochs, learning_rate=3e-3, batch_size=32, freeze_embeddings=False,
    )  # fmt: skip
    return model, tokenizer


def _question(fact: Fact, rng: random.Random) -> str:
    wordings = (*fact.relation.taught, fact.relation.labelling, fact.relation.test)
    return rng.choice(wordings).format(x=fact.entity.name)


def _reading_text(fact: Fact, rng: random.Random) -> Text:
    return PromptTemplates().render("context", _question(fact, rng), [Document(fact.passage)]), fact.value


def _memory_text(fact: Fact, rng: random.Random) -> Text:
    # In either of the prompts that give no passage: an instructed model answers both.
    kind: PromptKind = rng.choice(("parametric", "closed_book"))
    return PromptTemplates().render(kind, _question(fact, rng)), fact.value


def _tokenizer(texts: Iterable[str], names: Sequence[str]) -> Any:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=900,
        special_tokens=[_END, _PAD],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    prompts = [PromptTemplates().render("parametric", "what"), PromptTemplates().render("closed_book", "what")]
    tokenizer.train_from_iterator([*texts, *prompts * 50], trainer)
    tokenizer.add_tokens([AddedToken(name, single_word=True, normalized=False) for name in names])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=_END, pad_token=_PAD)
