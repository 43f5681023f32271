"""The command line with stand-ins, whose model answers when a file is there: ``python -m tests.serve.held_stand_in``.

The file is named by the environment variable ``ANSWER_WHEN_THERE``.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from adaptllm_chain.testing import Reply
from tests.cli import stand_ins


def reply_when_there(prompt: str) -> Reply:
    while not Path(os.environ["ANSWER_WHEN_THERE"]).exists():
        time.sleep(0.02)
    return stand_ins.reply(prompt)


if __name__ == "__main__":
    from adaptllm_chain.cli import main

    stand_ins.stand_in(setattr).script = reply_when_there
    sys.exit(main())
