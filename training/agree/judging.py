"""Asking a judge of entailment how well each sentence of each response is supported by each passage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pkgutil import resolve_name
from typing import Any

from langchain_core.documents import Document

from adaptllm_chain.agree.passages import premise_of
from adaptllm_chain.cli.console import note
from adaptllm_chain.cli.nli_loading import load_scorer
from adaptllm_chain.entailment import EntailmentScorer, Pair
from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.journal import Journal
from training.agree.chunks import StageClock, in_chunks
from training.agree.queries import Query
from training.agree.responses import Table, response_sentences

_OWN = "python:"


def load_judge(name: str, *, device: str = "auto") -> EntailmentScorer:
    """Load the judge that the command line names.

    Args:
        name: As for ``adaptllm evaluate``, or ``python:module:name`` for a scorer of your own.
        device: As for models.

    Returns:
        The judge.

    Raises:
        InvalidInputError: If the name stands for no judge.
    """
    if not name.startswith(_OWN):
        return load_scorer(name, device=device)
    try:
        found = resolve_name(name.removeprefix(_OWN))
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidInputError(f"{name!r} names nothing: {error}", expected="'python:module:name'") from error
    if not isinstance(found, EntailmentScorer):
        raise InvalidInputError(
            f"{name!r} is a {type(found).__name__}",
            expected="an EntailmentScorer",
            hint="scorer = JudgeScorer(init_chat_model('openai:gpt-4.1-mini')) in that module, for a chat model",
        )
    return found


def scorer_identity(scorer: EntailmentScorer, name: str) -> dict[str, Any]:
    """Say what a judge's scores depend on.

    Args:
        scorer: The judge.
        name: What the command line calls it.

    Returns:
        JSON-serialisable; for a local model a hash of its weights.
    """
    about: dict[str, Any] = {"nli": name, "nli_class": type(scorer).__qualname__}
    if (model := getattr(scorer, "model", None)) is not None and hasattr(model, "named_parameters"):
        from adaptllm_chain.llms.generation import weights_fingerprint

        about["nli_weights"] = weights_fingerprint(model)
    return about


def judge(
    queries: Sequence[Query],
    passages: Sequence[Sequence[Document]],
    responses: Sequence[Sequence[str]],
    scorer: EntailmentScorer,
    journal: Journal,
    chunk: int,
    clock: StageClock,
) -> list[list[Table]]:
    """Score every sentence with every passage of its query; all pairs of a chunk in one call of the judge.

    Args:
        queries: The queries.
        passages: The passages of each.
        responses: The responses to each.
        scorer: The judge.
        journal: Where finished chunks are kept.
        chunk: Queries a call.
        clock: Counts the seconds.

    Returns:
        For each query a table a response; a response that the judge refuses, because a sentence is too long for it,
        say, has none and is reported.
    """

    def score(places: range) -> list[dict[str, Any]]:
        asked = [[list(_pairs(passages[place], response)) for response in responses[place]] for place in places]
        known = iter(_known_scores(scorer, list(chain.from_iterable(asked))))
        rows = []
        for place in places:
            tables = [_table(passages[place], response, next(known)) for response in responses[place]]
            rows.append({"scores": tables})
        return rows

    rows = in_chunks(journal, [query.id for query in queries], chunk, score, clock, "judging")
    return [row["scores"] for row in rows]


def _pairs(passages: Sequence[Document], response: str) -> Iterator[Pair]:
    for sentence in response_sentences(response):
        for passage in passages:
            yield premise_of(passage), sentence


def _known_scores(scorer: EntailmentScorer, responses: Sequence[Sequence[Pair]]) -> list[dict[Pair, float] | None]:
    """The scores of each response's pairs: in one call, or else, since one is refused, response by response."""
    pairs = list(dict.fromkeys(chain.from_iterable(responses)))
    try:
        # An empty call may load a model for nothing.
        known = dict(zip(pairs, scorer.score(pairs), strict=True)) if pairs else {}
    except InvalidInputError:
        return [_alone(scorer, response) for response in responses]
    return [known] * len(responses)


def _alone(scorer: EntailmentScorer, response: Sequence[Pair]) -> dict[Pair, float] | None:
    try:
        return dict(zip(response, scorer.score(response), strict=True)) if response else {}
    except InvalidInputError as error:
        note(f"a response is left out, the judge refuses it: {error.problem}")
        return None


def _table(passages: Sequence[Document], response: str, known: dict[Pair, float] | None) -> Table:
    if known is None:
        return None
    premises = [premise_of(passage) for passage in passages]
    return [[known[premise, sentence] for premise in premises] for sentence in response_sentences(response)]
