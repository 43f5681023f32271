"""The two channels of a command: results on stdout, everything else on stderr."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

# On a terminal a bar moves; in a log every step of it is a line.
_SECONDS_ON_TERMINAL = 0.2
_SECONDS_IN_LOG = 15.0


def note(text: str) -> None:
    """Tell the user something that is no result.

    Args:
        text: A line.
    """
    print(text, file=sys.stderr, flush=True)


def tolerate_odd_characters() -> None:
    """Print what the terminal's encoding lacks as a question mark, instead of failing over one letter."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


@contextmanager
def stdout_kept_clean() -> Iterator[None]:
    """Send what libraries print while they load to stderr: stdout may be read by a program.

    Yields:
        Nothing.
    """
    with redirect_stdout(sys.stderr):
        yield


def progress_bar(unit: str, *, total: int | None = None, hidden: bool = False) -> Any:
    """Make a progress bar on stderr.

    Args:
        unit: What is counted.
        total: How many there are, if that is known.
        hidden: Whether to show nothing.

    Returns:
        A ``tqdm`` bar, to be used in a ``with`` statement.
    """
    from tqdm import tqdm

    pause = _SECONDS_ON_TERMINAL if sys.stderr.isatty() else _SECONDS_IN_LOG
    return tqdm(
        total=total,
        unit=f" {unit}",
        file=sys.stderr,
        disable=hidden,
        mininterval=pause,
        dynamic_ncols=True,
        leave=False,
    )
