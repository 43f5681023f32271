"""Eight judged questions whose figures can be worked out in the head."""

from __future__ import annotations

from typing import Any

from adaptllm_chain.evaluation import Cost, Judgement, Run, Seconds

POPULARITIES = (10.0, 10.0, 100.0, 100.0, 1000.0, 1000.0, 100_000.0, 100_000.0)
PROBABILITIES = (0.9, 0.95, 0.8, 0.7, 0.2, 0.3, 0.1, 0.05)
NEVER_RIGHT = {4, 6, 7}
ALWAYS_RIGHT = {0, 1, 3, 5, 6, 7}
ASKED = {0, 1, 2, 3}
ADAPTIVE_RIGHT = {0, 1, 3, 4, 6, 7}

SETTINGS: dict[str, Any] = {
    "data": "eight",
    "trained_on": "mill-nq",
    "policy": {"threshold": None},
    "questions": "f00d",
    "statistics": {
        "questions": 8,
        "words_per_question": 6.5,
        "words_per_answer": 2.0,
        "words_per_first_answer": 1.5,
        "answers_per_question": 1.25,
        "gold_passages": 0.0,
        "given_passages": 1.0,
        "popularities": 1.0,
        "duplicates": 0,
    },
    "retriever": "given",
    "passages": "beef",
    "k": 1,
    "on_empty": "answer",
    "model": "a-model",
    "weights": "cafe",
    "templates": {"parametric": "p {question}", "context": "c {question} {context}", "closed_book": "b {question}"},
    "batch_size": 8,
    "max_new_tokens": 24,
    "dtype": "float32",
    "load_in": None,
    "versions": {"adaptllm-chain": "0.1.0"},
}


def judged(number: int, *, right: bool, route: str, **others: Any) -> Judgement:
    """One judged question; every metric agrees but strict exact match, which is never met."""
    fields: dict[str, Any] = {"popularity": POPULARITIES[number], "relation": "mill" if number % 2 else "lamp"} | others
    return Judgement(
        id=str(number),
        route=route,  # type: ignore[arg-type]
        containment=right,
        first_line_containment=right,
        exact_match=False,
        f1=0.5 if right else 0.0,
        **fields,
    )


def never() -> list[Judgement]:
    return [judged(n, right=n in NEVER_RIGHT, route="direct") for n in range(8)]


def always(k: int = 1) -> list[Judgement]:
    # The first passage holds an answer for the even questions, the second for question 1 too.
    return [
        judged(n, right=n in ALWAYS_RIGHT, route="retrieve", hits=(n % 2 == 0, n == 1, False, False, False)[:k])
        for n in range(8)
    ]


def adaptive() -> list[Judgement]:
    return [
        judged(
            n,
            right=n in ADAPTIVE_RIGHT,
            route="retrieve" if n in ASKED else "direct",
            ret_probability=PROBABILITIES[n],
        )
        for n in range(8)
    ]


def run_of(mode: str, rows: list[Judgement], **settings: Any) -> Run:
    return Run(
        settings=SETTINGS | {"mode": mode} | settings,
        judgements=tuple(rows),
        cost=Cost(model_calls=12, prompt_tokens=800, completion_tokens=40),
        seconds=Seconds(questions=4, seconds=2.0),
    )


def all_runs() -> list[Run]:
    return [
        run_of("adaptive", adaptive()),
        run_of("always_retrieve", always()),
        run_of("never_retrieve", never()),
    ]
