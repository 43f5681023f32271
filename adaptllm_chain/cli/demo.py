"""``adaptllm demo``: the bundled articles indexed, the bundled questions asked."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

from adaptllm_chain.cli import ask
from adaptllm_chain.cli.console import note
from adaptllm_chain.cli.options import add_decision_options, add_mode_options, add_model_options
from adaptllm_chain.llms.embedded import EMBEDDED


def add_parser(subparsers: Any) -> None:
    """Add the command.

    Args:
        subparsers: What ``ArgumentParser.add_subparsers`` returned.
    """
    parser = subparsers.add_parser(
        "demo",
        help="index the bundled articles and ask the bundled questions",
        description="Indexes the bundled short articles and asks the bundled questions, some of which only the "
        "articles answer. Nothing is downloaded.",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a line on stdout, and nothing else")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the index in this folder")
    add_mode_options(parser)
    add_decision_options(parser)
    add_model_options(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the demo.

    Args:
        arguments: The parsed options.

    Returns:
        The exit code of ``adaptllm ask``.
    """
    from adaptllm_chain.cli import chain_loading, embedder_loading, model_loading
    from adaptllm_chain.cli.bundled import CORPUS, QUESTIONS, index_bundled
    from adaptllm_chain.minilm import MINILM_NAME

    asked = ask.defaults(**{**vars(arguments), "file": QUESTIONS})
    chain_loading.choose_policy(asked)
    model_loading.check_adapter(asked)
    note(f"loading the embedder {MINILM_NAME}")
    device = embedder_loading.embedder_device(arguments.device)
    embedder = embedder_loading.load_embedder(EMBEDDED, device=device)
    with tempfile.TemporaryDirectory(prefix="adaptllm-demo-") as scratch:
        asked.index = arguments.keep or Path(scratch) / "index"
        note(f"indexing {CORPUS}")
        index_bundled(asked.index, embedder)
        code = ask.run(asked, embedder)
    if arguments.keep is not None:
        note(f'the index is kept: adaptllm ask --index {arguments.keep} "…"')
    return code
