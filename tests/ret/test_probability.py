"""Reading P(<RET>) from what servers report (D2, D3)."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.records import RetSignal
from adaptllm_chain.ret import read_signal, says_ret


def row(token: str, probability: float, **tops: float) -> dict[str, Any]:
    listed = [{"token": name, "logprob": math.log(p)} for name, p in tops.items()]
    return {"token": token, "logprob": math.log(probability), "top_logprobs": listed}


def chat(*rows: dict[str, Any]) -> dict[str, Any]:
    return {"logprobs": {"content": list(rows)}}


def near(signal: RetSignal, probability: float, kind: str) -> bool:
    return signal.kind == kind and signal.probability == pytest.approx(probability)


MARKER = [row("<", 0.5), row("RET", 0.8), row(">", 0.9), row("\n", 0.5)]


def test_the_models_own_word_goes_first() -> None:
    info = {"ret_probability": 0.25, "ret_probability_kind": "exact", **chat(*MARKER)}
    assert read_signal(info) == RetSignal(probability=0.25, kind="exact")
    assert read_signal({"ret_probability": 0.25}).kind == "exact"


@pytest.mark.parametrize(
    "own",
    [{"ret_probability": 1.5}, {"ret_probability": "high"}, {"ret_probability": 0.5, "ret_probability_kind": "guess"}],
)
def test_nonsense_is_refused(own: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match="ret_probability"):
        read_signal(own)


def test_a_spelled_marker_is_exact() -> None:
    assert near(read_signal(chat(*MARKER)), 0.36, "exact")
    assert near(read_signal(chat(row("\n", 0.5), *MARKER)), 0.36, "exact")
    assert near(read_signal(chat(row("Ġ<", 0.5), row("ret", 0.8), row(">.", 0.9))), 0.36, "exact")
    assert near(read_signal(chat(row("<RET>", 0.7))), 0.7, "exact")


def test_chunks_of_a_stream_are_read_together() -> None:
    assert near(read_signal({}, *(chat(part) for part in MARKER)), 0.36, "exact")


def test_a_listed_first_piece() -> None:
    assert near(read_signal(chat(row("Paris", 0.6, Paris=0.6, **{"<": 0.2, " <": 0.1, "R": 0.05}))), 0.3, "first_piece")
    # The first piece was said, but the rest was cut off or went elsewhere.
    assert near(read_signal(chat(row("<", 0.2))), 0.2, "first_piece")
    assert near(read_signal(chat(row("<", 0.2), row("b>", 0.9))), 0.2, "first_piece")
    # An added token that is the whole marker.
    assert near(read_signal(chat(row("Paris", 0.6, Paris=0.6, **{"<RET>": 0.3}))), 0.3, "exact")


def test_d2_not_among_the_listed_is_an_upper_bound_and_no_ratio() -> None:
    assert near(read_signal(chat(row("Paris", 0.6, Paris=0.6, Rome=0.2, Oslo=0.05))), 0.05, "upper_bound")
    assert near(read_signal(chat(row("Paris", 0.6, Paris=0.6, Rome=0.38))), 0.02, "upper_bound")
    assert near(read_signal(chat(row("Paris", 0.7))), 0.3, "upper_bound")
    # A token sampled from below the top ones says nothing about others between.
    assert near(read_signal(chat(row("Oslo", 0.01, Paris=0.3, Rome=0.2, Oslo=0.01))), 0.2, "upper_bound")


def test_d3_one_position_with_five_logprobs_is_enough() -> None:
    tops = {"Paris": 0.4, "The": 0.2, "<": 0.15, "It": 0.1, "Rome": 0.05}
    assert near(read_signal(chat(row("Paris", 0.4, **tops))), 0.15, "first_piece")


def test_nothing_reported_is_unknown() -> None:
    nothing: list[dict[str, Any]] = [
        {},
        {"logprobs": None},
        {"logprobs": {"content": []}},
        chat(row("\n", 0.9)),
        {"logprobs": "none"},
        {"finish_reason": "stop"},
    ]
    for info in nothing:
        assert read_signal(info) == RetSignal()
    assert read_signal() == RetSignal()


LN = math.log
SHAPES = {
    "openai chat": chat(row("Paris", 0.6, Paris=0.6, **{"<": 0.3})),
    "ollama": {"logprobs": [row("Paris", 0.6, Paris=0.6, **{"<": 0.3})]},
    "openai completions": {
        "logprobs": {
            "tokens": ["Paris", "."],
            "token_logprobs": [LN(0.6), None],
            "top_logprobs": [{"Paris": LN(0.6), "<": LN(0.3)}, None],
        }
    },
    "llama.cpp": {"completion_probabilities": [{"id": 3, **row("Paris", 0.6, **{"<": 0.3})}]},
    "llama.cpp after sampling": {
        "completion_probabilities": [{"token": "Paris", "prob": 0.6, "top_probs": [{"token": "<", "prob": 0.3}]}]
    },
    "llama.cpp before 2025": {
        "completion_probabilities": [
            {"content": "Paris", "probs": [{"tok_str": "Paris", "prob": 0.6}, {"tok_str": "<", "prob": 0.3}]}
        ]
    },
}


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(shape: str) -> None:
    assert near(read_signal(SHAPES[shape]), 0.3, "first_piece")


def test_another_marker() -> None:
    assert near(read_signal(chat(row("[", 0.5), row("NEED]", 0.5)), marker="[NEED]"), 0.25, "exact")


tokens = st.sampled_from(["<", "RET", ">", "<RET>", "Paris", " ", "\n", "<R", "T", ""])
chances = st.floats(1e-6, 1.0)
rows = st.builds(lambda token, p, tops: row(token, p, **tops), tokens, chances, st.dictionaries(tokens, chances))


@settings(deadline=None)
@given(st.lists(rows, max_size=5))
def test_whatever_is_reported_is_a_probability(reported: list[dict[str, Any]]) -> None:
    signal = read_signal(chat(*reported))
    assert (signal.probability is None) == (signal.kind == "unknown")
    assert signal.probability is None or 0.0 <= signal.probability <= 1.0


def test_says_ret() -> None:
    assert says_ret([{}, {"is_ret": True}])
    assert not says_ret([{"is_ret": False}, {}])


NAN = math.nan
UNKNOWN: list[dict[str, Any]] = [
    {"ret_probability": NAN},
    {"logprobs": {"content": [{"token": "<RET>", "logprob": NAN}]}},
    {"logprobs": {"content": [{"token": "<RET>", "logprob": "-0.5"}]}},
    {"logprobs": {"content": [{"token": "<RET>", "logprob": math.inf}]}},
    {"logprobs": {"tokens": ["<RET>"], "token_logprobs": [NAN], "top_logprobs": [{"<RET>": NAN}]}},
    {"logprobs": {"tokens": ["Paris"], "token_logprobs": [-0.1], "top_logprobs": [{"Paris": -0.1, "<": NAN}]}},
    {"completion_probabilities": [{"token": "<", "prob": NAN}]},
    chat({"token": "Paris", "logprob": NAN, "top_logprobs": [{"token": "Paris", "logprob": NAN}]}),
]


@pytest.mark.parametrize("info", UNKNOWN, ids=repr)
def test_nan_is_unknown(info: dict[str, Any]) -> None:
    assert read_signal(info) == RetSignal()


def test_nan_elsewhere_does_no_harm() -> None:
    tops = [{"token": "Rome", "logprob": NAN}, {"token": "<", "logprob": LN(0.2)}]
    assert near(read_signal(chat({"token": "Paris", "logprob": NAN, "top_logprobs": tops})), 0.2, "first_piece")
    assert near(read_signal(chat(row("<", 0.2), {"token": "RET>", "logprob": NAN})), 0.2, "first_piece")


def test_a_certain_token_reported_just_above_zero() -> None:
    assert near(read_signal(chat({"token": "<RET>", "logprob": 1e-6})), 1.0, "exact")
    assert near(read_signal(chat({"token": "<RET>", "logprob": 1e4})), 1.0, "exact")


def test_a_token_below_the_listed_ones_is_bounded_by_them() -> None:
    # OpenAI and vLLM: -9999 for an emitted token that is not among those that they list.
    unlisted = {"token": "<", "logprob": -9999.0, "top_logprobs": row("", 1.0, Paris=0.6, Rome=0.25)["top_logprobs"]}
    assert near(read_signal(chat(unlisted, row("RET>", 0.9))), 0.15, "upper_bound")
    unlisted["top_logprobs"] += row("", 1.0, Oslo=0.01, **{" <": 0.1})["top_logprobs"]
    assert near(read_signal(chat(unlisted)), 0.11, "upper_bound")
    columns = {"tokens": ["<RET>"], "token_logprobs": [-9999.0], "top_logprobs": [{"Paris": LN(0.6), "Rome": LN(0.1)}]}
    assert near(read_signal({"logprobs": columns}), 0.1, "upper_bound")
    assert read_signal(chat({"token": "<RET>", "logprob": -9999.0, "top_logprobs": []})) == RetSignal()


def test_a_token_that_was_asked_for_and_cannot_come_has_no_chance() -> None:
    # vLLM: -9999 in place of minus infinity among the listed ones.
    listed = [{"token": "Paris", "logprob": -0.1}, {"token": "<", "logprob": -9999.0}]
    assert near(read_signal(chat({"token": "Paris", "logprob": -0.1, "top_logprobs": listed})), 0.0, "first_piece")


def test_the_marker_alone_was_asked_for() -> None:
    # vLLM with logprob_token_ids: the emitted token and those that were named, whatever their rank.
    assert near(read_signal(chat(row("Paris", 0.6, Paris=0.6, **{"<": 1e-6}))), 1e-6, "first_piece")


def test_token_ids_without_texts_are_unknown() -> None:
    # vLLM with return_tokens_as_token_ids: "token_id:44" may or may not be the marker's first piece.
    assert read_signal(chat(row("token_id:9707", 0.6, **{"token_id:9707": 0.6, "token_id:44": 0.3}))) == RetSignal()
    columns = {"tokens": ["token_id:44"], "token_logprobs": [LN(0.9)], "top_logprobs": [{"token_id:44": LN(0.9)}]}
    assert read_signal({"logprobs": columns}) == RetSignal()


@pytest.mark.parametrize("end", ["</think>", "[/THINK]", "<|message|>"])
def test_thoughts_are_passed_over(end: str) -> None:
    # Servers with a parser of reasoning take the thoughts out of the text, not out of the log-probabilities.
    thoughts = [row("<", 0.9), row("think>", 0.9), row("Hm", 0.5), row(end, 0.7), row("\n\n", 0.9)]
    assert near(read_signal(chat(*thoughts, *MARKER)), 0.36, "exact")
    assert near(read_signal(chat(*thoughts, row("Paris", 0.6, Paris=0.6, **{"<": 0.2}))), 0.2, "first_piece")
    assert near(read_signal(*(chat(part) for part in [*thoughts, *MARKER])), 0.36, "exact")
    assert read_signal(chat(*thoughts)) == RetSignal()


class Logprob(BaseModel):
    """As langchain-ollama hands on what Ollama reports."""

    token: str
    logprob: float
    top_logprobs: list["Logprob"] | None = None


def test_pydantic_models_of_langchain_ollama() -> None:
    def reported(token: str, probability: float, **tops: float) -> Logprob:
        return Logprob.model_validate(row(token, probability, **tops))

    direct = {"logprobs": [reported("Paris", 0.6, Paris=0.6, **{"<": 0.3})]}
    assert near(read_signal(direct), 0.3, "first_piece")
    chunks = [{"logprobs": [reported(position["token"], math.exp(position["logprob"]))]} for position in MARKER]
    assert near(read_signal(*chunks, {"done": True, "logprobs": None}), 0.36, "exact")


def test_numbers_of_numpy() -> None:
    # ChatLlamaCpp passes on what llama-cpp-python computed.
    tops = [{"token": "<", "logprob": np.float32(LN(0.3))}, {"token": "Paris", "logprob": np.float32(LN(0.6))}]
    assert near(
        read_signal(chat({"token": "Paris", "logprob": np.float32(LN(0.6)), "top_logprobs": tops})), 0.3, "first_piece"
    )


def test_columns_that_list_something_else_are_read_as_far_as_they_go() -> None:
    columns = {"tokens": ["<", "RET>"], "token_logprobs": [LN(0.5), LN(0.5)], "top_logprobs": [["Paris", -0.1], None]}
    assert near(read_signal({"logprobs": columns}), 0.25, "exact")
