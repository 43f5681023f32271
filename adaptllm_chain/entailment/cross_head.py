"""A small cross-encoder on top of a frozen encoder: what of a hypothesis is found in a premise, and what is not.

Both texts pass the encoder by themselves. The head then lets the hypothesis's tokens look at those of the premise,
with the similarities of the frozen vectors as a bias: which token matches which need not be learned, only what a
match or the lack of one means. So a few thousand questions are enough to train it, and its weights are small.
"""

from __future__ import annotations

from dataclasses import dataclass

from adaptllm_chain.entailment.loading import torch

nn = torch.nn
functional = torch.nn.functional


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadShape:
    """What a head looks like.

    Attributes:
        width: Numbers a token inside the head.
        blocks: How often the hypothesis looks at itself and at the premise.
        heads: Attention heads a block.
        layers: Which hidden states of the encoder are used; 0 is its word vectors without positions.
        encoder_width: Numbers a token in the encoder.
    """

    width: int = 128
    blocks: int = 2
    heads: int = 4
    layers: tuple[int, ...] = (0, 3, 6)
    encoder_width: int = 384


@dataclass(frozen=True, slots=True)
class Encoded:
    """A batch of texts as the encoder sees them.

    Attributes:
        states: Hidden states, shape ``[batch, tokens, layers, encoder_width]``.
        mask: True for a token of the text, False for padding and special tokens; shape ``[batch, tokens]``.
    """

    states: torch.Tensor
    mask: torch.Tensor


class CrossHead(nn.Module):
    """Turns two encoded texts into logits for "not entailed" and "entailed".

    Args:
        shape: What it looks like.
        dropout: While training.
    """

    def __init__(self, shape: HeadShape, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.shape = shape
        kinds = len(shape.layers)
        self.inward = nn.ModuleList([nn.Linear(shape.encoder_width, shape.width, bias=False) for _ in shape.layers])
        self.matches = nn.Linear(kinds * _MATCHES, shape.width)
        self.norm = nn.LayerNorm(shape.width)
        self.blocks = nn.ModuleList([_Block(shape.width, shape.heads, kinds, dropout) for _ in range(shape.blocks)])
        self.outward = nn.Sequential(
            nn.Linear(2 * shape.width, shape.width), nn.GELU(), nn.Dropout(dropout), nn.Linear(shape.width, 2)
        )

    def forward(self, premise: Encoded, hypothesis: Encoded) -> torch.Tensor:
        """Compute the logits.

        Args:
            premise: A batch of premises.
            hypothesis: As many hypotheses.

        Returns:
            Shape ``[batch, 2]``: not entailed, entailed.
        """
        similarity = _similarity(hypothesis, premise)
        seen = self._inward(premise)
        told = self.norm(self._inward(hypothesis) + self.matches(_best_matches(similarity, premise.mask)))
        for block in self.blocks:
            told = block(told, hypothesis.mask, seen, premise.mask, similarity)
        mask = hypothesis.mask.unsqueeze(-1)
        mean = (told * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1)
        most = told.masked_fill(~mask, torch.finfo(told.dtype).min).amax(dim=1)
        logits: torch.Tensor = self.outward(torch.cat([mean, most], dim=-1))
        return logits

    def _inward(self, text: Encoded) -> torch.Tensor:
        parts = [layer(text.states[:, :, place]) for place, layer in enumerate(self.inward)]
        return functional.layer_norm(torch.stack(parts).sum(dim=0), (self.shape.width,))


# A token's best match alone, and together with the token before it and behind it: words in the same order count more.
_MATCHES = 3


def _similarity(hypothesis: Encoded, premise: Encoded) -> torch.Tensor:
    """Compare every token of a hypothesis with every one of its premise, layer by layer.

    Args:
        hypothesis: Its tokens' states.
        premise: Its tokens' states.

    Returns:
        Cosines, shape ``[batch, layers, hypothesis tokens, premise tokens]``.
    """
    one, other = (functional.normalize(text.states.float(), dim=-1) for text in (hypothesis, premise))
    return torch.einsum("bhld,bpld->blhp", one, other)


def _best_matches(similarity: torch.Tensor, premise_mask: torch.Tensor) -> torch.Tensor:
    """Take the best match of each token of a hypothesis, alone and with its neighbours.

    Args:
        similarity: Cosines, shape ``[batch, layers, hypothesis tokens, premise tokens]``.
        premise_mask: Which tokens of a premise are there, shape ``[batch, premise tokens]``.

    Returns:
        Shape ``[batch, hypothesis tokens, layers * 3]``.
    """
    alone = torch.zeros_like(similarity)
    before = functional.pad(similarity[:, :, :-1, :-1], (1, 0, 1, 0))
    behind = functional.pad(similarity[:, :, 1:, 1:], (0, 1, 0, 1))
    padding = ~premise_mask[:, None, None, :]
    found = [(similarity + beside).masked_fill(padding, -2.0).amax(dim=-1) for beside in (alone, before, behind)]
    return torch.cat(found, dim=1).transpose(1, 2)


class _Block(nn.Module):
    """A transformer block whose attention to the premise is biased towards what matches."""

    def __init__(self, width: int, heads: int, kinds: int, dropout: float) -> None:
        super().__init__()
        self.own, self.across = _Attention(width, heads), _Attention(width, heads)
        # Each head weighs the similarities in its own way; at the beginning they are all it goes by.
        self.bias = nn.Parameter(torch.full((heads, kinds), 4.0))
        self.wider, self.narrower = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(3)])
        self.compare = nn.Linear(3 * width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        told: torch.Tensor,
        told_mask: torch.Tensor,
        seen: torch.Tensor,
        seen_mask: torch.Tensor,
        similarity: torch.Tensor,
    ) -> torch.Tensor:
        own = self.norms[0](told)
        told = told + self.dropout(self.own(own, own, told_mask, None))
        asking = self.norms[1](told)
        bias = torch.einsum("hl,blij->bhij", self.bias, similarity)
        found = self.across(asking, seen, seen_mask, bias)
        told = told + self.dropout(self.compare(torch.cat([asking, found, asking * found], dim=-1)))
        wide = functional.gelu(self.wider(self.norms[2](told)))
        wiser: torch.Tensor = told + self.dropout(self.narrower(wide))
        return wiser


class _Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(
        self, asking: torch.Tensor, asked: torch.Tensor, mask: torch.Tensor, bias: torch.Tensor | None
    ) -> torch.Tensor:
        query, key, value = (
            self._split(self.query(asking)),
            self._split(self.key(asked)),
            self._split(self.value(asked)),
        )
        weights = mask[:, None, None, :]
        shut = torch.zeros_like(weights, dtype=query.dtype).masked_fill(~weights, torch.finfo(query.dtype).min)
        found = functional.scaled_dot_product_attention(
            query, key, value, attn_mask=shut if bias is None else bias.to(query.dtype) + shut
        )
        joined: torch.Tensor = self.out(found.transpose(1, 2).flatten(2))
        return joined

    def _split(self, x: torch.Tensor) -> torch.Tensor:
        """Lay the heads side by side: ``[batch, tokens, width]`` becomes ``[batch, heads, tokens, width / heads]``."""
        batch, tokens, width = x.shape
        return x.view(batch, tokens, self.heads, width // self.heads).transpose(1, 2)
