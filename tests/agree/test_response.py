"""Reading grounded responses, whole and in the making, and writing them as targets (case E7)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaptllm_chain.agree import parse_response, sentence_texts, verbalise
from adaptllm_chain.agree.response import UNSUPPORTED, ResponseFilter, response_part
from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.metrics.citations import CitedSentence

WHOLE = (
    "It was built in 1790 [1]. It burned down [1][3].\n\nUnsupported statements:\n- The miller was rich.\n- It hums."
)


def cites(sentence: str, *citations: int, rejected: int = 0) -> CitedSentence:
    return CitedSentence(sentence=sentence, citations=list(citations), rejected=rejected)


def test_a_whole_response() -> None:
    response = parse_response(WHOLE, 5)
    assert response.answer == "It was built in 1790 [1]. It burned down [1][3]."
    assert response.sentences == (cites("It was built in 1790.", 1), cites("It burned down.", 1, 3))
    assert response.unsupported == ("The miller was rich.", "It hums.")
    assert response.rejected == 0
    assert response.cited == (1, 3)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("It is old [1][2].", cites("It is old.", 1, 2)),
        ("It is old [1, 2].", cites("It is old.", 1, 2)),
        ("It is old. [1][2]", cites("It is old.", 1, 2)),
        ("It is old.[1, 2]", cites("It is old.", 1, 2)),
        ("It is old [[1], [2]].", cites("It is old.", 1, 2)),
        ("It is old [[2]].", cites("It is old.", 2)),
        ("It [2] is old [1].", cites("It is old.", 2, 1)),
        ("It is old [2] [2].", cites("It is old.", 2)),
        ("It is old.\n\n[1]", cites("It is old.", 1)),
        ("- It is old [1].", cites("It is old.", 1)),
        ("1. It is old [1].", cites("It is old.", 1)),
        ("It is old [0].", cites("It is old.", rejected=1)),
        ("It is old [9][1].", cites("It is old.", 1, rejected=1)),
        ("It is old [a].", cites("It is old [a].")),
        ("It is old [1", cites("It is old [1")),
        ("It is old 1].", cites("It is old 1].")),
        ("It is\n  old [1].", cites("It is old.", 1)),
        ('He said "Go [1]."', cites('He said "Go."', 1)),
    ],
)
def test_ways_to_cite(text: str, sentence: CitedSentence) -> None:
    response = parse_response(text, 5)
    assert response.sentences == (sentence,)
    assert response.rejected == sentence["rejected"]


numbers = st.lists(st.integers(0, 9), max_size=5)


@given(numbers, numbers, st.integers(0, 5), st.sampled_from(["apart", "together", "nested"]), st.booleans())
def test_all_ways_to_cite_mean_the_same(
    first: list[int], second: list[int], passages: int, spelling: str, after_the_stop: bool
) -> None:
    def marked(words: str, cited: list[int]) -> str:
        apart = [f"[{number}]" for number in cited]
        marks = {
            "apart": "".join(apart),
            "together": f"[{', '.join(map(str, cited))}]" if cited else "",
            "nested": f"[{', '.join(apart)}]" if cited else "",
        }[spelling]
        return f"{words}. {marks}" if after_the_stop else f"{f'{words} {marks}'.rstrip()}."

    def expected(words: str, cited: list[int]) -> CitedSentence:
        valid = [number for number in cited if 1 <= number <= passages]
        return cites(words, *dict.fromkeys(valid), rejected=len(cited) - len(valid))

    response = parse_response(f"{marked('It is old', first)} {marked('He left', second)}", passages)
    assert response.sentences == (expected("It is old.", first), expected("He left.", second))
    assert response.rejected == sum(sentence["rejected"] for sentence in response.sentences)


@pytest.mark.parametrize(
    ("text", "unsupported"),
    [
        ("Yes.\nUNSUPPORTED statements: It hums.", ("It hums.",)),
        ("Yes.\n\nUnsupported statements:\n1. It hums.\n\n2) It is old [3].\n* So.", ("It hums.", "It is old.", "So.")),
        ("Unsupported statements:\nIt hums.", ("It hums.",)),
        ("Yes.\n\nUnsupported statements:\n- None.", ()),
        ("Yes.\n\nUnsupported statements:", ()),
        ("Yes.\n\nUnsupported sta", ()),
        ("Yes. There are unsupported statements: few.", ()),
    ],
)
def test_the_section_of_unsupported_statements(text: str, unsupported: tuple[str, ...]) -> None:
    response = parse_response(text, 5)
    assert response.unsupported == unsupported
    assert response.answer == ("" if text.startswith("Uns") else text.partition("\n")[0])


@pytest.mark.parametrize(
    ("text", "supported"),
    [
        ("It is old [1]. It hums [2].", True),
        ("It is old [1]. It hums.", False),
        ("It is old [1].\n\nUnsupported statements:\n- It hums.", False),
        ("It is old [9].", False),
        ("", False),
    ],
)
def test_when_all_is_supported(text: str, supported: bool) -> None:
    assert parse_response(text, 5).supported is supported


# Text in the making.

alphabet = st.lists(
    st.sampled_from([*"aA1.[],- \n", ". ", "[1]", "[2", "U.S.", "The ", UNSUPPORTED, "\n\n", "Unsupported", "- "]),
    max_size=12,
).map("".join)


@given(alphabet, st.integers(0, 80))
def test_while_it_is_written_all_sentences_but_the_last_are_final(text: str, length: int) -> None:
    so_far = parse_response(text[:length], 2).sentences[:-1]
    assert parse_response(text, 2).sentences[: len(so_far)] == so_far


@given(st.lists(alphabet, max_size=6))
def test_filtered_in_pieces_it_is_the_response(chunks: list[str]) -> None:
    filtering = ResponseFilter()
    pieces = [filtering.push(chunk) for chunk in chunks]
    text = "".join(chunks)
    assert "".join([*pieces, filtering.finish()]) == response_part(text) == parse_response(text, 2).answer
    assert f"\n{UNSUPPORTED}".lower() not in f"\n{response_part(text)}".lower()


def test_the_section_is_never_streamed() -> None:
    filtering = ResponseFilter()
    pieces = [filtering.push(character) for character in WHOLE]
    assert "".join([*pieces, filtering.finish()]) == "It was built in 1790 [1]. It burned down [1][3]."
    assert pieces[: len("It was")] == ["I", "t", "", " w", "a", "s"]


# Writing.


def test_the_fixed_form() -> None:
    sentences = [
        cites("It was built in 1790.", 1),
        cites("It burned down.", 1, 3),
        cites("It lies in the U.S.", 2),
        cites('He said "Go."', 2),
        cites("The miller was rich."),
    ]
    assert verbalise(sentences, ["The miller was rich."]) == (
        "It was built in 1790 [1]. It burned down [1][3]. It lies in the U.S. [2] "
        'He said "Go [2]." The miller was rich.\n\nUnsupported statements:\n- The miller was rich.'
    )
    assert verbalise([]) == ""


words = st.sampled_from(
    ["the mill", "Mr. Brown", "in the U.S.", "at 3.14", "J. R. Tolkien", "[a]", "no. 5", '"why?"', "etc."]
)
ends = st.sampled_from([".", "!", "?", "...", ".”", '?"', "", " etc.", " U.S."])
sentence = st.builds(
    lambda first, rest, end: f"{first} {' '.join(rest)}{end}",
    st.sampled_from(["It", "He", "Mills"]),
    st.lists(words, min_size=1, max_size=3),
    ends,
)
citations = st.lists(st.integers(1, 5), unique=True, max_size=3)


@given(
    st.lists(st.builds(lambda text, cited: cites(text, *cited), sentence, citations), max_size=4),
    st.lists(sentence, max_size=3),
)
def test_what_is_written_is_read_back(sentences: list[CitedSentence], unsupported: list[str]) -> None:
    whole = [cited for cited in sentences if sentence_texts(cited["sentence"]) == [cited["sentence"]]]
    text = verbalise(whole, unsupported)
    response = parse_response(text, 5)
    assert list(response.sentences) == whole
    assert list(response.unsupported) == unsupported
    assert response.rejected == 0


@pytest.mark.parametrize(
    ("sentences", "unsupported"),
    [
        ([cites("It is old. It hums.", 1)], []),
        ([cites("It is old [2].", 1)], []),
        ([cites("It is old.", 0)], []),
        ([cites("It is old.", 1, rejected=1)], []),
        ([cites("Unsupported statements: It hums.")], []),
        ([cites("It is old.", 1)], ["None."]),
        ([cites("It is old.", 1)], ["It hums.\nIt is old."]),
    ],
)
def test_what_could_not_be_read_back_is_refused(sentences: list[CitedSentence], unsupported: list[str]) -> None:
    with pytest.raises(InvalidInputError, match="cannot be told apart"):
        verbalise(sentences, unsupported)
