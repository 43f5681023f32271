"""The gate and the filter: a stream joined equals the cleaned whole (L2, L4)."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adaptllm_chain.ret import AnswerFilter, Gate, clean_answer, read_spelling

# Small alphabets make markers, stops and their beginnings likely.
texts = st.text(alphabet="<RETret>\nQ: a", max_size=30) | st.text(max_size=12)
stop_lists = st.lists(
    st.sampled_from(["\n", "\n\n", "Q:", "\nQ:", " Q", "<R", "a<", ">", "aa", "T"]) | st.text(min_size=1, max_size=3),
    max_size=3,
)


@st.composite
def chunked(draw: st.DrawFn) -> tuple[str, list[str]]:
    pieces = draw(st.lists(texts | st.sampled_from(["<RET>", "<re", "<RET", "\nQ:", " "]), max_size=5))
    text = "".join(pieces)
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=8)))
    return text, [text[i:j] for i, j in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def filtered(chunks: list[str], stops: list[str]) -> list[str]:
    answer = AnswerFilter(stops)
    return [*(answer.push(chunk) for chunk in chunks), answer.finish()]


@given(chunked(), stop_lists)
@example(("Paris <RET\nQ: x", ["Paris <RET", "\n", "Q: x"]), ["\nQ:"])
@example(("Paris <RET  ", ["Paris <RET", "  "]), [])
@example(("Paris <RET>", ["Paris <RET", ">"]), ["T"])
@example(("Paris <RET", ["Paris <RET"]), ["T"])
def test_a_stream_joined_is_the_cleaned_whole(case: tuple[str, list[str]], stops: list[str]) -> None:
    text, chunks = case
    assert "".join(filtered(chunks, stops)) == clean_answer(text, stops)


@given(chunked(), stop_lists)
def test_an_answer_is_a_stripped_part_without_marker_or_stop(case: tuple[str, list[str]], stops: list[str]) -> None:
    text, chunks = case
    answer = clean_answer(text, stops)
    assert answer == answer.strip()
    assert text.lstrip().startswith(answer)
    assert "<ret>" not in answer.lower()
    assert all(stop not in answer for stop in stops)
    assert not any("<ret>" in piece.lower() for piece in filtered(chunks, stops))


@pytest.mark.parametrize(
    ("text", "stops", "answer"),
    [
        (" Paris\n", [], "Paris"),
        ("\nParis\nQ: next", ["\n"], "Paris"),
        ("I need <RET> badly", [], "I need"),
        ("Paris <ret", [], "Paris"),
        ("r<R", [], "r<R"),
        ("a < b", [], "a < b"),
        ("<RET>", [], ""),
        ("", [], ""),
        ("Paris. Rome.", [".", "is"], "Par"),
    ],
)
def test_cleaning(text: str, stops: list[str], answer: str) -> None:
    assert clean_answer(text, stops) == answer


def test_the_filter_lets_words_through_as_they_come() -> None:
    assert filtered(["Par", "is is ", "a <", "b", " city"], []) == ["Par", "is is", " a", " <b", " city", ""]


def test_after_the_end_nothing_comes() -> None:
    answer = AnswerFilter(["\n"])
    assert answer.push("Paris\n") == "Paris"
    assert answer.done
    assert (answer.push("more"), answer.finish()) == ("", "")


@given(chunked())
@example(("<RE\n<", ["<RE", "\n", "<"]))
def test_the_gate_opens_as_soon_as_it_is_settled_and_never_changes_its_mind(case: tuple[str, list[str]]) -> None:
    text, chunks = case
    gate = Gate()
    for chunk in chunks:
        gate.push(chunk)
        if gate.settled:
            break
    else:
        gate.finish()
    assert gate.settled
    assert read_spelling(gate.text) == read_spelling(text)


def test_the_gate_waits_only_for_what_may_be_the_marker() -> None:
    gate = Gate()
    seen = []
    for chunk in ["\n", "<", "RE", "T", ">"]:
        gate.push(chunk)
        seen.append(gate.settled)
    assert seen == [False, False, False, False, True]
    gate = Gate()
    gate.push("P")
    assert gate.settled
