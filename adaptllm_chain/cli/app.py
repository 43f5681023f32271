"""The command ``adaptllm``: one parser, one table of commands, one place where errors become exit codes."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

from adaptllm_chain.cli import ask, calibrate, demo, doctor, evaluate, export, index, push, report, serve, stats
from adaptllm_chain.cli.console import note, tolerate_odd_characters
from adaptllm_chain.cli.hints import in_options
from adaptllm_chain.errors import AdaptLLMError

# Each is a module with `add_parser(subparsers)` and `run(arguments) -> int`.
COMMANDS = (ask, serve, index, demo, evaluate, report, calibrate, stats, export, push, doctor)

FAILED = 2
# As the shell reports a program that was ended by SIGINT or SIGPIPE.
INTERRUPTED = 130
PIPE_CLOSED = 141


class _Version(argparse.Action):
    """Looks the version up only when it is asked for."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, help=options.get("help"))

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import PackageNotFoundError, version

        try:
            print("adaptllm", version("adaptllm-chain"))
        except PackageNotFoundError:
            print("adaptllm, run from a folder that is not installed")
        parser.exit()


def make_parser() -> argparse.ArgumentParser:
    """Make the parser of all commands, without loading what they use.

    Returns:
        The parser; what it parses has ``run``, the function of the command.
    """
    parser = argparse.ArgumentParser(
        prog="adaptllm",
        description="Answers questions with a language model that retrieves only when it asks to (Adapt-LLM).",
    )
    parser.add_argument("--version", action=_Version, help="show the version and exit")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_parser(subparsers)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        argv: The arguments; by default those of the process.

    Returns:
        The exit code: 0 for success, 1 if some of the work failed, 2 for an error or wrong usage,
        130 after Ctrl-C, 141 if the reader of the output has gone.
    """
    tolerate_odd_characters()
    arguments = make_parser().parse_args(argv)
    try:
        code = int(arguments.run(arguments))
        sys.stdout.flush()
    except AdaptLLMError as error:
        note(f"adaptllm: {in_options(error)}")
        return FAILED
    except KeyboardInterrupt:
        note("\nadaptllm: stopped")
        return INTERRUPTED
    except BrokenPipeError:
        # Python flushes stdout once more at exit, and would complain there.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        note(f"adaptllm: {where}{error.strerror or error}")
        return FAILED
    return code
