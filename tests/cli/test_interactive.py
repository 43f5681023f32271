from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.conftest import Run

pty = pytest.importorskip("pty", reason="no pseudo-terminals here")


class Terminal:
    """A person at ``adaptllm ask``."""

    def __init__(self, *arguments: str, stdout: int | None = None) -> None:
        self.master, slave = pty.openpty()
        # Its own session: Ctrl-C goes to the process alone.
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.cli.stand_ins", "ask", *arguments],
            stdin=slave,
            stdout=slave if stdout is None else stdout,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self.seen = ""

    def wait_for(self, text: str, *, interrupting: bool = False) -> str:
        deadline = time.monotonic() + 40
        while text not in self.seen:
            assert time.monotonic() < deadline, self.seen
            if interrupting:
                # Again and again: one that comes before readline listens is noticed at the next key only.
                self.process.send_signal(signal.SIGINT)
            if not select.select([self.master], [], [], 0.5)[0]:
                continue
            try:
                self.seen += os.read(self.master, 4096).decode().replace("\r\n", "\n")
            except OSError:  # how Linux says that the other side is closed
                break
        assert text in self.seen
        before, _, self.seen = self.seen.partition(text)
        return before

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def end(self) -> int:
        try:
            return self.process.wait(timeout=30)
        finally:
            self.process.kill()
            os.close(self.master)


def test_conversation(index: Path) -> None:
    terminal = Terminal("--index", str(index))
    terminal.wait_for("Q  ")
    terminal.type("What is the capital of France?\n")
    assert "direct by token" in terminal.wait_for("A  Paris")
    terminal.wait_for("Q  ")
    terminal.type("Who built the mill at Lindow?\n")
    told = terminal.wait_for("A  according to: ")
    assert "retrieve by token" in told
    assert "[The mill at Lindow]" in told
    assert "<R" not in told
    terminal.wait_for("Q  ")
    terminal.type("this is too long\n")
    terminal.wait_for("ValueError: the prompt is too long")
    terminal.wait_for("Q  ")
    terminal.type("answer very slowly\n")
    time.sleep(0.3)
    terminal.process.send_signal(signal.SIGINT)
    terminal.wait_for("stopped")
    terminal.wait_for("Q  ")
    terminal.type("\x04")
    terminal.wait_for("1 of 2 retrievals saved")
    assert terminal.end() == 0


def test_ctrl_c_at_the_prompt(index: Path) -> None:
    terminal = Terminal("--index", str(index), "--mode", "never_retrieve")
    terminal.wait_for("Q  ")
    terminal.wait_for("adaptllm: stopped", interrupting=True)
    assert terminal.end() == 130


def test_json_to_a_file(index: Path, tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as out:
        terminal = Terminal("--index", str(index), "--json", stdout=out.fileno())
        terminal.wait_for("Q  ")
        terminal.type("What is the capital of France?\n")
        terminal.wait_for("Q  ")
        terminal.type("exit\n")
        assert terminal.end() == 0
    assert (tmp_path / "out").read_text().startswith('{"input": "What is the capital of France?", ')


def test_popularity_must_be_given(index: Path, run: Run) -> None:
    terminal = Terminal("--index", str(index), "--mode", "popularity", "--threshold", "9")
    terminal.wait_for("how popular the subject")
    assert terminal.end() == 2
