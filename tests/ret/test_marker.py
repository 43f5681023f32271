"""D7, D9: every spelling of the request has a documented route."""

import pytest

from adaptllm_chain.ret import is_request, read_spelling


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
