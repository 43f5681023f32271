"""GGUF files for llama.cpp: a base with its adapter in one file, or an adapter alone."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.publishing.adapter_files import find_adapter, is_hub_name, read_adapter
from adaptllm_chain.publishing.llama_cpp import LlamaCpp, OutType
from adaptllm_chain.publishing.merging import AUTO, card, config_of, merge, merge_record, save
from adaptllm_chain.publishing.whole_folder import check_out, whole_folder


def export_gguf(
    adapter: str | Path,
    out: Path,
    converter: LlamaCpp,
    *,
    base: str | None = None,
    outtype: OutType = "f16",
    overwrite: bool = False,
) -> Path:
    """Write a base with its adapter as one GGUF file, by llama.cpp's own converter.

    Args:
        adapter: A folder, ``"embedded"``, or a name on the hub.
        out: The folder to write. It holds the file, ``prompt_spec.json``, a card and ``export.json``.
        converter: llama.cpp.
        base: The base model; by default the one that the adapter names.
        outtype: The type of the file's weights.
        overwrite: Whether an earlier export in ``out`` may be replaced.

    Returns:
        The GGUF file.

    Raises:
        InvalidInputError: If the base is quantised or lacks a file that llama.cpp needs, or ``out`` is in use.
    """
    out = out.resolve()  # the converter runs in a folder of its own
    check_out(out, overwrite=overwrite)
    files = read_adapter(find_adapter(adapter), base)
    spec = files.prompt_spec()
    merged = merge(files, "float32" if outtype == "f32" else AUTO)
    record = merge_record("gguf", files, merged) | {"outtype": outtype}
    with whole_folder(out, record, overwrite=overwrite) as part:
        folder = part / "merged"
        save(merged, folder)
        _complete_sentencepiece(files.base, merged.tokenizer, folder)
        file = converter.model(folder, part / f"{out.name}-{outtype}.gguf", outtype)
        shutil.rmtree(folder)
        spec.save(part)
        loads = f'LocalLLM.from_pretrained("{out.name}/{file.name}")  # the prompt_spec.json beside it is read'
        (part / "README.md").write_text(card(out.name, files, spec, loads), encoding="utf-8")
    return out / file.name


def export_gguf_adapter(
    adapter: str | Path,
    out: Path,
    converter: LlamaCpp,
    *,
    base: str | None = None,
    outtype: OutType = "f16",
    overwrite: bool = False,
) -> Path:
    """Write an adapter alone as a GGUF file, to be loaded over a GGUF file of its base.

    Args:
        adapter: A folder, ``"embedded"``, or a name on the hub.
        out: The folder to write. It holds the file, ``prompt_spec.json`` and ``export.json``.
        converter: llama.cpp.
        base: The base model, of which the configuration alone is read; by default the one that the adapter names.
        outtype: The type of the file's weights.
        overwrite: Whether an earlier export in ``out`` may be replaced.

    Returns:
        The GGUF file.

    Raises:
        InvalidInputError: If llama.cpp's format has no place for what the adapter holds.
    """
    out = out.resolve()
    check_out(out, overwrite=overwrite)
    files = read_adapter(find_adapter(adapter), base)
    spec = files.prompt_spec()
    # The format has one alpha, divided by each matrix's rank.
    odd = [*files.extras, *(["scales that one alpha does not give"] if files.scales_vary else [])]
    if odd:
        raise InvalidInputError(
            f"the adapter {str(files.folder)!r} holds {', '.join(odd)}: llama.cpp's adapter files have no place for it",
            expected="plain LoRA, with <RET> as plain text",
            hint="--to gguf, which puts the base and the adapter into one file",
        )
    config = config_of(files)
    record = {"to": "gguf-adapter", "adapter": str(files.folder), "base": files.base, "outtype": outtype}
    with whole_folder(out, record, overwrite=overwrite) as part:
        folder = part / "base"
        config.save_pretrained(folder)
        file = converter.adapter(files.folder.resolve(), folder, part / f"{out.name}-{outtype}.gguf", outtype)
        shutil.rmtree(folder)
        spec.save(part)
    return out / file.name


_SENTENCEPIECE = "tokenizer.model"


def _complete_sentencepiece(base: str, tokenizer: Any, folder: Path) -> None:
    """Put beside a SentencePiece tokenizer (Llama-2's) what llama.cpp's converter needs and transformers 5 drops.

    Without ``tokenizer.model`` the converter gives every piece the same score, and llama.cpp would cut texts into
    other tokens than the adapter was trained on, without a word. Without ``added_tokens.json`` an added ``<RET>``
    would become a padding entry.

    Args:
        base: The base model.
        tokenizer: The merged model's tokenizer.
        folder: The merged model's folder.

    Raises:
        InvalidInputError: If the base has no ``tokenizer.model``.
    """
    # Byte fallback is SentencePiece's way with rare characters; byte-level tokenizers (SmolLM2, Llama-3) lack it.
    if not getattr(tokenizer.backend_tokenizer.model, "byte_fallback", False):
        return
    file = Path(base) / _SENTENCEPIECE
    if not file.is_file() and is_hub_name(base):
        from huggingface_hub import hf_hub_download

        with suppress(OSError, ValueError):  # it has none, as is said below
            file = Path(hf_hub_download(base, _SENTENCEPIECE))
    if not file.is_file():
        raise InvalidInputError(
            f"the base {base!r} has a SentencePiece tokenizer, but no {_SENTENCEPIECE}: llama.cpp would cut texts into "
            "other tokens than the adapter was trained on",
            expected=f"a base whose folder holds {_SENTENCEPIECE}",
            hint="--model with such a folder, or with the name on the hub; or --to merged",
        )
    shutil.copyfile(file, folder / _SENTENCEPIECE)
    added = {token: at for token, at in tokenizer.get_added_vocab().items() if at >= tokenizer.vocab_size}
    if added:
        (folder / "added_tokens.json").write_text(json.dumps(added), encoding="utf-8")
