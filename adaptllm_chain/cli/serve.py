"""``adaptllm serve``: the chain as an HTTP service with a page."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Sized
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from adaptllm_chain.cli.options import MODES, add_decision_options, add_index_options, add_model_options, whole_number

if TYPE_CHECKING:
    from adaptllm_chain.chain import AdaptiveRetrievalChain

KEY_VARIABLE = "ADAPTLLM_API_KEY"
_LOCAL_HOSTS = ("127.0.0.1", "::1", "localhost")
_LAST_PORT = 65_535


def add_parser(subparsers: Any) -> None:
    """Add the command.

    Args:
        subparsers: What ``ArgumentParser.add_subparsers`` returned.
    """
    parser = subparsers.add_parser(
        "serve",
        help="answer over HTTP, with a page for the browser",
        description="Answers questions over HTTP: a page, POST /ask, OpenAI's POST /v1/chat/completions, and measures "
        "for Prometheus. Questions that come together are answered together.",
    )
    add_index_options(parser)
    parser.add_argument(
        "--mode",
        default="adaptive",
        choices=MODES,
        help="what decides whether to retrieve (default: adaptive); a request may name another",
    )
    _add_server_options(parser)
    add_decision_options(parser)
    add_model_options(parser)
    # A number of one question: with --mode popularity each request brings its own.
    parser.set_defaults(run=run, popularity=None)


def _add_server_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the server")
    group.add_argument("--host", default="127.0.0.1", metavar="H", help="the address to listen on (default 127.0.0.1)")
    group.add_argument(
        "--port", type=_port, default=8000, metavar="P", help="the port to listen on (default 8000); 0: any free one"
    )
    group.add_argument(
        "--api-key",
        metavar="KEY",
        help=f"what requests must bring as 'Authorization: Bearer KEY'; better set {KEY_VARIABLE}, for other users "
        "of this machine can read a command (default: everyone may ask)",
    )
    group.add_argument(
        "--max-concurrency",
        type=whole_number,
        default=32,
        metavar="N",
        help="the most questions at a time, waiting ones included; more are told to come again (default 32)",
    )
    group.add_argument("--max-question-chars", type=whole_number, default=2000, metavar="N", help="(default 2000)")
    group.add_argument(
        "--batch-wait-ms",
        type=_milliseconds,
        default=10.0,
        metavar="MS",
        help="how long a question waits for others to be answered with (default 10); --batch-size is how many",
    )


def run(arguments: argparse.Namespace) -> int:
    """Serve until SIGTERM or Ctrl-C.

    Args:
        arguments: The parsed options.

    Returns:
        0, after SIGTERM.
    """
    # First what can be wrong at once: the extra, the options, the port. The model comes last.
    from adaptllm_chain.cli.chain_loading import choose_policy, open_chain
    from adaptllm_chain.cli.console import note
    from adaptllm_chain.cli.model_loading import check_adapter
    from adaptllm_chain.serve import ServerSettings, create_app
    from adaptllm_chain.serve.running import address_of, listen, run_app

    choose_policy(arguments)
    settings = ServerSettings(
        model=arguments.model,
        adapter=check_adapter(arguments),
        api_key=_key(arguments),
        max_concurrency=arguments.max_concurrency,
        max_question_chars=arguments.max_question_chars,
        batch_size=arguments.batch_size,
        batch_wait_ms=arguments.batch_wait_ms,
    )
    with listen(arguments.host, arguments.port) as listener:
        chain = open_chain(arguments)
        app = create_app(chain, replace(settings, passages=_count_passages(chain)))
        if settings.api_key is None and arguments.host not in _LOCAL_HOSTS:
            note(f"whoever reaches {arguments.host} may ask: --api-key, or {KEY_VARIABLE}, keeps others out")
        run_app(app, listener, lambda: note(f"serving on {address_of(listener)} (Ctrl-C stops)"))
    note("adaptllm: stopped")
    return 0


def _key(arguments: argparse.Namespace) -> str | None:
    # An empty variable is how a shell unsets one for a command; an empty option is a mistake, and refused.
    given: str | None = arguments.api_key
    return given if given is not None else os.environ.get(KEY_VARIABLE) or None


def _count_passages(chain: AdaptiveRetrievalChain) -> int | None:
    store = getattr(chain.retriever, "vectorstore", None)
    return len(store) if isinstance(store, Sized) else None


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > _LAST_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: a number from 0 to {_LAST_PORT}")
    return int(text)


def _milliseconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or number < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of milliseconds, 0 or more")
    return number
