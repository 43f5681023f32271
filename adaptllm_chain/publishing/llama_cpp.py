"""llama.cpp's own converters to GGUF, run as they are; none of them is copied into this package."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from adaptllm_chain.errors import InvalidInputError, MissingExtraError

OutType = Literal["f32", "f16", "bf16", "q8_0"]

VARIABLE = "LLAMA_CPP_DIR"
_MODEL_SCRIPT = "convert_hf_to_gguf.py"
_ADAPTER_SCRIPT = "convert_lora_to_gguf.py"
# The sdist of llama-cpp-python holds llama.cpp in its folder vendor/, and comes from PyPI. Not `--no-binary :all:`:
# that would build cmake and ninja from source too.
_HOW = (
    "git clone --depth 1 https://github.com/ggml-org/llama.cpp, or without git: pip download --no-deps --no-binary "
    "llama-cpp-python llama-cpp-python==0.3.36 && tar xzf llama_cpp_python-0.3.36.tar.gz; then --llama-cpp "
    "llama_cpp_python-0.3.36/vendor/llama.cpp"
)
_NEEDED = "pip install gguf sentencepiece"
_LINES_SHOWN = 5


@dataclass(frozen=True, slots=True)
class LlamaCpp:
    """A checkout of llama.cpp.

    Attributes:
        folder: Where its converters lie.
    """

    folder: Path

    @classmethod
    def find(cls, folder: str | Path | None = None) -> LlamaCpp:
        """Find llama.cpp.

        Args:
            folder: Where it is; by default where the variable ``LLAMA_CPP_DIR`` says.

        Returns:
            The checkout.

        Raises:
            MissingExtraError: If it is nowhere.
        """
        place = folder or os.environ.get(VARIABLE)
        if not place:
            raise MissingExtraError(
                "llama.cpp's converter to GGUF was not named",
                expected=f"--llama-cpp DIR, or the variable {VARIABLE}: a folder with {_MODEL_SCRIPT}",
                hint=_HOW,
            )
        missing = [name for name in (_MODEL_SCRIPT, _ADAPTER_SCRIPT) if not (Path(place) / name).is_file()]
        if missing:
            raise MissingExtraError(
                f"{str(place)!r} holds no {' and no '.join(missing)}", expected="a checkout of llama.cpp", hint=_HOW
            )
        return cls(Path(place).resolve())

    def model(self, folder: Path, file: Path, outtype: OutType) -> Path:
        """Convert a model.

        Args:
            folder: A folder as transformers writes it.
            file: The GGUF file to write.
            outtype: The type of its weights.

        Returns:
            ``file``.
        """
        return self._run(_MODEL_SCRIPT, file, outtype, str(folder), "--model-name", file.stem)

    def adapter(self, adapter: Path, base: Path, file: Path, outtype: OutType) -> Path:
        """Convert an adapter.

        Args:
            adapter: Its folder.
            base: A folder with the configuration of its base.
            file: The GGUF file to write.
            outtype: The type of its weights.

        Returns:
            ``file``.
        """
        return self._run(_ADAPTER_SCRIPT, file, outtype, "--base", str(base), str(adapter))

    def _run(self, script: str, file: Path, outtype: OutType, *arguments: str) -> Path:
        command = [sys.executable, str(self.folder / script), "--outfile", str(file), "--outtype", outtype, *arguments]
        ran = subprocess.run(  # noqa: S603 - the user names the checkout
            command, capture_output=True, text=True, errors="replace", check=False, cwd=self.folder
        )
        if ran.returncode != 0 or not file.is_file():
            said = [line for line in (ran.stderr or ran.stdout).splitlines() if line.strip()][-_LINES_SHOWN:]
            raise InvalidInputError(
                f"{script} failed with code {ran.returncode}:\n    " + "\n    ".join(said),
                expected="a model that llama.cpp knows, and the packages that its converter imports",
                hint=f"{_NEEDED}; a newer checkout of llama.cpp for a newer model",
            )
        return file
