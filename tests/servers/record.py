"""Record what a server says, for ``replay.py``.

    python -m tests.servers.record chat --base-url http://127.0.0.1:8000/v1 --model M --source "vLLM 0.32.0" --out NAME
    python -m tests.servers.record completions … --extra '{"logprob_token_ids": [44]}'

Two questions are asked, one that SmolLM2 with the shipped adapter answers from memory and one that it asks
retrieval for, each as a whole and as a stream; and the second once more with a passage.
"""

from __future__ import annotations

import argparse
import json
import urllib.request
from collections.abc import Iterator, Sequence
from typing import Any

from langchain_core.documents import Document

from adaptllm_chain.prompts import PromptTemplates
from tests.servers.replay import FOLDER

KNOWN, UNKNOWN = "What is the capital of France?", "When was the Falkirk Wheel opened?"
PASSAGE = Document(page_content="The Falkirk Wheel, a rotating boat lift, was opened in 2002.")
_TEMPLATES = PromptTemplates()
# What tells the three prompts apart, the context prompt first: it holds the question as well.
PROMPTS = {
    "given the context C": _TEMPLATES.render("context", UNKNOWN, [PASSAGE]),
    UNKNOWN: _TEMPLATES.render("parametric", UNKNOWN),
    KNOWN: _TEMPLATES.render("parametric", KNOWN),
}
_LISTED, _TOKENS = 5, 8


def smollm2_chat(instruction: str) -> str:
    """Frame an instruction as the chat template of SmolLM2 does, for the completions of its servers."""
    system = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
    return f"<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\n{instruction}<|im_end|>\n<|im_start|>assistant\n"


def _request(arguments: argparse.Namespace, instruction: str, *, stream: bool) -> urllib.request.Request:
    asked = {"model": arguments.model, "max_tokens": _TOKENS, "temperature": 0, "stream": stream}
    if arguments.kind == "chat":
        path = "/chat/completions"
        asked |= {"messages": [{"role": "user", "content": instruction}], "logprobs": True, "top_logprobs": _LISTED}
    else:
        path = "/completions"
        asked |= {"prompt": smollm2_chat(instruction), "logprobs": _LISTED}
    body = json.dumps(asked | json.loads(arguments.extra)).encode()
    return urllib.request.Request(arguments.base_url + path, body, {"Content-Type": "application/json"})


def _ask(arguments: argparse.Namespace, instruction: str) -> dict[str, Any]:
    with urllib.request.urlopen(_request(arguments, instruction, stream=False)) as reply:
        body = json.load(reply)
    with urllib.request.urlopen(_request(arguments, instruction, stream=True)) as reply:
        return {"body": body, "events": list(_events(reply))}


def _events(lines: Iterator[bytes]) -> Iterator[dict[str, Any]]:
    for line in lines:
        data = line.decode().strip().removeprefix("data:").strip()
        if line.startswith(b"data:") and data != "[DONE]":
            yield json.loads(data)


def main(argv: Sequence[str] | None = None) -> int:
    """Ask, and write the recording."""
    parser = argparse.ArgumentParser(description="Record what a server says.")
    parser.add_argument("kind", choices=("chat", "completions"))
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--source", required=True, help="what is recorded: server, version, model, date")
    parser.add_argument("--extra", default="{}", help="further fields of the requests, as JSON")
    parser.add_argument("--out", required=True, help="the name of the recording")
    arguments = parser.parse_args(argv)
    exchanges = [{"asked": asked, **_ask(arguments, prompt)} for asked, prompt in PROMPTS.items()]
    FOLDER.mkdir(exist_ok=True)
    text = json.dumps({"source": arguments.source, "exchanges": exchanges}, ensure_ascii=False, indent=1)
    (FOLDER / f"{arguments.out}.json").write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
