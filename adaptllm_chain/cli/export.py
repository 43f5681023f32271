"""``adaptllm export``: an adapter in the form that another program needs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adaptllm_chain.cli.console import note, stdout_kept_clean
from adaptllm_chain.cli.options import DTYPES
from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.llms.embedded import EMBEDDED

if TYPE_CHECKING:
    from adaptllm_chain.publishing.adapter_files import AdapterFiles

TARGETS = ("merged", "gguf", "gguf-adapter", "vllm")
OUT_TYPES = ("f32", "f16", "bf16", "q8_0")


def add_parser(subparsers: Any) -> None:
    """Add the command.

    Args:
        subparsers: What ``ArgumentParser.add_subparsers`` returned.
    """
    parser = subparsers.add_parser(
        "export",
        help="merge an adapter into its base, or make it ready for vLLM or llama.cpp",
        description="merged: the base with the adapter in its weights, one folder for transformers, vLLM and others. "
        "gguf: the same as one file for llama.cpp. gguf-adapter: the adapter alone, for llama.cpp with --lora. vllm: "
        "writes nothing; checks the adapter and prints the command that serves it. What was written is printed on "
        "stdout.",
    )
    parser.add_argument(
        "--adapter", required=True, metavar="A", help="a folder, 'embedded' (the shipped one), or a name on the hub"
    )
    parser.add_argument(
        "--model",
        metavar="M",
        help="its base: a folder, a .gguf file, a name on the hub; default: what the adapter says",
    )
    parser.add_argument("--to", default="merged", choices=TARGETS, help="what to make of it (default: merged)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="the folder to write; needed for all but vllm")
    parser.add_argument("--overwrite", action="store_true", help="replace an earlier export in DIR")
    parser.add_argument(
        "--dtype",
        default="auto",
        choices=DTYPES,
        help="merged: type of the weights (default auto: that of the base's file; float32 for a .gguf base)",
    )
    parser.add_argument(
        "--outtype", default="f16", choices=OUT_TYPES, help="gguf, gguf-adapter: type of the weights (default f16)"
    )
    parser.add_argument(
        "--llama-cpp",
        metavar="DIR",
        help="gguf, gguf-adapter: a checkout of llama.cpp; its converter is run (default: the variable LLAMA_CPP_DIR)",
    )
    parser.add_argument("--name", metavar="N", help="vllm: what requests call the adapter (default: its folder's name)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Export an adapter.

    Args:
        arguments: The parsed options.

    Returns:
        0.

    Raises:
        InvalidInputError: If there is no folder to write into.
    """
    if arguments.to == "vllm":
        return _vllm(arguments)
    if arguments.out is None:
        raise InvalidInputError(f"--to {arguments.to} writes a folder", expected="--out DIR", hint="--out my-model")
    print(_written(arguments))
    return 0


def _written(arguments: argparse.Namespace) -> Path:
    common = {"base": arguments.model, "overwrite": arguments.overwrite}
    if arguments.to == "merged":
        with stdout_kept_clean():
            from adaptllm_chain.publishing.merging import export_merged

            note(f"merging the adapter {arguments.adapter} into its base")
            return export_merged(arguments.adapter, arguments.out, dtype=arguments.dtype, **common)

    from adaptllm_chain.publishing.llama_cpp import LlamaCpp

    converter = LlamaCpp.find(arguments.llama_cpp)  # before torch is loaded, and long before the merge
    with stdout_kept_clean():
        from adaptllm_chain.publishing.gguf import export_gguf, export_gguf_adapter

        note(f"converting the adapter {arguments.adapter} with {converter.folder}")
        convert = export_gguf if arguments.to == "gguf" else export_gguf_adapter
        return convert(arguments.adapter, arguments.out, converter, outtype=arguments.outtype, **common)


def _vllm(arguments: argparse.Namespace) -> int:
    from adaptllm_chain.publishing.adapter_files import find_adapter, read_adapter
    from adaptllm_chain.publishing.vllm import serve_command

    files = read_adapter(find_adapter(arguments.adapter), arguments.model)
    command = serve_command(files, arguments.name or files.folder.name)
    note(f"vLLM takes this adapter as it is. {_asked_by(files)}")
    if files.base == EMBEDDED:
        note("It was trained on the 4-bit file of its base, which vLLM serves in full precision: answers may differ.")
    print(command)
    return 0


def _asked_by(files: AdapterFiles) -> str:
    spec = files.prompt_spec()
    if spec.format == "chat":
        return "Ask it through /v1/chat/completions: vLLM applies the chat template, as in training."
    return f"Ask it through /v1/completions, with the format {spec.format!r} written around the prompt, as in training."
