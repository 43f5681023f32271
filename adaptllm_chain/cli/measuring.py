"""Asking every question of a file in several modes: what ``evaluate`` and ``calibrate`` share."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adaptllm_chain.cli.data_options import SOURCES, add_data_options, read_arguments
from adaptllm_chain.cli.options import add_decision_options, add_model_options, whole_number
from adaptllm_chain.errors import InvalidInputError

if TYPE_CHECKING:
    from adaptllm_chain.cli.model_loading import LastModel
    from adaptllm_chain.evaluation import Chunk, CostMeter, Prediction
    from adaptllm_chain.records import Question

REPLAYED = ("given", "gold")


def add_measuring_options(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Add what says which questions are asked, of which model, with which passages.

    Args:
        parser: The parser of a command.
        required: Whether the command cannot do without ``--data`` and ``--out``.
    """
    parser.add_argument("--data", required=required, action="append", metavar="FILE", help=f"{SOURCES}; repeatable")
    parser.add_argument("--out", required=required, type=Path, metavar="DIR", help="for predictions and figures")
    parser.add_argument(
        "--retriever",
        default="given",
        metavar="R",
        help="given (the passages that the file says were found), gold, or the folder of an index (default: given)",
    )
    parser.add_argument("--embeddings", metavar="E", help="the embedder of the index, if not what the index says")
    parser.add_argument("--sample", type=whole_number, metavar="N", help="draw N questions of the file")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    add_decision_options(parser)
    add_model_options(parser)
    add_data_options(parser)


def measure(
    arguments: argparse.Namespace,
    modes: Sequence[str],
    adapters: Mapping[str, str | None] | None = None,
    models: LastModel | None = None,
) -> dict[str, list[Prediction]]:
    """Ask every question in every mode; what an earlier run has asked is not asked again.

    Predictions lie in ``out``, a journal a mode. Modes with one model share answers to one prompt, unless
    ``time_each_mode`` is set.

    Args:
        arguments: The parsed options of ``add_measuring_options``; ``name`` and ``trained_on``, if they are there, say
            how tables call the data and the adapter.
        modes: The modes.
        adapters: The adapter of a mode, as ``--adapter`` takes it, where it is not ``arguments.adapter``.
        models: Loads the models, and may have the first at hand from an experiment before.

    Returns:
        The predictions, by mode.
    """
    from adaptllm_chain.cli.model_loading import LastModel
    from adaptllm_chain.evaluation import sample_questions
    from adaptllm_chain.qa_data import read_many

    policies = {mode: _policy(mode, arguments) for mode in modes}
    check_retriever(arguments.retriever)
    arguments = argparse.Namespace(**vars(arguments))
    # One name for all modes of a command, also for those with an adapter of their own.
    arguments.trained_on = getattr(arguments, "trained_on", None) or adapter_name(arguments)
    questions = sample_questions(
        read_many(arguments.data, deduplicate=False, **read_arguments(arguments)), arguments.sample, arguments.seed
    )
    retriever = _open_retriever(arguments, questions)
    models = models or LastModel()
    predictions: dict[str, list[Prediction]] = {}
    for own, group in _by_adapter(arguments, modes, adapters or {}):
        with measured_model(models.load(own), own) as (llm, meter):
            for mode in group:
                predictions[mode] = _run_mode(mode, policies[mode], own, questions, llm, retriever, meter)
    return {mode: predictions[mode] for mode in modes}


def _by_adapter(
    arguments: argparse.Namespace, modes: Sequence[str], adapters: Mapping[str, str | None]
) -> Iterator[tuple[argparse.Namespace, list[str]]]:
    """Group modes by the adapter they need, so that each is loaded once."""
    groups: dict[str | None, list[str]] = {}
    for mode in modes:
        groups.setdefault(adapters.get(mode) or arguments.adapter, []).append(mode)
    for adapter, group in groups.items():
        own = argparse.Namespace(**vars(arguments))
        own.adapter = adapter
        yield own, group


@contextmanager
def measured_model(llm: Any, arguments: argparse.Namespace) -> Iterator[tuple[Any, CostMeter]]:
    """Count a model's answers and, unless each mode is timed, share them between modes.

    Args:
        llm: The model.
        arguments: ``time_each_mode``, if it is there.

    Yields:
        The model, and the meter that counts what it is asked.
    """
    from langchain_core.language_models import BaseLanguageModel

    from adaptllm_chain.evaluation import CostMeter, SharedAnswers

    meter = CostMeter()
    shares = not getattr(arguments, "time_each_mode", False)
    if not (shares and isinstance(llm, BaseLanguageModel) and llm.cache is None):
        yield llm, meter
        return
    llm.cache = SharedAnswers(meter)
    try:
        yield llm, meter
    finally:
        llm.cache = None


def _open_retriever(arguments: argparse.Namespace, questions: Sequence[Question]) -> Any:
    if arguments.retriever in REPLAYED:
        from adaptllm_chain.retrieval import GivenPassagesRetriever

        retriever = GivenPassagesRetriever.from_questions(questions, source=arguments.retriever, k=arguments.k)
        _check_passages(arguments.retriever, [bool(retriever.passages.get(row.text)) for row in questions])
        return retriever
    from adaptllm_chain.cli.chain_loading import open_retriever

    own = argparse.Namespace(**vars(arguments))
    own.index = Path(arguments.retriever)
    return open_retriever(own)


def _policy(mode: str, arguments: argparse.Namespace) -> Any:
    from adaptllm_chain.cli.chain_loading import choose_policy

    own = argparse.Namespace(**vars(arguments))
    own.mode = mode
    own.popularity = None  # each question brings its own
    if mode in ("never_retrieve", "always_retrieve"):
        own.threshold = None  # it is meant for the mode that has one
    return choose_policy(own)


def _run_mode(
    mode: str,
    policy: Any,
    arguments: argparse.Namespace,
    questions: Sequence[Question],
    llm: Any,
    retriever: Any,
    meter: CostMeter,
) -> list[Prediction]:
    import json

    from adaptllm_chain.chain import AdaptiveRetrievalChain
    from adaptllm_chain.cli.console import progress_bar
    from adaptllm_chain.evaluation import SECONDS_FILE, predict
    from adaptllm_chain.journal import Journal

    chain = AdaptiveRetrievalChain(llm=llm, retriever=retriever, policy=policy, on_empty=arguments.on_empty)
    settings = _settings(mode, arguments, questions, chain)
    size = 4 * arguments.batch_size
    with (
        Journal(arguments.out / f"{mode}.jsonl", settings) as journal,
        (arguments.out / SECONDS_FILE).open("a", encoding="utf-8") as seconds,
        progress_bar(f"question ({mode})", total=len(questions)) as bar,
    ):
        bar.update(min(len(journal) * size, len(questions)))

        def answered(chunk: Chunk) -> None:
            bar.update(chunk.questions)
            row = {"mode": mode, "start": chunk.start, "questions": chunk.questions, "shared": chunk.cost.shared}
            # A line begins with its break: what a kill left unfinished then spoils no other.
            seconds.write("\n" + json.dumps({**row, "seconds": round(chunk.seconds, 3)}))
            seconds.flush()

        return predict(chain, questions, journal, chunk=size, meter=meter, answered=answered)


def _settings(mode: str, arguments: argparse.Namespace, questions: Sequence[Question], chain: Any) -> dict[str, Any]:
    """Name everything the predictions depend on, for a resumed run and for a report to compare."""
    from dataclasses import asdict

    from adaptllm_chain.evaluation import library_versions
    from adaptllm_chain.journal import fingerprint
    from adaptllm_chain.qa_data import describe

    passages: Any = [
        [passage.page_content for passage in (question.gold_passage, *question.given_passages) if passage is not None]
        for question in questions
    ]
    kind = arguments.retriever
    if kind not in REPLAYED:
        kind = "index"
        passages = (Path(arguments.retriever) / "manifest.json").read_text(encoding="utf-8")
    asked = [[question.id, question.text, *question.answers] for question in questions]
    return {
        "data": getattr(arguments, "name", None) or "+".join(_stem(source) for source in arguments.data),
        "trained_on": arguments.trained_on,
        "mode": mode,
        "policy": chain.policy.model_dump(mode="json", exclude={"lookup"}),
        "questions": fingerprint({"asked": asked}),
        "statistics": asdict(describe(questions)),
        "retriever": kind,
        "passages": fingerprint({"passages": passages}),
        "k": arguments.k,
        "on_empty": arguments.on_empty,
        "model": getattr(chain.llm, "model_name", chain.llm.get_name()),
        "weights": getattr(chain.llm, "fingerprint", None),
        "templates": chain.templates.model_dump(),
        "batch_size": arguments.batch_size,
        "max_new_tokens": arguments.max_new_tokens,
        "dtype": arguments.dtype,
        "load_in": arguments.load_in,
        "versions": library_versions(),
    }


def adapter_name(arguments: argparse.Namespace) -> str:
    """Name the adapter, or else the model.

    Args:
        arguments: The model options.

    Returns:
        The name of its folder.
    """
    from adaptllm_chain.cli.model_loading import check_adapter
    from adaptllm_chain.llms.embedded import EMBEDDED, embedded_adapter

    adapter = check_adapter(arguments)
    if adapter is None:
        return Path(arguments.model).resolve().name
    return (embedded_adapter() if adapter == EMBEDDED else Path(adapter).resolve()).name


def _stem(source: str) -> str:
    """Name a source: the file without its endings, or what stands behind ``hub:``."""
    file = Path(source.removeprefix("hub:").replace(":", "-").removesuffix(".gz"))
    return file.stem.lstrip(".") or file.name


def check_retriever(name: str, option: str = "--retriever") -> None:
    """Refuse a retriever that is not there, before anything is asked.

    Args:
        name: What was typed.
        option: Where it was typed.

    Raises:
        InvalidInputError: If it is no index.
    """
    if name not in REPLAYED and not Path(name).is_dir():
        raise InvalidInputError(
            f"{option} {name!r} is neither {' nor '.join(REPLAYED)} nor a folder",
            expected="given, gold, or the folder of an index",
            hint=f"adaptllm index PATH… --out DIR, then {option} DIR",
        )


def _check_passages(source: str, found: list[bool]) -> None:
    """Refuse to measure retrieval on a file that brings no passages, and say where some are missing."""
    from adaptllm_chain.cli.console import note

    other = "gold" if source == "given" else "given"
    if not any(found):
        raise InvalidInputError(
            f"--retriever {source}: the file holds no {source} passage for any of {len(found)} questions",
            expected=f"a file with {source} passages",
            hint=f"--retriever {other}, or --retriever with the folder of an index",
        )
    if not all(found):
        note(f"{found.count(False)} of {len(found)} questions have no {source} passage: their searches bring nothing")
