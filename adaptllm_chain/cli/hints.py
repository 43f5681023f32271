"""Hints of the library in the words of the command line."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from adaptllm_chain.errors import AdaptLLMError

# The library's hints name its arguments; here they are options.
_OPTION_OF: Sequence[tuple[str, str | Callable[[re.Match[str]], str]]] = (
    (r"build_index\(documents, embedding, out_dir\), or `store\.save\(folder\)`.*", "adaptllm index PATH… --out DIR"),
    (r"pass that embedder", "--embeddings with that embedder"),
    (r"resume=False", "--restart"),
    (r"out_dir", "--out"),
    (r"columns=\{'(\w+)': '([^']*)'\}", r"--column \1='\2'"),
    (r'columns=\{"(\w+)": "([^"]*)".*\}', r"--column \1=\2"),
    (r'on_cut="keep"', "--on-cut keep"),
    (r'on_(bad_row|unanswerable)="skip"', lambda found: f"--on-{found[1].replace('_', '-')} skip"),
    (r'format="(\w+)"', r"--format \1"),
    (r"(; |,? or )?load_data_set\(.*", ""),
    (r"encoding='([^']*)'", r"--encoding \1"),
)
_EXPECTED_OF = ((r"FaissPassageStore\.save or build_index wrote", "`adaptllm index` made"),)


def in_options(error: AdaptLLMError) -> str:
    """Say an error of the library as the command line says it.

    Args:
        error: The error.

    Returns:
        Its text, with options where the library names arguments.
    """
    return str(
        AdaptLLMError(error.problem, expected=_said(error.expected, _EXPECTED_OF), hint=_said(error.hint, _OPTION_OF))
    )


def _said(text: str | None, pairs: Sequence[tuple[str, str | Callable[[re.Match[str]], str]]]) -> str | None:
    for library, option in pairs if text is not None else ():
        text = re.sub(library, option, text or "")
    return text
