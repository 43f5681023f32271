"""The page, used in a real browser as a visitor uses it, against the real service with a scripted model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore

from adaptllm_chain.chain import AdaptiveRetrievalChain
from adaptllm_chain.cli.bundled import QUESTIONS
from adaptllm_chain.records import RetSignal
from adaptllm_chain.reporting.palette import DAY, NIGHT
from adaptllm_chain.ret import Adaptive
from adaptllm_chain.ret.policies import Evidence
from adaptllm_chain.testing import CountingRetriever
from tests.serve.chromium import Page, find_chromium, visit
from tests.serve.scenes import make_app, served
from tests.serve.visiting import (
    ATTACK,
    ENDLESS,
    FAINT,
    LOST,
    PASSAGES,
    RGB,
    SO_SO,
    SURE,
    PausingLLM,
    ask,
    enter,
    finish,
    module,
    place,
    reply,
    scripted_app,
    set_threshold,
    told,
)

CHROMIUM = find_chromium()
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium or Chrome on the PATH (apt-get install chromium)")

KEY = "s3cret"


@pytest.fixture(scope="module")
def llm() -> PausingLLM:
    return PausingLLM(script=reply)


@pytest.fixture(scope="module")
def url(llm: PausingLLM) -> Iterator[str]:
    with served(scripted_app(llm, max_question_chars=200)) as address:
        yield f"{address}/"
        # A test that failed may have left an answer waiting, and the server ends with the last answer.
        llm.gate.set()


@pytest.fixture(scope="module")
def tab() -> Iterator[Page]:
    assert CHROMIUM is not None
    with visit(CHROMIUM) as page:
        yield page


@pytest.fixture
def page(tab: Page, url: str) -> Iterator[Page]:
    """The page as it is when it was just opened; afterwards, what no visit may have done."""
    enter(tab, url)
    yield tab
    assert_well_behaved(tab, url)


def assert_well_behaved(page: Page, url: str) -> None:
    assert page.requested()
    assert [address for address in page.requested() if not address.startswith(url)] == []
    # Of a request that is refused, the browser makes a note itself.
    assert [
        text for text in page.complaints() if not (text.startswith("Failed to load") and text.endswith("/ask"))
    ] == []


def test_an_answer_streams_with_its_decision_before_it(page: Page, llm: PausingLLM) -> None:
    llm.gate.clear()
    page.type(f"Who wrote {SURE}, slowly?")
    page.press("Enter")
    page.wait_text("#latest .answer", "William")
    assert page.text("#latest .answer") == "William"
    assert page.text("#heard-decision") == "From memory. P(RET) = 0.05, threshold 0.5."
    assert page.text("#heard-answer") == ""
    assert page.js("document.querySelector('.turn').getAttribute('aria-busy')") == "true"
    label = page.js("document.querySelector('.gauge').getAttribute('aria-label')")
    assert label == "P(RET) = 0.05, threshold 0.5: From memory"
    assert place(page, "#latest .needle") == pytest.approx(0.05, abs=0.01)
    assert place(page, "#latest .cut") == pytest.approx(0.5, abs=0.01)
    assert page.js("document.getAnimations().length") == 0, "the visitor wants no motion"
    llm.gate.set()
    page.wait_text("#heard-answer", "Answer: William Shakespeare, in 1600")
    assert page.text("#latest .answer") == "William Shakespeare, in 1600"
    assert page.js("document.querySelector('.turn').getAttribute('aria-busy')") == "false"
    assert page.text("#latest .badge") == "From memory"


def test_a_retrieved_answer_shows_what_was_read_and_where_the_answer_stands(page: Page) -> None:
    ask(page, f"When was the {LOST} Wheel opened?")
    assert page.text("#latest .badge") == "Retrieved"
    assert page.text("#latest .answer") == "It was 2002."
    assert place(page, "#latest .needle") == pytest.approx(0.9, abs=0.01)
    assert page.texts(".passages .title") == ["Falkirk Wheel", ATTACK]
    # Two characters before the mark are pairs in UTF-16; the heading, which repeats the title, is left out.
    assert page.texts("mark") == ["2002"]
    assert page.text(".passages li p") == "A 🚤 lift 🚤 in Scotland, opened in 2002."
    assert page.texts(".passages details[open] .title") == ["Falkirk Wheel"]
    page.js("document.getElementById('k').select()")
    page.type("1")
    ask(page, f"How tall is the {LOST} Wheel?")
    assert page.texts("#latest .title") == ["Falkirk Wheel"]


def test_moving_the_threshold_says_what_would_change(page: Page) -> None:
    questions = [f"Who wrote {SURE}?", f"How many days are in a {SO_SO}?", f"When was the {LOST} Wheel opened?"]
    for question in questions:
        ask(page, question)
    assert page.text("#taken") == "So far1 of 3 retrieved"
    # Case D1, for .9, .3 and .05; a cut is reached by what equals it.
    for threshold, retrieved, changed in (
        ("0.2", 2, [SO_SO]),
        ("0.3", 2, [SO_SO]),
        ("0.95", 0, [LOST]),
        ("0", 3, [SURE, SO_SO]),
    ):
        set_threshold(page, threshold)
        assert page.text("#would b") == f"{retrieved} of 3 would be retrieved"
        assert page.text("#taken b") == "1 of 3 retrieved"
        asked = page.texts("[data-changes] .asked")
        assert sorted(asked) == sorted(question for question in questions if any(word in question for word in changed))
        assert page.count(".dot[data-route=retrieve]") == retrieved
        assert page.count(".dot.changed") == len(changed)
    assert page.js("document.getElementById('slider').getAttribute('aria-valuetext')") == "0: 3 of 3 would be retrieved"
    assert place(page, "#latest .ghost") == pytest.approx(0, abs=0.01)
    set_threshold(page, "0.2")
    assert page.text(".change:not([hidden])").startswith("At a threshold of 0.2 this would be retrieved.")
    page.click(".change:not([hidden]) button")
    page.wait_text("#latest .asked", SO_SO)
    finish(page)
    assert page.text("#latest .badge") == "Retrieved"
    assert page.text("#taken b") == "2 of 4 retrieved"
    # Newest first; the card that was asked again offers it no more.
    assert page.texts(".asked") == [questions[1], *reversed(questions)]
    assert page.count(".again") == 0


def test_modes_and_the_model_s_own_word(page: Page) -> None:
    ask(page, f"When was the {LOST} Wheel opened?")
    page.js("document.querySelector('[value=never_retrieve]').click()")
    assert page.text("#would b") == "0 of 1 would be retrieved"
    assert page.text(".change span") == "With “Never” this would be answered from memory."
    page.click(".change button")
    page.wait_text("#taken b", "1 of 2 retrieved")
    finish(page)
    assert page.text("#latest .label.above") == "P(RET) unknown"
    assert page.count("#latest .needle, #latest .bound") == 0
    page.js("document.querySelector('[value=adaptive]').click()")
    set_threshold(page, "0.4")
    assert page.text("#would b") == "1 of 1 would be retrieved, 1 unknown"
    page.js("document.querySelector('[value=token]').click()")
    assert page.text("#would b") == "unknown for all 2"
    ask(page, f"What is at {LOST}?")
    assert (
        page.js("document.querySelector('.gauge').getAttribute('aria-label')")
        == "P(RET) = 0.9, no threshold: Retrieved"
    )
    assert page.text("#would b") == "1 of 1 would be retrieved, 2 unknown"


def test_html_is_shown_and_not_obeyed(page: Page) -> None:
    ask(page, f"Is {ATTACK} {SURE}?")
    set_threshold(page, "0")
    page.click(".change:not([hidden]) button")
    page.wait_text("#taken b", "1 of 2")
    finish(page)
    assert page.texts(".asked") == [f"Is {ATTACK} {SURE}?"] * 2
    assert ATTACK in page.text("#earlier .answer")
    assert ATTACK in page.texts(".passages p")[1]
    assert page.count(".turn img, .turn .asked *, .turn .answer *, .passages .title *, .passages p *:not(mark)") == 0
    assert page.js("document.title") == "When to retrieve"


def test_everything_can_be_done_with_the_keyboard(page: Page, llm: PausingLLM) -> None:
    assert page.js("document.activeElement.id") == "question"
    page.press("Enter")
    assert page.count(".turn") == 0, "there is no question yet"
    page.type("first line")
    page.press("Enter", shift=True)
    assert page.js("document.getElementById('question').value") == "first line\n"
    page.js("document.getElementById('question').select()")
    llm.gate.clear()
    page.type(f"Who wrote {SURE}, slowly?")
    page.press("Enter")
    page.wait_text("#latest .answer", "William")
    page.press("Escape")
    page.wait_text("#latest .badge", "Stopped")
    llm.gate.set()
    assert page.text("#heard-answer") == "Stopped."
    assert page.text("#latest .answer") == "William"
    stops = [
        *("e.id === 'ask'", "e.matches('#latest .turn > details > summary')", "e.name === 'mode'", "e.name === 'rule'"),
        *("e.id === 'slider'", "e.id === 'threshold'", "e.id === 'k'"),
    ]
    for stop in stops:
        page.tab_to(stop)
        assert page.js("getComputedStyle(focused()).outlineStyle".replace("focused()", _SEEN_FOCUS)) == "solid", stop
    page.press("Tab", times=2, shift=True)
    assert page.js("document.activeElement.id") == "slider"
    page.press("Home")
    page.press("ArrowRight", times=3)
    assert page.js("document.getElementById('threshold').value") == "0.03"
    assert page.text("#would b") == "1 of 1 would be retrieved"
    page.tab_to("e.matches('#latest summary')", backwards=True)
    page.press("Enter")
    assert page.js("document.querySelector('#latest details').open") is False
    page.tab_to("e.matches('.again')")
    page.press(" ")
    page.wait_text("#latest .badge", "Retrieved")
    finish(page)
    assert page.js("document.activeElement.id") == "ask"


# A radio button of the row of modes is invisible; what stands over it shows its focus.
_SEEN_FOCUS = "(e => e.name === 'mode' ? e.nextElementSibling : e)(document.activeElement)"


def test_stop_keeps_what_has_come(page: Page, llm: PausingLLM) -> None:
    llm.gate.clear()
    page.click("#examples button")  # What is the capital of Japan?
    page.wait_text("#latest .badge", "From memory")
    finish(page)
    ask_slowly = f"Who wrote {SURE}, slowly?"
    page.js("document.getElementById('question').focus()")
    page.type(ask_slowly)
    page.click("#ask")
    page.wait_text("#latest .answer", "William")
    page.click("#stop")
    page.wait_text("#latest .badge", "Stopped")
    llm.gate.set()
    assert page.text("#taken b") == "0 of 2 retrieved"
    ask(page, f"When was the {LOST} Wheel opened?")
    assert page.text("#taken b") == "1 of 3 retrieved"


def test_too_long_a_question_is_not_sent(page: Page) -> None:
    page.type("🚤" * 201)
    page.press("Enter")
    complaint = page.js("document.getElementById('question').validationMessage")
    assert complaint == "This is 201 characters long; the server takes at most 200."
    assert page.count(".turn") == 0
    page.js("document.getElementById('question').select()")
    page.type("🚤" * 200)
    page.press("Enter")
    page.wait("document.querySelector('.turn')")


def test_what_is_not_known_is_not_made_up(page: Page) -> None:
    ask(page, "How many legs has it?")
    assert page.text("#latest .badge") == "No answer"
    assert page.text("#latest .message").startswith("the threshold 0.5 needs the probability of <RET>")
    assert "What to do: ask the model for them" in page.text("#latest .problem")
    page.js("document.querySelector('[value=token]').click()")
    page.click("#latest .again")
    page.wait_text("#latest .answer", "perhaps seven or eight")
    finish(page)
    assert page.text("#latest .label.above") == "P(RET) unknown"
    assert page.count("#latest .needle, #latest .bound, .dot") == 0
    assert "The model reports no probabilities." in page.text("#latest .decision")


def test_a_bound_is_shown_as_one(page: Page) -> None:
    decision = {"rule": "token", "reason": "it answered", "threshold": None, "signal_kind": "upper_bound"}
    answer_with(page, "one", {**decision, "signal_probability": 0.12})
    assert page.text("#latest .label.above") == "P(RET) at most 0.12"
    assert page.count("#latest .bound") == 1
    assert page.count("#latest .needle") == 0
    set_threshold(page, "0.1")
    assert page.text("#would b") == "0 of 1 would be retrieved", "what is not listed is never asked for"
    answer_with(page, "two", {**decision, "signal_probability": None})
    assert page.text("#latest .label.above") == "P(RET) not listed"
    assert page.count("#latest .bound, #latest .needle") == 0


@pytest.mark.parametrize(
    ("rule", "kind", "probability"), [("popularity", "unknown", None), ("decision_model", "judged", 0.9)]
)
def test_what_others_decide_by_is_not_p_ret(page: Page, rule: str, kind: str, probability: float | None) -> None:
    """A popularity of 1000, or a judge's probability, has no place on the scale of P(RET)."""
    decision = {"rule": rule, "reason": "it is so", "threshold": 1000, "signal_kind": kind}
    answer_with(page, "one", {**decision, "signal_probability": probability})
    assert page.text("#latest .label.above") == "P(RET) unknown"
    assert page.count("#latest .cut, #latest .needle, #latest .bound, .dot") == 0
    assert "The model was not asked whether it knows." in page.text("#latest .decision")
    assert page.text("#would b") == "unknown for all 1"
    assert page.js("document.documentElement.scrollWidth <= innerWidth")


def answer_with(page: Page, question: str, decision: dict[str, Any]) -> None:
    """Ask, and have it answered from memory with this decision."""
    whole = {"retrieved": False, "ret_probability": None, "context": [], "answer": "yes", "seconds": 0.1}
    events = told(("done", {**whole, "decision": decision}))
    with page.answering("ask", 200, events, {"Content-Type": "text/event-stream"}):
        ask(page, question)


def test_no_more_passages_are_asked_for_than_the_server_allows(tab: Page, llm: PausingLLM) -> None:
    with served(scripted_app(llm, max_k=3)) as address:
        enter(tab, f"{address}/")
        for k, valid in (("3", True), ("4", False), ("0", False), ("1.5", False), ("", False), ("2", True)):
            tab.js("document.getElementById('k').select()")
            tab.press("Backspace")
            tab.type(k)
            assert tab.js("document.getElementById('k').validity.valid") is valid, k


def test_passages_are_not_counted_where_the_retriever_cannot_be_told(tab: Page, llm: PausingLLM) -> None:
    told_nothing = CountingRetriever(documents=PASSAGES)
    with served(make_app(AdaptiveRetrievalChain(llm=llm, retriever=told_nothing))) as address:
        enter(tab, f"{address}/")
        assert tab.js("document.getElementById('k').checkVisibility()") is False
        ask(tab, f"When was the {LOST} Wheel opened?")
        assert tab.count("#latest .passages li") == 2


def test_the_number_of_passages_is_left_open_where_the_retriever_has_none(tab: Page, llm: PausingLLM) -> None:
    store = InMemoryVectorStore.from_texts(["one", "two", "three"], DeterministicFakeEmbedding(size=4))
    with served(make_app(AdaptiveRetrievalChain(llm=llm, retriever=store.as_retriever()))) as address:
        enter(tab, f"{address}/")
        ask(tab, f"When was the {LOST} Wheel opened?")
        assert tab.count("#latest .passages li") == 3
        tab.js("document.getElementById('k').focus()")
        tab.type("2")
        ask(tab, f"When was the {LOST} Wheel opened, then?")
        assert tab.count("#latest .passages li") == 2


def test_the_examples_are_of_the_demo(page: Page) -> None:
    """Without ``--index`` the server has the demo's articles: what it offers to ask, it can answer."""
    examples = page.texts("#examples button")
    assert examples
    assert set(examples) <= set(QUESTIONS.read_text().splitlines())


REFUSALS = {
    "busy": (
        429,
        json.dumps({"error": {"message": "busy", "expected": None, "hint": None}}),
        "busy What to do: ask again in 7 seconds",
    ),
    "proxy": (502, "<html>Bad gateway</html>", "The server answered 502"),
    "cut": (200, told(("token", {"text": "half"})), "The answer broke off"),
    "error": (200, told(("error", {"error": {"message": "it failed", "hint": "wait"}})), "it failed What to do: wait"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_errors_say_what_to_do(page: Page, case: str) -> None:
    status, body, shown = REFUSALS[case]
    with page.answering("ask", status, body, {"Retry-After": "7"} if status == 429 else {}):
        ask(page, "anything")
    assert page.text("#latest .badge") == "No answer"
    # The paragraphs of an error have no space between them.
    assert shown in page.js("document.querySelector('#latest .problem').innerText").replace("\n\n", " ").replace(
        "\n", " "
    )
    assert page.text("#latest .again") == "Ask again"
    assert page.text("#heard-answer") != ""


def test_a_server_that_stops_is_missed_and_found_again(tab: Page, llm: PausingLLM) -> None:
    with served(scripted_app(llm)) as address:
        enter(tab, f"{address}/")
        ask(tab, f"Who wrote {SURE}?")
    ask(tab, f"Who wrote {SURE} now?")
    assert tab.text("#latest .message") == "The server does not answer."
    assert "start it again with adaptllm serve" in tab.text("#latest .problem")
    assert tab.text("#earlier .answer") == "William Shakespeare, in 1600"


def test_a_key_is_asked_for_and_kept_for_the_tab_where_the_app_is_mounted(tab: Page, llm: PausingLLM) -> None:
    site = FastAPI()
    site.mount("/answers", scripted_app(llm, api_key=KEY))
    with served(site) as root:
        url = f"{root}/answers/"
        enter(tab, url)
        tab.type(f"Who wrote {SURE}?")
        tab.press("Enter")
        assert tab.count(".turn") == 0, "the key is missing, and the browser says so"
        tab.js("document.getElementById('key').focus()")
        tab.type("wrong")
        tab.press("Enter")
        tab.wait_text("#latest .problem", "the API key is wrong")
        finish(tab)
        tab.js("document.getElementById('key').select()")
        tab.type(KEY)
        tab.press("Enter")
        ask(tab, f"Who wrote {SURE}?")
        assert tab.text("#latest .answer") == "William Shakespeare, in 1600"
        assert_well_behaved(tab, url)
        enter(tab, url)
        assert tab.js("document.getElementById('key').value") == KEY
        assert tab.js("localStorage.length + document.cookie.length") == 0


def test_without_a_key_none_is_asked_for(page: Page) -> None:
    assert page.js("document.getElementById('key').checkVisibility()") is False


def test_the_page_says_when_it_finds_no_server(tab: Page, url: str) -> None:
    with tab.answering("settings", 503, "", {}):
        tab.open(url)
        tab.wait_text("#notice", "The server answered 503")
    tab.click("#notice button")
    tab.wait("!document.getElementById('ask').disabled")
    assert tab.js("document.getElementById('notice').checkVisibility()") is False


@pytest.mark.parametrize(("scheme", "palette"), [("light", DAY), ("dark", NIGHT)])
def test_both_schemes_are_the_report_s_and_can_be_read(
    tab: Page, url: str, scheme: str, palette: dict[str, str]
) -> None:
    enter(tab, url, scheme=scheme)
    faint = tab.js(FAINT)
    ask(tab, f"Who wrote {SURE}?")
    ask(tab, f"When was the {LOST} Wheel opened?")
    ask(tab, "a broken one")
    set_threshold(tab, "0")
    assert faint + tab.js(FAINT) == []
    # What the page declares of the report's colours is the report's.
    declared = {
        name: tab.js(f"getComputedStyle(document.documentElement).getPropertyValue('--{name}')") for name in palette
    }
    used = {name: colour for name, colour in declared.items() if colour}
    assert {"paper", "ink", "series-1", "series-2"} <= used.keys()
    assert used == {name: palette[name] for name in used}
    assert tab.js(f"{RGB}(getComputedStyle(document.body).backgroundColor)") == list(
        bytes.fromhex(palette["paper"][1:])
    )


@pytest.mark.parametrize("width", [390, 320])
def test_a_phone_scrolls_in_one_direction(tab: Page, url: str, width: int) -> None:
    enter(tab, url, width=width, height=844)
    assert tab.js("document.documentElement.scrollWidth") == width
    set_threshold(tab, "0")
    ask(tab, f"Is {ATTACK} {ENDLESS[:120]}?")
    assert tab.text("#latest .badge") == "Retrieved"
    tab.js("document.querySelectorAll('details').forEach(e => e.open = true)")
    set_threshold(tab, "1")
    assert tab.js("document.documentElement.scrollWidth") == width
    assert (
        tab.js(
            "[...document.querySelectorAll('body *')].filter(e => e.scrollWidth > e.clientWidth + 1 &&"
            " ['auto', 'scroll'].includes(getComputedStyle(e).overflowX)).map(e => e.id)"
        )
        == []
    )


def test_the_page_decides_as_the_policies_do(page: Page) -> None:
    numbers = (0.0, 1e-9, 0.1, 0.3, 0.1 + 0.2, 0.5, 1 - 1e-12, 1.0)
    kinds = ("exact", "first_piece", "upper_bound")
    cases = [(p, kind, threshold) for p in numbers for kind in kinds for threshold in numbers]
    expected = [
        Adaptive(threshold=threshold).decide(Evidence(question="?", signal=RetSignal(probability=p, kind=kind))).route
        for p, kind, threshold in cases
    ]
    told = json.dumps(cases)
    call = "it.routeUnder({probability, kind, rule: 'token', route: 'direct'}, {mode: 'adaptive', threshold})"
    assert page.js(module("policy.js", f"{told}.map(([probability, kind, threshold]) => {call})")) == expected


# Each example asks the browser, so an example is many cases, and one that fails is told as it is found.
many = settings(
    max_examples=10,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
lines = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), max_size=12)
events = st.tuples(lines.filter(bool), st.lists(lines, min_size=1, max_size=3))
streams = st.tuples(
    st.lists(events, max_size=4),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.lists(st.integers(1, 9), min_size=1, max_size=9),
)


@given(cases=st.lists(streams, min_size=15, max_size=30))
@many
def test_events_are_read_however_their_bytes_are_cut(page: Page, cases: list[Any]) -> None:
    sent, expected = [], []
    for sequence, end, sizes in cases:
        text = f": a comment{end}"
        for name, data in sequence:
            text += f"event: {name}{end}" + "".join(f"data: {line}{end}" for line in data) + end
        # Closed by nothing: it is not an event yet.
        sent.append([list((text + "data: cut").encode()), sizes])
        expected.append([{"name": name, "data": "\n".join(data)} for name, data in sequence])
    read = (
        "Promise.all(CASES.map(async ([bytes, sizes]) => { let at = 0, turn = 0; const found = [];"
        "const body = new ReadableStream({ pull(c) { if (at >= bytes.length) return c.close();"
        "c.enqueue(new Uint8Array(bytes.slice(at, at += sizes[turn++ % sizes.length]))); } });"
        "for await (const event of it.readEvents(body)) found.push(event); return found; }))"
    )
    assert page.js(module("events.js", read.replace("CASES", json.dumps(sent)))) == expected


@st.composite
def marked_texts(draw: st.DrawFn) -> tuple[str, list[tuple[int, int]]]:
    text = draw(st.text(st.characters(codec="utf-8"), max_size=20))
    cuts = sorted(draw(st.sets(st.integers(0, len(text)), max_size=6)))
    return text, list(zip(cuts[::2], cuts[1::2], strict=False))


@given(cases=st.lists(marked_texts(), min_size=20, max_size=40))
@many
def test_marks_count_code_points_as_python_does(page: Page, cases: list[tuple[str, list[tuple[int, int]]]]) -> None:
    expected = [[text, [text[start:end] for start, end in marks]] for text, marks in cases]
    cut = "it.cutAtMarks(text, marks)"
    call = f"[{cut}.map(part => part.text).join(''), {cut}.filter(part => part.marked).map(part => part.text)]"
    assert page.js(module("passages.js", f"{json.dumps(cases)}.map(([text, marks]) => {call})")) == expected
