"""How the commands of training/ end: an error of the input is said in its own words, without a traceback."""

from __future__ import annotations

import sys
from collections.abc import Callable

from adaptllm_chain.cli.hints import in_options
from adaptllm_chain.errors import AdaptLLMError

OK = 0
INPUT_AT_FAULT = 2


def exit_code(command: str, work: Callable[[], None]) -> int:
    """Do a command's work and say how it ended.

    Args:
        command: Its name, which stands before an error.
        work: What it does.

    Returns:
        0, or 2 where the input was at fault; the error then stands on stderr.
    """
    try:
        work()
    except AdaptLLMError as error:
        print(f"{command}: {in_options(error)}", file=sys.stderr)
        return INPUT_AT_FAULT
    except OSError as error:
        print(f"{command}: {error}", file=sys.stderr)
        return INPUT_AT_FAULT
    return OK
