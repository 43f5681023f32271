"""``adaptllm evaluate``: a data file, a model and a retriever into accuracy and retrieval share, mode by mode."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adaptllm_chain.cli.data_options import SOURCES, add_data_options, read_arguments
from adaptllm_chain.cli.options import MODES, add_decision_options, add_model_options, whole_number
from adaptllm_chain.errors import InvalidInputError

if TYPE_CHECKING:
    from adaptllm_chain.evaluation import Prediction

REPLAYED = ("given", "gold")
_DEFAULT_MODES = "never_retrieve,always_retrieve,adaptive"


def add_parser(subparsers: Any) -> None:
    """Add the command.

    Args:
        subparsers: What ``ArgumentParser.add_subparsers`` returned.
    """
    parser = subparsers.add_parser(
        "evaluate",
        help="measure accuracy and retrieval share on a data file",
        description="Asks every question of a file in every mode and prints accuracy and retrieval share with 95 % "
        "intervals. Predictions are kept while it runs: the same command again resumes a killed run.",
    )
    parser.add_argument("--data", required=True, action="append", metavar="FILE", help=f"{SOURCES}; repeatable")
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="for predictions and summary.json")
    parser.add_argument(
        "--modes", type=_modes, default=_modes(_DEFAULT_MODES), metavar="A,B", help=f"default: {_DEFAULT_MODES}"
    )
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
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Evaluate.

    Args:
        arguments: The parsed options.

    Returns:
        0, or 1 if some questions failed.
    """
    import json

    from adaptllm_chain.cli.chain_loading import open_retriever
    from adaptllm_chain.cli.console import note
    from adaptllm_chain.cli.model_loading import load_llm
    from adaptllm_chain.evaluation import render_table, sample_questions, summarise
    from adaptllm_chain.journal import write_whole
    from adaptllm_chain.qa_data import read_many

    _check_retriever(arguments.retriever)
    questions = sample_questions(
        read_many(arguments.data, deduplicate=False, **read_arguments(arguments)), arguments.sample, arguments.seed
    )
    if arguments.retriever in REPLAYED:
        from adaptllm_chain.retrieval import GivenPassagesRetriever

        retriever: Any = GivenPassagesRetriever.from_questions(questions, source=arguments.retriever, k=arguments.k)
        _check_passages(arguments.retriever, [bool(retriever.passages.get(row.text)) for row in questions])
    else:
        arguments.index = Path(arguments.retriever)
        retriever = open_retriever(arguments)
    policies = {mode: _policy(mode, arguments) for mode in arguments.modes}
    llm = load_llm(arguments)
    _answer_once(llm)
    predictions: dict[str, list[Prediction]] = {}
    for mode, policy in policies.items():
        predictions[mode] = _run_mode(mode, policy, arguments, questions, llm, retriever)
    never = predictions.get("never_retrieve")
    summaries = {mode: summarise(rows, never) for mode, rows in predictions.items()}
    written = {mode: summary.model_dump() for mode, summary in summaries.items()}
    write_whole(arguments.out / "summary.json", json.dumps(written, indent=2) + "\n")
    print(render_table(summaries))
    ranking = summaries["adaptive"].auc if "adaptive" in summaries else None
    if ranking is not None:
        print(f'\narea under the curve of P(<RET>) against "never_retrieve is wrong": {ranking:.3f}')
    threshold = getattr(policies.get("adaptive"), "threshold", None)
    _write_trade_off(predictions, threshold, arguments.out / "trade_off.json")
    failed = [row for rows in predictions.values() for row in rows if row.error is not None]
    if failed:
        note(f"{len(failed)} questions failed and count as wrong; the first: {failed[0].question!r}: {failed[0].error}")
    return 1 if failed else 0


def _write_trade_off(predictions: dict[str, list[Prediction]], threshold: float | None, file: Path) -> None:
    """Write what every threshold would have given, where the three modes that it takes were run."""
    from adaptllm_chain.evaluation import trade_off
    from adaptllm_chain.journal import write_whole

    never, always, adaptive = (predictions.get(m) for m in ("never_retrieve", "always_retrieve", "adaptive"))
    file.unlink(missing_ok=True)  # of an earlier run with other modes
    if never is None or always is None or adaptive is None or threshold is not None:
        return  # a threshold hides what the model said to the questions above it
    if any(row.ret_probability is None for row in adaptive):
        return  # the model tells none, so there is no threshold to choose
    bounds = trade_off(adaptive, never, always)
    write_whole(file, bounds.model_dump_json(indent=2) + "\n")
    print(f"right by either path: {bounds.oracle}; every threshold: {file}")


def _answer_once(llm: Any) -> None:
    """Let the modes share their answers: adaptive asks with passages what always_retrieve has asked already."""
    from langchain_core.caches import InMemoryCache
    from langchain_core.language_models import BaseLanguageModel

    if isinstance(llm, BaseLanguageModel) and llm.cache is None:
        llm.cache = InMemoryCache()


def _policy(mode: str, arguments: argparse.Namespace) -> Any:
    from adaptllm_chain.cli.chain_loading import choose_policy

    own = argparse.Namespace(**vars(arguments))
    own.mode = mode
    own.popularity = None  # each question brings its own
    if mode in ("never_retrieve", "always_retrieve"):
        own.threshold = None  # it is meant for the mode that has one
    return choose_policy(own)


def _run_mode(
    mode: str, policy: Any, arguments: argparse.Namespace, questions: Any, llm: Any, retriever: Any
) -> list[Prediction]:
    from adaptllm_chain.chain import AdaptiveRetrievalChain
    from adaptllm_chain.cli.console import progress_bar
    from adaptllm_chain.evaluation import predict
    from adaptllm_chain.journal import Journal

    chain = AdaptiveRetrievalChain(llm=llm, retriever=retriever, policy=policy, on_empty=arguments.on_empty)
    settings = _settings(mode, arguments, questions, chain)
    with (
        Journal(arguments.out / f"{mode}.jsonl", settings) as journal,
        progress_bar(f"question ({mode})", total=len(questions)) as bar,
    ):
        return predict(chain, questions, journal, chunk=4 * arguments.batch_size, progress=bar.update)


def _settings(mode: str, arguments: argparse.Namespace, questions: Any, chain: Any) -> dict[str, Any]:
    """Name everything the predictions depend on, for the journal to compare when a run is resumed."""
    from adaptllm_chain.journal import fingerprint

    passages: Any = [
        [passage.page_content for passage in (question.gold_passage, *question.given_passages) if passage is not None]
        for question in questions
    ]
    if arguments.retriever not in REPLAYED:
        passages = (Path(arguments.retriever) / "manifest.json").read_text(encoding="utf-8")
    asked = [[question.id, question.text, *question.answers] for question in questions]
    return {
        "mode": mode,
        "policy": chain.policy.model_dump(mode="json", exclude={"lookup"}),
        "questions": fingerprint({"asked": asked}),
        "retriever": arguments.retriever,
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
    }


def _check_retriever(name: str) -> None:
    if name not in REPLAYED and not Path(name).is_dir():
        raise InvalidInputError(
            f"--retriever {name!r} is neither {' nor '.join(REPLAYED)} nor a folder",
            expected="given, gold, or the folder of an index",
            hint="adaptllm index PATH… --out DIR, then --retriever DIR",
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


def _modes(text: str) -> tuple[str, ...]:
    modes = tuple(part.strip() for part in text.split(",") if part.strip())
    wrong = [mode for mode in modes if mode not in MODES]
    if wrong or not modes:
        raise argparse.ArgumentTypeError(f"{text!r}: choose among {', '.join(MODES)}")
    return modes
