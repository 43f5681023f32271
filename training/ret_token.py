"""``<RET>`` as a token of its own, whose row or rows are all that is trained of the embeddings.

The default is ``<RET>`` as text, in whichever tokens the base has for it: such an adapter is plain LoRA and loads
everywhere. As an added token it costs one step instead of three or four, and its probability is one number; but
vLLM and llama.cpp take such an adapter only merged into its base.

What PEFT and TRL leave to their callers, and this module sees to:

- A new row is frozen under LoRA on attention layers; ``trainable_token_indices`` trains it. With untied weights
  (Llama-2) a list of ids would train the input row alone, and the model could never learn to say the token.
- TRL's fused head reads ``lm_head.bias``, which PEFT's wrapper of the head lacks.
- Rows are trained in float32: in bfloat16 a step of 3e-4 is lost in rounding.
- Saved as a whole, two embedding matrices would outweigh the adapter a hundredfold.
"""

from __future__ import annotations

from typing import Any

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.ret.marker import RET


def add_to_tokenizer(tokenizer: Any, marker: str = RET) -> int:
    """Make the marker one token of a tokenizer.

    Args:
        tokenizer: A transformers tokenizer; it is changed in place. One that has the token already stays as it is.
        marker: How the request for retrieval is spelled.

    Returns:
        The token's id.
    """
    from tokenizers import AddedToken

    # Not special, or decoding would drop it; not normalised, or a SentencePiece tokenizer would look for "▁<RET>".
    tokenizer.add_tokens([AddedToken(marker, special=False, normalized=False)])
    return int(tokenizer.convert_tokens_to_ids(marker))


def add_to_model(model: Any, tokenizer: Any, marker: str = RET) -> None:
    """Give a model rows for the marker, each the mean of the rows of the marker's characters.

    Args:
        model: A causal language model; it is changed in place.
        tokenizer: Its tokenizer, with the marker added.
        marker: How the request for retrieval is spelled.

    Raises:
        InvalidInputError: If the model's output layer has a bias.
    """
    import torch

    if getattr(model.get_output_embeddings(), "bias", None) is not None:
        raise InvalidInputError(
            "ret_token='added' with a base whose output layer has a bias, which PEFT drops from a layer with "
            "single trained rows",
            expected="an output layer without a bias, or <RET> as text",
            hint="--ret-token text",
        )
    if len(tokenizer) > model.get_input_embeddings().num_embeddings:
        model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    token = tokenizer.convert_tokens_to_ids(marker)
    # One character at a time is sure not to meet the added token itself.
    pieces = [
        piece
        for character in marker
        for piece in tokenizer(character, add_special_tokens=False).input_ids
        if piece != token
    ]
    with torch.no_grad():
        for layer in (model.get_input_embeddings(), model.get_output_embeddings()):
            layer.weight[token] = layer.weight[pieces].float().mean(0).to(layer.weight)


def trained_rows(model: Any, token: int) -> list[int] | dict[str, list[int]]:
    """Say which rows PEFT has to train so that a token can be both read and said.

    Args:
        model: The base model.
        token: The token's id.

    Returns:
        ``LoraConfig.trainable_token_indices``: a list where input and output share one matrix, else both by name.
    """
    if model.config.get_text_config().tie_word_embeddings:
        return [token]
    layers = (model.get_input_embeddings(), model.get_output_embeddings())
    names = {id(module): name.rsplit(".", 1)[-1] for name, module in model.named_modules()}
    return {names[id(layer)]: [token] for layer in layers}


def mend_head(model: Any) -> None:
    """Let TRL's fused head read the wrapped output layer of a PEFT model.

    Args:
        model: A PEFT model; where its output layer is not wrapped, nothing happens.
    """
    from peft.utils.other import TrainableTokensWrapper

    head = model.get_base_model().get_output_embeddings()
    if isinstance(head, TrainableTokensWrapper):
        head.bias = None  # ``add_to_model`` has refused a head that has one
