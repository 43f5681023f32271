"""Options that several commands share. Nothing heavy is imported here: ``--help`` must answer at once."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Literal

from adaptllm_chain.llms.embedded import EMBEDDED

NONE = "none"
MODES = ("never_retrieve", "always_retrieve", "adaptive", "popularity")
SUITES = ("paper", "agree")
ON_EMPTY = ("answer", "abstain", "raise")
LOAD_IN = ("8bit", "4bit")
DTYPES = ("auto", "float32", "bfloat16", "float16")

Threshold = float | Literal["none"]


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Add what says which model answers, and how it is run.

    Args:
        parser: The parser of a command.
    """
    group = parser.add_argument_group("the model")
    group.add_argument(
        "--model",
        default=EMBEDDED,
        metavar="M",
        help="'embedded' (SmolLM2-135M-Instruct, the default), a .gguf file, a folder, or a name on the hub",
    )
    group.add_argument(
        "--adapter",
        metavar="A",
        help="a folder or a name on the hub, 'none', or 'embedded': the one that is shipped for the embedded model, "
        "and its default",
    )
    group.add_argument("--device", default="auto", help="auto (a GPU if there is one), cpu, cuda, cuda:1, mps")
    group.add_argument("--dtype", default="auto", choices=DTYPES, help="auto: float32 on a CPU, bfloat16 on a GPU")
    group.add_argument("--load-in", choices=LOAD_IN, help="quantise the model (an NVIDIA GPU and the extra 'gpu')")
    group.add_argument("--max-new-tokens", type=whole_number, metavar="N", help="the most tokens of an answer")
    group.add_argument(
        "--batch-size",
        type=whole_number,
        default=8,
        metavar="N",
        help="questions that are answered together (default 8); each batch is printed when it is done",
    )


def add_index_options(parser: argparse.ArgumentParser) -> None:
    """Add what says which passages are searched.

    Args:
        parser: The parser of a command.
    """
    parser.add_argument(
        "--index", type=Path, metavar="DIR", help="what `adaptllm index` made; by default the articles of the demo"
    )
    parser.add_argument(
        "--embeddings",
        metavar="E",
        help="the embedder of the index, if it no longer lies where the index says (default: what the index says)",
    )


def add_mode_options(parser: argparse.ArgumentParser) -> None:
    """Add what decides between memory and retrieval.

    Args:
        parser: The parser of a command.
    """
    parser.add_argument(
        "--mode", default="adaptive", choices=MODES, help="what decides whether to retrieve (default: adaptive)"
    )
    parser.add_argument(
        "--popularity",
        type=float,
        metavar="P",
        help="with --mode popularity: how popular the subject is, such as its monthly page views; "
        "used for every question that does not bring its own",
    )


def add_decision_options(parser: argparse.ArgumentParser) -> None:
    """Add the settings of the decision, and of what happens after it.

    Args:
        parser: The parser of a command.
    """
    group = parser.add_argument_group("the decision")
    group.add_argument(
        "--threshold",
        type=threshold,
        metavar="T",
        help="adaptive: retrieve from this P(<RET>) on, or 'none' to retrieve if the output is <RET>; by default what "
        "was saved with the adapter. popularity: answer from memory from this popularity on",
    )
    group.add_argument(
        "--k", type=whole_number, default=1, metavar="K", help="passages for a question (default 1, as in the paper)"
    )
    group.add_argument(
        "--on-empty",
        choices=ON_EMPTY,
        default="answer",
        help="when retrieval brings nothing: answer from memory, abstain, or report an error (default: answer)",
    )


def whole_number(text: str) -> int:
    """Read a whole number of 1 or more.

    Args:
        text: What was typed.

    Returns:
        The number.

    Raises:
        ArgumentTypeError: If it is something else.
    """
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 1 or more")
    return int(text)


def threshold(text: str) -> Threshold:
    """Read a threshold.

    Args:
        text: What was typed.

    Returns:
        The number, or ``"none"``.

    Raises:
        ArgumentTypeError: If it is something else.
    """
    if text == NONE:
        return "none"
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or number < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number of 0 or more nor 'none'")
    return number
