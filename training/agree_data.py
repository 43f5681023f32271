"""AGREE's tuning data (arXiv:2311.09533): grounded responses to queries without answers.

The base model answers each query several times, zero-shot, from the passages that a search brings. A judge of
entailment says which passage supports which sentence; the best-supported response is kept, with citations, and with
a list of the statements that no passage supports.

    python training/agree_data.py --queries questions.jsonl --passages-of questions.jsonl --out runs/agree

writes into the output folder:

    passages.jsonl, samples.jsonl, scores.jsonl    journals: what was found, sampled and judged. A killed run resumes.
    rows.jsonl       the training rows: prompt, completion, kind ("grounded"), question_id, grounding, passages.
    counts.json      queries, responses, sentences and rows, and the settings they were made with.
    seconds.json     the seconds of each stage, over all legs of the run.
    index            with --passages-of: the collection that was searched.

Other thresholds write the rows again and ask nothing again; what else differs is refused.
Prompts are instructions; ``training/sft.py`` puts a model's format around them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    # ``python training/agree_data.py`` puts training/ on the path, not the folder above it.
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from langchain_core.documents import Document
from langchain_core.runnables import Runnable

from adaptllm_chain.agree.labelling import LINK_ABOVE, UNSUPPORTED_UP_TO
from adaptllm_chain.agree.passages import PASSAGES
from adaptllm_chain.agree.prompts import GroundedPrompt
from adaptllm_chain.cli.data_options import SOURCES
from adaptllm_chain.cli.options import whole_number
from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.journal import Journal, fingerprint, write_whole
from training.agree.chunks import StageClock
from training.agree.passages import find_passages
from training.agree.queries import Query, read_queries
from training.agree.responses import Table, Thresholds, make_row, report
from training.algorithm1 import ask_all, seed_sampler
from training.base_models import add_model_options, identity, load_model
from training.exit_codes import exit_code


def make_parser() -> argparse.ArgumentParser:
    """Describe the command line.

    Returns:
        The parser.
    """
    parser = argparse.ArgumentParser(
        prog="training/agree_data.py",
        description="Sample responses to queries, let a judge of entailment link them to passages, and write the rows "
        "that a model which cites is tuned on.",
    )
    parser.add_argument(
        "--queries",
        nargs="+",
        required=True,
        metavar="FILE",
        help="a .txt or .jsonl file with a question a line, which need no answers, or any question file, whose answers "
        f"are not used: {SOURCES}",
    )
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="output folder; run again to resume")
    parser.add_argument("--limit", type=whole_number, metavar="N", help="take the first N queries")
    passages = parser.add_argument_group("the passages")
    passages.add_argument("--index", type=Path, metavar="DIR", help="what `adaptllm index` made")
    passages.add_argument(
        "--passages-of", nargs="+", metavar="FILE", help="search in the passages of these question files instead"
    )
    passages.add_argument("--embeddings", metavar="E", help="the embedder (default: that of the index, or embedded)")
    passages.add_argument("--k", type=whole_number, default=PASSAGES, help=f"passages a query (default {PASSAGES})")
    add_model_options(parser)
    parser.set_defaults(max_new_tokens=MAX_NEW_TOKENS)
    sampling = parser.add_argument_group("sampling")
    sampling.add_argument("--samples", type=whole_number, default=4, metavar="N", help="responses a query (default 4)")
    sampling.add_argument("--temperature", type=float, default=0.7, help="default 0.7")
    sampling.add_argument("--seed", type=int, default=0, help="of a local model's sampler")
    judging = parser.add_argument_group("judging")
    judging.add_argument(
        "--nli",
        default="embedded",
        metavar="M",
        help="the judge of entailment: 'embedded' (the default), a folder or a name on the hub, such as "
        "google/t5_xxl_true_nli_mixture, AGREE's; or 'python:module:name' for an EntailmentScorer of your own",
    )
    judging.add_argument(
        "--link-above", type=float, default=LINK_ABOVE, help=f"a sentence cites its best passage (default {LINK_ABOVE})"
    )
    judging.add_argument(
        "--unsupported-below",
        type=float,
        default=UNSUPPORTED_UP_TO,
        help=f"a sentence is unsupported if no score is above it (default {UNSUPPORTED_UP_TO})",
    )
    judging.add_argument(
        "--least-grounding",
        type=float,
        default=0.0,
        help="leave out queries whose best response has a lower mean score (default 0: none; beyond the paper)",
    )
    return parser


# One to three sentences.
MAX_NEW_TOKENS = 96


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Make the rows as the command line asks.

    Args:
        arguments: Parsed arguments.

    Returns:
        The counts, as written to ``counts.json``.

    Raises:
        InvalidInputError: If there is no query, or no response that can be used.
        JournalError: If the output folder belongs to other queries, passages, models or settings.
    """
    thresholds = Thresholds(
        link_above=arguments.link_above,
        unsupported_up_to=arguments.unsupported_below,
        least_grounding=arguments.least_grounding,
    )
    queries = read_queries(arguments.queries, arguments.limit)
    arguments.out.mkdir(parents=True, exist_ok=True)
    clock = StageClock(arguments.out / "seconds.json")
    # Every stage adds what its work depends on, so that a journal names all that came before it too.
    settings: dict[str, Any] = {"queries": fingerprint({"queries": queries})}
    found = find_passages(queries, arguments, settings, clock)
    asked = [(query, passages) for query, passages in zip(queries, found, strict=True) if passages]
    if not asked:
        raise InvalidInputError(
            f"the search brought no passage for any of {len(queries)} queries", expected="an index with passages in it"
        )
    settings |= {"passages": fingerprint({"found": [[one.page_content for one in some] for some in found]})}
    responses = _sample(asked, arguments, settings, clock)
    tables = _judge(asked, responses, arguments, settings, clock)
    made = [
        make_row(query, passages, *sampled, thresholds)
        for (query, passages), *sampled in zip(asked, responses, tables, strict=True)
    ]
    rows = [one.row for one in made if one.row is not None]
    if not rows:
        raise InvalidInputError(
            f"none of {sum(map(len, responses))} responses can be used: {responses[0][0]!r:.200}",
            expected="sentences",
            hint="another --model or --prompt-format, or a lower --least-grounding",
        )
    counts = report(len(queries), made) | {"settings": settings | asdict(thresholds)}
    write_whole(arguments.out / "rows.jsonl", "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    write_whole(arguments.out / "counts.json", json.dumps(counts, indent=2, ensure_ascii=False) + "\n")
    return counts


Asked = Sequence[tuple[Query, Sequence[Document]]]


def _sample(
    asked: Asked, arguments: argparse.Namespace, settings: dict[str, Any], clock: StageClock
) -> list[list[str]]:
    """The responses to each query."""
    prompt = GroundedPrompt.for_sampling()
    llm: Runnable[Any, Any] = load_model(arguments)
    settings |= {
        **identity(llm, arguments.model, arguments.base_url),
        **{name: getattr(arguments, name) for name in _SAMPLING},
        "prompt": prompt.template,
    }

    def before_chunk(number: int) -> None:
        if number > first:
            clock.lap("sampling")
        seed_sampler(arguments.seed, number)

    with Journal(arguments.out / "samples.jsonl", settings) as journal:
        first = len(journal)
        clock.start()
        responses = ask_all(
            llm.bind(temperature=arguments.temperature),
            [(query.id, prompt.render(query.text, passages)) for query, passages in asked],
            journal,
            _chunk(arguments),
            times=arguments.samples,
            before_chunk=before_chunk,
            description="sampling",
        )
        if len(journal) > first:
            clock.lap("sampling")
    return responses


_SAMPLING = ("dtype", "load_in", "max_new_tokens", "batch_size", "samples", "temperature", "seed")


def _judge(
    asked: Asked,
    responses: Sequence[Sequence[str]],
    arguments: argparse.Namespace,
    settings: dict[str, Any],
    clock: StageClock,
) -> list[list[Table]]:
    """The scores of each response to each query."""
    from training.agree.judging import judge, load_judge, scorer_identity

    scorer = load_judge(arguments.nli, device=arguments.device)
    settings |= scorer_identity(scorer, arguments.nli)
    with Journal(arguments.out / "scores.jsonl", settings) as journal:
        queries, passages = zip(*asked, strict=True)
        return judge(queries, passages, responses, scorer, journal, _chunk(arguments), clock)


def _chunk(arguments: argparse.Namespace) -> int:
    """Queries a chunk: several batches, so that the model can put prompts of similar length together."""
    return max(1, 8 * arguments.batch_size // arguments.samples)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        argv: Arguments; by default those of the process.

    Returns:
        0, or 2 where the input was at fault.
    """
    arguments = make_parser().parse_args(argv)
    return exit_code("agree_data", lambda: _run_and_tell(arguments))


def _run_and_tell(arguments: argparse.Namespace) -> None:
    counts = run(arguments)
    sentences, rows = counts["sentences"], counts["rows"]
    print(
        f"{counts['queries']} queries, {counts['responses']['responses']} responses, {sentences['sentences']} "
        f"sentences: {sentences['linked']} linked, {sentences['unsupported']} unsupported, {sentences['in_between']} "
        f"in between; rows: {rows['rows']}, {rows['without_citation']} of them without a citation "
        f"-> {arguments.out / 'rows.jsonl'}"
    )


if __name__ == "__main__":
    raise SystemExit(main())
