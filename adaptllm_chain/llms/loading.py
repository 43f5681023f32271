"""Loading a base model, its tokenizer and an adapter with transformers and PEFT."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from adaptllm_chain.errors import InvalidInputError, PromptMismatchError, missing_extra
from adaptllm_chain.llms.devices import LoadIn, check_load_in, pick_device, pick_dtype, quantisation
from adaptllm_chain.llms.embedded import gguf_file
from adaptllm_chain.prompts.spec import FILE_NAME, PromptSpec

try:
    import torch
    import transformers
except ImportError as error:
    raise missing_extra(error.name or "torch", "local") from error


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model that is ready to generate.

    Attributes:
        model: A causal language model, in evaluation mode.
        tokenizer: Its tokenizer, padding left, with a pad token.
    """

    model: Any
    tokenizer: Any


def load_tokenizer(base: str) -> Any:
    """Load the tokenizer of a base model, ready for left-padded generation.

    Args:
        base: ``"embedded"``, a GGUF file, a folder, or a hub name.

    Returns:
        The tokenizer; its end token pads where it has no pad token.
    """
    source, file_arguments = _source(base)
    try:
        with _quiet():
            tokenizer = transformers.AutoTokenizer.from_pretrained(source, **file_arguments)
    except (OSError, ValueError) as error:
        raise InvalidInputError(
            f"no tokenizer could be loaded from {base!r}: {str(error).splitlines()[0]}",
            expected="'embedded', a .gguf file, a folder with a tokenizer, or the name of a model on the hub",
        ) from error
    return prepare_tokenizer(tokenizer)


def prepare_tokenizer(tokenizer: Any) -> Any:
    """Make a tokenizer fit for generation in batches.

    Args:
        tokenizer: Any transformers tokenizer; it is changed in place.

    Returns:
        The same tokenizer.

    Raises:
        InvalidInputError: If it has no token to pad with.
    """
    # A tokenizer saved with right padding makes a decoder continue its padding.
    tokenizer.padding_side = "left"
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.unk_token
    if tokenizer.pad_token_id is None:
        raise InvalidInputError(
            "the tokenizer has neither a pad nor an end nor an unknown token, so batches cannot be padded",
            expected="one of them",
            hint='tokenizer.pad_token = "…" with one of its tokens',
        )
    return tokenizer


def load_prompt_spec(adapter: str | Path) -> PromptSpec:
    """Read what an adapter was trained on, from its folder or from the hub.

    Args:
        adapter: A folder, or a name on the hub.

    Returns:
        The specification.

    Raises:
        PromptMismatchError: If it is not there.
    """
    if Path(adapter).is_dir():
        return PromptSpec.load(adapter)
    from huggingface_hub import hf_hub_download

    try:
        file = hf_hub_download(str(adapter), FILE_NAME)
    except (OSError, ValueError) as error:
        raise PromptMismatchError(
            f"no {FILE_NAME} was found for the adapter {str(adapter)!r}: {str(error).splitlines()[0]}",
            expected=f"a folder, or a name on the hub, that holds {FILE_NAME}",
            hint="pass prompt_spec=PromptSpec(format=…, trained_on=…) with what the adapter was trained on",
        ) from error
    return PromptSpec.load(Path(file).parent)


def load_base(
    base: str, *, dtype: str | torch.dtype = "auto", device: str = "auto", load_in: LoadIn | None = None
) -> Any:
    """Load a base model without an adapter.

    Args:
        base: ``"embedded"``, a GGUF file, a folder, or a hub name.
        dtype: ``"auto"``, a name, or a dtype.
        device: ``"auto"``, or a torch device.
        load_in: Quantise with bitsandbytes to 8 or 4 bits; ``None`` for not at all.

    Returns:
        The model in evaluation mode.

    Raises:
        UnsupportedHardwareError: If 8 or 4 bits were asked for without a GPU.
        InvalidInputError: If nothing can be loaded from ``base``, or it is a GGUF file that ought to be quantised.
    """
    device = pick_device(device)
    arguments: dict[str, Any] = {"dtype": pick_dtype(dtype, device)}
    source, file_arguments = _source(base)
    if load_in is not None:
        if file_arguments:
            raise InvalidInputError(
                f"load_in={load_in!r} with {base!r}, a GGUF file, which is quantised already",
                expected="a base in full precision, or load_in=None",
            )
        check_load_in(load_in, device)
        arguments |= quantisation(load_in, device, arguments["dtype"])
    try:
        with _quiet():
            model = transformers.AutoModelForCausalLM.from_pretrained(source, **arguments, **file_arguments)
    except (OSError, ValueError) as error:
        raise InvalidInputError(
            f"no model could be loaded from {base!r}: {str(error).splitlines()[0]}",
            expected="'embedded', a .gguf file, a folder with config.json, or the name of a model on the hub",
            hint="--model embedded",
        ) from error
    if file_arguments:
        _forget_quantisation(model)
    if load_in is None:
        model.to(device)
    return model.eval()


def load_model(
    base: str,
    *,
    adapter: str | Path | None = None,
    dtype: str | torch.dtype = "auto",
    device: str = "auto",
    load_in: LoadIn | None = None,
) -> LoadedModel:
    """Load a base model, its tokenizer and, if given, a PEFT adapter.

    Args:
        base: ``"embedded"``, a GGUF file, a folder, or a hub name.
        adapter: An adapter's folder or hub name.
        dtype: ``"auto"``, a name, or a dtype.
        device: ``"auto"``, or a torch device.
        load_in: Quantise with bitsandbytes to 8 or 4 bits; ``None`` for not at all.

    Returns:
        The model and its tokenizer. Where the adapter's folder holds a tokenizer (it then has added
        tokens), that one is used and the base's embeddings are resized to it.

    Raises:
        InvalidInputError: If the adapter cannot be loaded.
    """
    model = load_base(base, dtype=dtype, device=device, load_in=load_in)
    tokenizer = load_tokenizer(base)
    if adapter is None:
        return LoadedModel(model, tokenizer)
    try:
        import peft
    except ImportError as error:
        raise missing_extra("peft", "local") from error
    try:
        with _quiet():
            if _has_tokenizer(adapter):
                tokenizer = prepare_tokenizer(transformers.AutoTokenizer.from_pretrained(str(adapter)))
                if len(tokenizer) > model.get_input_embeddings().num_embeddings:
                    # Which values the new rows get does not matter: the adapter brings its own.
                    model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
            model = peft.PeftModel.from_pretrained(model, str(adapter))
    except (OSError, ValueError, RuntimeError, IndexError) as error:
        raise InvalidInputError(
            f"no adapter could be loaded from {str(adapter)!r}: {str(error).splitlines()[0]}",
            expected="a folder with adapter_config.json and adapter_model.safetensors, or a name on the hub; with an "
            "added token, its tokenizer beside them",
            hint="--adapter none asks the base model alone",
        ) from error
    return LoadedModel(model.eval(), tokenizer)


def _has_tokenizer(adapter: str | Path) -> bool:
    """Say whether an adapter, in a folder or on the hub, brings a tokenizer."""
    if Path(adapter).is_dir():
        return (Path(adapter) / "tokenizer_config.json").exists()
    from huggingface_hub import hf_hub_download

    try:
        hf_hub_download(str(adapter), "tokenizer_config.json")
    except (OSError, ValueError):
        return False  # it has none; or no such name, or no network, as loading the adapter itself will say
    return True


def _source(base: str) -> tuple[str, dict[str, str]]:
    """Turn a base into what ``from_pretrained`` takes: a folder or name, and a GGUF file in it."""
    path = gguf_file(base)
    if path is None:
        return base, {}
    if not path.is_file():
        raise InvalidInputError(f"there is no file {str(path)!r}", expected="a GGUF file")
    return str(path.parent), {"gguf_file": path.name}


def _forget_quantisation(model: Any) -> None:
    """Let a model that was read from GGUF be saved and trained: its weights are plain tensors by now."""
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.is_quantized = False
    model.hf_quantizer = None


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence progress bars and chatter of transformers while a model loads."""
    from transformers import modeling_gguf_pytorch_utils as gguf

    log = transformers.utils.logging
    verbosity, bars, gguf_bar = log.get_verbosity(), log.is_progress_bar_enabled(), gguf.tqdm
    log.set_verbosity_error()
    log.disable_progress_bar()
    # The reader of GGUF files has a bar of its own, which heeds no setting.
    gguf.tqdm = partial(gguf_bar, disable=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        gguf.tqdm = gguf_bar
        log.set_verbosity(verbosity)
        if bars:
            log.enable_progress_bar()
