"""A base model and its adapter as one model: a folder that plain transformers loads."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

from adaptllm_chain.errors import InvalidInputError, missing_extra
from adaptllm_chain.llms.embedded import gguf_file
from adaptllm_chain.llms.generation import plain_generation_config
from adaptllm_chain.llms.loading import LoadedModel, load_model
from adaptllm_chain.prompts import PromptSpec
from adaptllm_chain.publishing.adapter_files import AdapterFiles, find_adapter, read_adapter
from adaptllm_chain.publishing.whole_folder import check_out, whole_folder

try:
    import torch
    import transformers
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
except ImportError as error:
    raise missing_extra(error.name or "torch", "local") from error

AUTO = "auto"


def export_merged(
    adapter: str | Path, out: Path, *, base: str | None = None, dtype: str = AUTO, overwrite: bool = False
) -> Path:
    """Write a base with its adapter added to the weights: a model that needs neither PEFT nor this package.

    Args:
        adapter: A folder, ``"embedded"``, or a name on the hub.
        out: The folder to write. It holds weights, tokenizer, ``prompt_spec.json``, a card and ``export.json``.
        base: The base model; by default the one that the adapter names.
        dtype: As for ``merge``.
        overwrite: Whether an earlier export in ``out`` may be replaced.

    Returns:
        ``out``.

    Raises:
        InvalidInputError: If the base is quantised, or ``out`` is in use.
    """
    check_out(out, overwrite=overwrite)
    files = read_adapter(find_adapter(adapter), base)
    spec = files.prompt_spec()
    merged = merge(files, dtype)
    with whole_folder(out, merge_record("merged", files, merged), overwrite=overwrite) as part:
        save(merged, part)
        spec.save(part)
        loads = f'LocalLLM.from_pretrained("{out.name}")  # this folder; its prompt_spec.json is read'
        (part / "README.md").write_text(card(out.name, files, spec, loads), encoding="utf-8")
    return out


def merge(files: AdapterFiles, dtype: str = AUTO) -> LoadedModel:
    """Add an adapter to the weights of its base, on the CPU.

    Args:
        files: The adapter.
        dtype: ``"auto"`` (the type that the base is stored in; float32 for a GGUF file), or a name. The product
            of the adapter's matrices is computed in their own type, float32, and the sum is rounded once.

    Returns:
        A plain transformers model, and its tokenizer.

    Raises:
        InvalidInputError: If the base is quantised.
    """
    config = config_of(files)
    # A GGUF file is unpacked while it is read; what bitsandbytes and the like packed stays packed.
    if gguf_file(files.base) is None and getattr(config, "quantization_config", None) is not None:
        raise InvalidInputError(
            f"the base {files.base!r} is quantised: an adapter that is added to rounded weights is rounded away",
            expected="the base in full precision (float32, bfloat16 or float16)",
            hint="--model with the model that it was quantised from",
        )
    loaded = load_model(
        files.base,
        adapter=files.folder,
        dtype=_stored_dtype(files.base, config) if dtype == AUTO else dtype,
        device="cpu",
    )
    model = loaded.model.merge_and_unload()
    if model.config.tie_word_embeddings:
        model.tie_weights()
    # What a base brings of its own (sampling, penalties) is no part of the training, and some cannot be saved.
    model.generation_config = plain_generation_config(model, loaded.tokenizer)
    return LoadedModel(model, loaded.tokenizer)


def save(merged: LoadedModel, folder: Path) -> None:
    """Write a merged model as transformers reads it.

    Args:
        merged: The model and its tokenizer.
        folder: Where to.
    """
    log = transformers.utils.logging
    bars = log.is_progress_bar_enabled()
    log.disable_progress_bar()
    try:
        merged.model.save_pretrained(folder)
    finally:
        if bars:
            log.enable_progress_bar()
    merged.tokenizer.save_pretrained(folder)


def config_of(files: AdapterFiles) -> Any:
    """Read the configuration of an adapter's base, not its weights.

    Args:
        files: The adapter.

    Returns:
        The configuration.

    Raises:
        InvalidInputError: If the base is not there.
    """
    base = files.base
    file = gguf_file(base) if base else None
    try:
        if file is None:
            return transformers.AutoConfig.from_pretrained(base)
        config = transformers.AutoConfig.from_pretrained(file.parent, gguf_file=file.name)
    except (OSError, ValueError) as error:
        raise InvalidInputError(
            f"the base {base!r} of the adapter {str(files.folder)!r} was not found: {str(error).splitlines()[0]}",
            expected="'embedded', a .gguf file, a folder with config.json, or the name of a model on the hub",
            hint="--model with the adapter's base",
        ) from error
    # A GGUF file does not say which class of transformers reads it, and llama.cpp's converters ask for that.
    config.architectures = [MODEL_FOR_CAUSAL_LM_MAPPING_NAMES[config.model_type]]
    return config


def _stored_dtype(base: str, config: Any) -> Any:
    stored = None if gguf_file(base) else getattr(config, "dtype", None)
    return stored if isinstance(stored, torch.dtype) and stored.is_floating_point else torch.float32


def merge_record(to: str, files: AdapterFiles, merged: LoadedModel) -> dict[str, Any]:
    """Note what a merged model was made of.

    Args:
        to: The kind of export.
        files: The adapter.
        merged: The model.

    Returns:
        What goes into ``export.json``.
    """
    return {
        "to": to,
        "adapter": str(files.folder),
        "base": files.base,
        "dtype": str(merged.model.dtype).removeprefix("torch."),
        "versions": {name: version(name) for name in ("torch", "transformers", "peft")},
    }


def card(name: str, files: AdapterFiles, spec: PromptSpec, loads: str) -> str:
    """Write the card of a merged model.

    Args:
        name: What it is called.
        files: The adapter.
        spec: What the adapter was trained on.
        loads: The expression that loads it.

    Returns:
        Markdown with the header that model hubs read.
    """
    from huggingface_hub import ModelCardData

    # A place on this disk would be no link, and the hub refuses it.
    on_hub = files.base_on_hub
    linked: dict[str, Any] = {"base_model": on_hub, "base_model_relation": "finetune"} if on_hub else {}
    header = ModelCardData(
        library_name="transformers",
        pipeline_tag="text-generation",
        tags=["adapt-llm", "adaptive-retrieval", "rag"],
        **linked,
    )
    base = spec.base_model or on_hub or "its base model"
    kinds = "\n".join(f"- {kind}: `{text}`" for kind, text in spec.instructions.items())
    return (
        f"---\n{header.to_yaml()}\n---\n\n# {name}\n\n"
        f"{base} with the LoRA adapter `{files.folder.name}` added to its weights: it answers what it knows and "
        f'says `{spec.ret_marker}` otherwise, as in "When to Retrieve" (arXiv:2404.19705). The adapter\'s own card '
        "says what it was trained with.\n\n"
        "```python\nfrom adaptllm_chain import AdaptiveRetrievalChain, LocalLLM\n\n"
        f"llm = {loads}\n"
        "chain = AdaptiveRetrievalChain(llm=llm, retriever=retriever)  # any LangChain retriever\n"
        'print(chain.invoke("When was the Falkirk Wheel opened?")["answer"])\n```\n\n'
        f"It reads these instructions, in the format {spec.format}:\n\n{kinds}\n"
    )
