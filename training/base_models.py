"""The base model of Algorithm 1: a local one, a server's, or any other LangChain model."""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Any

from langchain_core.runnables import Runnable

from adaptllm_chain.cli.options import whole_number
from adaptllm_chain.errors import InvalidInputError, missing_extra


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Add what says which model is asked.

    Args:
        parser: A parser.
    """
    group = parser.add_argument_group("the base model")
    group.add_argument(
        "--model",
        default="embedded",
        metavar="M",
        help="'embedded' (SmolLM2-135M-Instruct, the default), a .gguf file, a folder, a name on the hub; "
        "'provider:name' for any chat model of LangChain, such as openai:gpt-4o-mini; or "
        "'python:module:name' for a LangChain model of your own, or a function that makes one",
    )
    group.add_argument(
        "--base-url", metavar="URL", help="with openai:…: a server that speaks OpenAI's protocol (vLLM, llama.cpp, …)"
    )
    group.add_argument("--dtype", default="auto", help="auto, float32, bfloat16 or float16")
    group.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1 …")
    group.add_argument("--load-in", choices=["8bit", "4bit"], help="quantise the base with bitsandbytes (GPU)")
    group.add_argument("--prompt-format", choices=["plain", "alpaca", "chat"], help="default: the model's own")
    group.add_argument("--max-new-tokens", type=whole_number, default=32)
    group.add_argument("--batch-size", type=whole_number, default=16)


def load_model(arguments: argparse.Namespace) -> Runnable[Any, Any]:
    """Load the model that the command line names.

    Args:
        arguments: What ``add_model_options`` parses.

    Returns:
        A LangChain language model.

    Raises:
        InvalidInputError: If it names no model, or options that such a model does not take.
    """
    provider, colon, name = arguments.model.partition(":")
    if colon and provider == "python":
        _refuse_local_options(arguments, "base_url", "dtype", "device")
        return _own(name)
    if colon and len(provider) > 1 and "/" not in provider:  # "C:\model" is a folder
        return _served(arguments)
    if arguments.base_url:
        raise InvalidInputError(
            f"--base-url {arguments.base_url} with --model {arguments.model!r}",
            expected="the provider and the model's name on the server",
            hint=f"--model openai:{arguments.model}",
        )
    from adaptllm_chain.llms import LocalLLM

    return LocalLLM.from_pretrained(
        arguments.model,
        format=arguments.prompt_format,
        dtype=arguments.dtype,
        device=arguments.device,
        load_in=arguments.load_in,
        batch_size=arguments.batch_size,
        max_new_tokens=arguments.max_new_tokens,
    )


def _served(arguments: argparse.Namespace) -> Runnable[Any, Any]:
    _refuse_local_options(arguments, "dtype", "device")
    try:
        from langchain.chat_models import init_chat_model
    except ImportError as error:
        raise missing_extra("langchain", "langchain") from error
    address = {"base_url": arguments.base_url} if arguments.base_url else {}
    try:
        return init_chat_model(arguments.model, temperature=0.0, max_tokens=arguments.max_new_tokens, **address)
    except (ImportError, ValueError) as error:
        raise InvalidInputError(
            f"LangChain cannot make the model {arguments.model!r}: {error}",
            expected="'provider:name'",
            hint="pip install langchain-openai, for openai:…",
        ) from error
    except Exception as error:  # every provider has errors of its own
        raise InvalidInputError(
            f"the provider refuses to make the model {arguments.model!r}: {error}",
            hint="export OPENAI_API_KEY=…, for openai:…; for a server of your own that asks for none, any word will do",
        ) from error


def _refuse_local_options(arguments: argparse.Namespace, *more: str) -> None:
    """Refuse what such a model would silently ignore."""
    defaults = {"load_in": None, "prompt_format": None, "base_url": None, "dtype": "auto", "device": "auto"}
    for name in ("load_in", "prompt_format", *more):
        if getattr(arguments, name) != defaults[name]:
            raise InvalidInputError(
                f"--{name.replace('_', '-')} {getattr(arguments, name)} with --model {arguments.model!r}",
                expected="it with a local model; this one would ignore it",
            )


def _own(name: str) -> Runnable[Any, Any]:
    module, _, attribute = name.partition(":")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidInputError(
            f"'python:{name}' names nothing: {error}", expected="'python:module:name'", hint="PYTHONPATH=. …"
        ) from error
    model = found if isinstance(found, Runnable) else found()
    if not isinstance(model, Runnable):
        raise InvalidInputError(f"'python:{name}' is a {type(model).__name__}", expected="a LangChain model")
    return model


def identity(model: Runnable[Any, Any], name: str, base_url: str | None = None) -> dict[str, Any]:
    """Say what a model's answers depend on.

    Args:
        model: The model.
        name: What the command line calls it.
        base_url: The server that it was named with.

    Returns:
        JSON-serialisable settings: for a local model a hash of its weights and its format, else what the
        model tells LangChain about itself.
    """
    from adaptllm_chain.llms import LocalLLM

    if isinstance(model, LocalLLM):
        return {"model": name, "weights": model.fingerprint, "prompt_format": model.format}
    told = getattr(model, "_identifying_params", {})
    kept = {key: value for key, value in dict(told).items() if isinstance(value, str | int | float | bool | None)}
    return {"model": name, "class": type(model).__qualname__, "parameters": kept, "base_url": base_url}
