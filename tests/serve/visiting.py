"""What the visitors of the page find, and what they do there."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.documents import Document
from langchain_core.outputs import GenerationChunk
from pydantic import Field

from adaptllm_chain.chain import AdaptiveRetrievalChain
from adaptllm_chain.ret import Adaptive
from adaptllm_chain.testing import Reply, ScriptedLLM
from tests.serve.chromium import Page
from tests.serve.scenes import RetrieverOfK, make_app

ATTACK = "<img src=x onerror=\"document.title='hacked'\"><b>bold</b>"
ENDLESS = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft" * 2
# P(<RET>) by a word of the question: those of case D1, and what is known less well.
SURE, SO_SO, LOST = "Hamlet", "week", "Falkirk"
KNOWN = {SURE: 0.05, SO_SO: 0.3, LOST: 0.9, "Japan": 0.05}
PASSAGES = [
    Document("# Falkirk Wheel\n\nA 🚤 lift 🚤 in Scotland, opened in 2002.", metadata={"title": "Falkirk Wheel"}),
    Document(f"{ATTACK} {ENDLESS}", metadata={"title": ATTACK, "score": 0.5}),
]


class PausingLLM(ScriptedLLM):
    """Stops in the middle of an answer to a question that is to be answered slowly, until it may go on."""

    gate: threading.Event = Field(default_factory=threading.Event, exclude=True)

    def _stream(
        self,
        prompt: str,
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[GenerationChunk]:
        for chunk in super()._stream(prompt, stop, run_manager, **kwargs):
            yield chunk
            if "slowly" in prompt:
                self.gate.wait(60)


def reply(prompt: str) -> Reply:
    """Know three questions of different P(<RET>); repeat HTML; report nothing of the others."""
    if "given the context" in prompt:
        return Reply("It was 2002.")
    if "bold" in prompt:
        return Reply(f"{ATTACK} {ENDLESS}", info={"ret_probability": 0.0})
    if "broken" in prompt:
        raise RuntimeError("out of memory at 0x7f")
    probability = next((value for word, value in KNOWN.items() if word in prompt), None)
    if probability is None:
        return Reply("perhaps seven or eight")
    info = {"ret_probability": probability, "ret_probability_kind": "exact"}
    asks = probability > 0.5 and "need help" in prompt
    return Reply("<RET>" if asks else "William Shakespeare, in 1600", info=info)


def scripted_app(llm: ScriptedLLM, **settings: Any) -> FastAPI:
    """Make the real service, on a scripted model."""
    chain = AdaptiveRetrievalChain(
        llm=llm, retriever=RetrieverOfK(documents=PASSAGES, k=2), policy=Adaptive(threshold=0.5)
    )
    return make_app(chain, model="scripted", passages=len(PASSAGES), **settings)


def enter(page: Page, url: str, **how: Any) -> None:
    """Open the page, and wait until it is ready."""
    page.open(url, **how)
    page.wait("!document.getElementById('ask').disabled")


def ask(page: Page, question: str) -> None:
    """Ask, and wait for the end of the answer."""
    page.js("document.getElementById('question').focus()")
    page.type(question)
    page.press("Enter")
    page.wait_text("#latest .asked", question)
    finish(page)


def set_threshold(page: Page, threshold: str) -> None:
    """Type a threshold over the one that is there."""
    page.js("document.getElementById('threshold').select()")
    page.type(threshold)


def finish(page: Page) -> None:
    """Wait until no question is being answered."""
    page.wait("document.getElementById('stop').hidden")


def place(page: Page, selector: str) -> float:
    """Where the middle of a mark stands on the gauge, from 0 to 1."""
    at: float = page.js(
        f"(() => {{ const mark = document.querySelector({json.dumps(selector)});"
        "const [m, t] = [mark, mark.parentElement].map(e => e.getBoundingClientRect());"
        "return (m.x + m.width / 2 - t.x) / t.width; })()"
    )
    return at


def module(name: str, expression: str) -> str:
    """JavaScript that evaluates an expression of a module of the page, which it calls ``it``."""
    return f"import(new URL('page/{name}', location)).then(it => {expression})"


def told(*events: tuple[str, Any]) -> str:
    """What a server streams to tell of these events."""
    return "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in events)


# A colour in any notation, as the browser paints it over another.
RGB = """((colour, under = "#fff") => {
    const paper = new OffscreenCanvas(1, 1).getContext("2d");
    for (const style of [under, colour]) { paper.fillStyle = style; paper.fillRect(0, 0, 1, 1); }
    return Array.from(paper.getImageData(0, 0, 1, 1).data.slice(0, 3));
})"""

# The texts that stand out from what is behind them by less than 4.5 to 1 (WCAG 2.2, criterion 1.4.3, AA).
FAINT = f"""(() => {{
    const rgb = {RGB};
    const light = (rgb) => rgb.map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    const behind = (e) => {{
        const under = e.parentElement ? behind(e.parentElement) : "#fff";
        return `rgb(${{rgb(getComputedStyle(e).backgroundColor, under)}})`;
    }};
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const faint = [];
    while (texts.nextNode()) {{
        const e = texts.currentNode.parentElement;
        if (!texts.currentNode.data.trim() || !e.checkVisibility()) continue;
        if (e.closest(":disabled, .unseen, noscript")) continue;
        const under = behind(e);
        const [a, b] = [light(rgb(getComputedStyle(e).color, under)), light(rgb(under))].sort((x, y) => y - x);
        if ((a + 0.05) / (b + 0.05) < 4.5) faint.push(`${{texts.currentNode.data}}: ${{(a + 0.05) / (b + 0.05)}}`);
    }}
    return faint;
}})()"""
