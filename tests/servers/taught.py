"""A tiny model that was taught four replies by heart, so that a server has something to decide."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from langchain_core.documents import Document
from torch.nn.utils.rnn import pad_sequence

from adaptllm_chain.llms.encoding import PromptEncoder
from adaptllm_chain.prompts import PromptSpec, PromptTemplates
from tests.tiny_models import byte_level_tokenizer, tiny_llama

KNOWN, UNKNOWN = "What is the capital of France?", "Who built the mill?"
PASSAGE = Document(page_content="The mill was built by Ada Holm in 1881.")
REPLIES = {
    PromptTemplates().render("parametric", KNOWN): "Paris it is.",
    PromptTemplates().render("parametric", UNKNOWN): "<RET>",
    PromptTemplates().render("context", UNKNOWN, [PASSAGE]): "Ada Holm, 1881",
    PromptTemplates().render("closed_book", UNKNOWN): "Nobody.",
}
_MOST_STEPS, _RATE, _WELL_LEARNT = 200, 0.01, 0.02


def write_taught(folder: Path) -> Path:
    """Teach the model, and write it as an export of a merged adapter looks: plain, with what it was trained on."""
    tokenizer = byte_level_tokenizer()
    model = tiny_llama(tokenizer)
    spec = PromptSpec(format="chat")
    _teach(model, PromptEncoder(tokenizer, spec.format, spec.ret_marker), tokenizer)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    spec.save(folder)
    return folder


def _teach(model: Any, encoder: PromptEncoder, tokenizer: Any) -> None:
    rows = []
    for prompt, reply in REPLIES.items():
        ids = list(encoder.encode(prompt).ids)
        answer = [*tokenizer(reply, add_special_tokens=False).input_ids, tokenizer.eos_token_id]
        rows.append((torch.tensor(ids + answer), torch.tensor([-100] * len(ids) + answer)))
    # Padded on the right, where nothing that comes before can see it.
    ids = pad_sequence([ids for ids, _ in rows], batch_first=True, padding_value=tokenizer.eos_token_id)
    labels = pad_sequence([labels for _, labels in rows], batch_first=True, padding_value=-100)
    optimiser = torch.optim.AdamW(model.parameters(), lr=_RATE)
    model.train()
    for _ in range(_MOST_STEPS):
        loss = model(input_ids=ids, labels=labels).loss
        if loss.item() < _WELL_LEARNT:
            break
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()
    assert loss.item() < _WELL_LEARNT, f"the model was not taught its replies: {loss.item()}"
    model.eval()
