"""Which model and adapter the options stand for."""

from __future__ import annotations

import argparse
from typing import Any

from langchain_core.runnables import Runnable

from adaptllm_chain.cli.console import note, stdout_kept_clean
from adaptllm_chain.cli.options import NONE
from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.llms.embedded import EMBEDDED


def check_adapter(arguments: argparse.Namespace) -> str | None:
    """Find the adapter that the options ask for, before anything is loaded.

    Args:
        arguments: ``model`` and ``adapter``.

    Returns:
        An adapter for ``LocalLLM.from_pretrained``.

    Raises:
        InvalidInputError: If the shipped adapter is asked for with another model, or is not there.
    """
    adapter: str | None = arguments.adapter
    if adapter is None:
        adapter = EMBEDDED if arguments.model == EMBEDDED else NONE
    if adapter == NONE:
        return None
    if adapter != EMBEDDED:
        return adapter
    if arguments.model != EMBEDDED:
        raise InvalidInputError(
            f"the embedded adapter was trained for the embedded model, not for {arguments.model!r}",
            expected="--adapter with a folder or a name on the hub, or none",
            hint=f"--model {arguments.model} --adapter none",
        )
    from adaptllm_chain.llms.embedded import embedded_adapter

    if not embedded_adapter().is_dir():
        raise InvalidInputError(
            f"the adapter for the embedded model is not there: {embedded_adapter()}",
            expected="the adapter that is shipped with adaptllm-chain",
            hint="pip install --force-reinstall --no-deps adaptllm-chain; or ask the base model alone: --adapter none",
        )
    return EMBEDDED


def load_llm(arguments: argparse.Namespace) -> Runnable[str, str]:
    """Load the model that the options ask for.

    Args:
        arguments: The model options.

    Returns:
        The model.
    """
    adapter = check_adapter(arguments)
    note(f"loading the model {arguments.model} {f'with the adapter {adapter}' if adapter else 'without an adapter'}")
    settings = {"batch_size": arguments.batch_size}
    if arguments.max_new_tokens is not None:
        settings["max_new_tokens"] = arguments.max_new_tokens
    with stdout_kept_clean():
        from adaptllm_chain.llms.local import LocalLLM

        llm: Runnable[str, str] = LocalLLM.from_pretrained(
            arguments.model,
            adapter=adapter,
            dtype=arguments.dtype,
            device=arguments.device,
            load_in=arguments.load_in,
            **settings,
        )
    return llm


class LastModel:
    """Keeps the model that was loaded last, for experiments in a row that ask the same one."""

    def __init__(self) -> None:
        self._options: tuple[Any, ...] | None = None
        self._llm: Runnable[str, str] | None = None

    def load(self, arguments: argparse.Namespace) -> Runnable[str, str]:
        """Load the model that the options ask for, unless it is the one at hand.

        Args:
            arguments: The model options.

        Returns:
            The model.
        """
        names = ("model", "device", "dtype", "load_in", "max_new_tokens", "batch_size")
        options = (check_adapter(arguments), *(getattr(arguments, name) for name in names))
        if self._llm is None or options != self._options:
            self._llm = None  # before the next one comes: memory may not hold two
            self._llm, self._options = load_llm(arguments), options
        return self._llm
