"""D7, D9: every spelling of the request has a documented route."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptllm_chain.ret import is_request, may_become_marker, read_spelling


@pytest.mark.parametrize(
    ("output", "spelling"),
    [
        ("<RET>", "marker"),
        (" <RET>", "marker"),
        ("\n<RET>", "marker"),
        ("<RET>.", "marker"),
        ("<RET> Paris", "marker"),
        ("<ret>", "marker"),
        ("<RET", "cut_off"),
        ("<R", "cut_off"),
        ("<", "answer"),
        ("RET", "answer"),
        ("I need <RET>", "answer"),
        ("", "empty"),
        (" \n", "empty"),
        ("Paris", "answer"),
    ],
)
def test_each_spelling_has_its_route(output: str, spelling: str) -> None:
    assert read_spelling(output) == spelling
    assert is_request(read_spelling(output)) is (spelling != "answer")


@given(st.text(alphabet="<RETretP> \n", max_size=12), st.integers(0, 12))
def test_what_is_settled_for_a_beginning_holds_for_the_whole(text: str, cut: int) -> None:
    beginning = text[:cut]
    if not may_become_marker(beginning):
        assert read_spelling(beginning) == read_spelling(text)
