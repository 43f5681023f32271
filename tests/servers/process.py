"""Real model servers as processes: started, asked whether they are up, killed, and started again at one address."""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

from tests.conftest import ROOT

# A server lives no longer, so whoever waits for it cannot wait forever either. On an idle machine it is up in 10 s.
LIFETIME_S = 900
_QUIET = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "OMP_NUM_THREADS": "1"}


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """A server that speaks OpenAI's protocol.

    Args:
        command: Makes the command of a port.
        log: The file for what it prints.
        up: The path that answers once it is ready.
        environment: Variables for it alone.
    """

    def __init__(
        self,
        command: Callable[[int], list[str]],
        log: Path,
        *,
        up: str,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.log, self.port = log, free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self._command = command(self.port)
        self._up = f"http://127.0.0.1:{self.port}{up}"
        self._environment = os.environ | _QUIET | (environment or {})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def start(self) -> None:
        with self.log.open("wb") as log:
            # A group of its own: vLLM has children.
            self.process = subprocess.Popen(
                self._command, stdout=log, stderr=log, cwd=ROOT, env=self._environment, start_new_session=True
            )
        watchdog = threading.Timer(LIFETIME_S, _kill_group, [self.process])
        watchdog.daemon = True
        watchdog.start()
        while not self._is_up():
            assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.1)

    def _is_up(self) -> bool:
        try:
            with urllib.request.urlopen(self._up, timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def kill(self) -> None:
        if self.process is not None:
            _kill_group(self.process)
            self.process.wait()

    def asked(self) -> int:
        """Prompts that it was sent since its start."""
        return self.log.read_text().count('"POST /v1/chat/completions')


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)


def transformers_serve(model: Path, log: Path) -> Server:
    """``transformers serve`` of this environment, in float32 on the CPU."""

    def command(port: int) -> list[str]:
        serve = [sys.executable, "-m", "transformers.cli.transformers", "serve", str(model), "--host", "127.0.0.1"]
        return [*serve, "--port", str(port), "--device", "cpu", "--dtype", "float32"]

    return Server(command, log, up="/health")


def llama_cpp(python: Path, model: Path, log: Path, *, lora: Path | None = None) -> Server:
    """The server of llama-cpp-python, in the environment of that Python."""

    def command(port: int) -> list[str]:
        # Log-probabilities need the logits of every position, 200 kB each, which it keeps by default. A request that
        # comes in does not break off the stream of another one.
        options = ["--n_ctx", "1024", "--n_threads", "1", "--n_threads_batch", "1", "--interrupt_requests", "false"]
        serve = [str(python), "-m", "llama_cpp.server", "--model", str(model), "--host", "127.0.0.1"]
        serve += ["--port", str(port), *options]
        return serve + (["--lora_path", str(lora)] if lora else [])

    return Server(command, log, up="/v1/models")


def vllm(python: Path, command: str, log: Path) -> Server:
    """vLLM on the CPU, by a command as ``adaptllm export --to vllm`` writes it, in the environment of that Python."""

    def on_port(port: int) -> list[str]:
        _, _, base, *rest = shlex.split(command)
        # The CPU build's own command `vllm` looks for a package of that name, and finds none.
        serve = [str(python), "-m", "vllm.entrypoints.openai.api_server", "--model", base, *rest, "--host", "127.0.0.1"]
        return [*serve, "--port", str(port), "--dtype", "float32", "--max-model-len", "1024", "--enforce-eager"]

    environment = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "VLLM_NO_USAGE_STATS": "1"}
    return Server(on_port, log, up="/health", environment=environment)
