"""Algorithm 1 of "When to Retrieve" (arXiv:2404.19705): training rows from a base model's own answers.

The base model answers every question with no context. Where it is right, ``parametric prompt -> answer``
is kept; where it is wrong, ``parametric prompt -> <RET>`` and ``context prompt -> answer``.

    python training/algorithm1.py --data questions.jsonl --out runs/algorithm1

writes into the output folder:

    answers.jsonl    the journal: what the base answered. A killed run resumes from it.
    rows.jsonl       the training rows: prompt, completion, kind, label, question_id.
    counts.json      questions and rows a class, and the settings they were made with.

and, where asked for, ``never_rows.jsonl`` and ``always_rows.jsonl``; another ``--label`` writes files of its own
(``rows_soft.jsonl``, ``counts_soft.json``, and a further journal). The answers are kept apart from the rows: another
label or rule asks nothing again.
Prompts are instructions; ``training/sft.py`` puts a model's format around them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    # ``python training/algorithm1.py`` puts training/ on the path, not the folder above it.
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from langchain_core.runnables import Runnable
from tqdm import tqdm

from adaptllm_chain.cli.data_options import SOURCES, add_data_options, read_arguments
from adaptllm_chain.cli.options import whole_number
from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.journal import Journal, write_whole
from adaptllm_chain.prompts import PromptTemplates
from adaptllm_chain.qa_data import ReadReport, read_many
from adaptllm_chain.records import Question
from training.base_models import add_model_options, identity, load_model
from training.exit_codes import exit_code
from training.labelling import (
    Evidence,
    Row,
    adaptive_rows,
    always_retrieve_row,
    count,
    never_retrieve_row,
)

Prompts = Sequence[tuple[str, str]]


def ask_all(
    llm: Runnable[Any, Any],
    prompts: Prompts,
    journal: Journal,
    chunk: int,
    *,
    times: int = 1,
    before_chunk: Callable[[int], None] = lambda _: None,
    description: str = "asking",
) -> list[list[str]]:
    """Ask a model every prompt, a chunk at a time.

    A chunk is written whole or not at all, so a resumed run makes the same batches as an unbroken one.

    Args:
        llm: Any LangChain language model.
        prompts: The question's identifier and the prompt, for each.
        journal: Where finished chunks are kept; those it already holds are not asked again.
        chunk: Prompts a chunk.
        times: How often each is asked, for a model that samples.
        before_chunk: Called with a chunk's number before it is asked, such as to seed a sampler.
        description: What the progress bar says.

    Returns:
        ``times`` answers a prompt, in order.
    """
    answered = [answer["id"] for row in journal for answer in row["answers"]]
    journal.check_order(answered, [identifier for identifier, _ in prompts])
    done = len(journal)
    with tqdm(total=len(prompts), initial=min(done * chunk, len(prompts)), unit="question", desc=description) as bar:
        for start in range(done * chunk, len(prompts), chunk):
            part = prompts[start : start + chunk]
            before_chunk(start // chunk)
            outputs = _answers(llm, part, times)
            texts = [str(getattr(output, "text", output)) for output in outputs]
            journal.extend(
                [
                    {
                        "answers": [
                            {"id": identifier, "answers": texts[at * times : (at + 1) * times]}
                            for at, (identifier, _) in enumerate(part)
                        ]
                    }
                ]
            )
            bar.update(len(part))
    return [answer["answers"] for row in journal for answer in row["answers"]]


def _answers(llm: Runnable[Any, Any], part: Prompts, times: int) -> list[Any]:
    """Ask for one chunk; an error names the question that it comes from."""
    outputs = llm.batch([prompt for _, prompt in part for _ in range(times)], return_exceptions=True)
    for at, output in enumerate(outputs):
        if isinstance(output, Exception):
            identifier, prompt = part[at // times]
            problem = (
                f"the base model failed on question {identifier!r} ({prompt[:60]!r}…): "
                f"{type(output).__name__}: {output}"
            )
            if (refusal := _network_error(output)) is not None:
                raise InvalidInputError(
                    f"{problem} ({refusal})",
                    expected="a server that answers",
                    hint="start the server that --base-url names (such as `transformers serve MODEL`), then this "
                    "command again: the chunks before it are kept",
                ) from output
            raise InvalidInputError(
                problem, hint="the chunks before it are kept: mend or remove the question, or run the command again"
            ) from output
    return outputs


def _network_error(error: BaseException | None) -> OSError | None:
    """Find what the network said behind an error; the clients of servers wrap it in errors of their own."""
    while error is not None and not isinstance(error, OSError):
        error = error.__cause__ or error.__context__
    return error


def make_parser() -> argparse.ArgumentParser:
    """Describe the command line.

    Returns:
        The parser.
    """
    parser = argparse.ArgumentParser(
        prog="training/algorithm1.py",
        description="Ask a base model every question and write the training rows of Algorithm 1.",
    )
    parser.add_argument("--data", action="append", required=True, metavar="FILE", help=f"{SOURCES}; repeatable")
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="output folder; run again to resume")
    parser.add_argument("--limit", type=whole_number, metavar="N", help="take the first N questions")
    add_data_options(parser)
    add_model_options(parser)
    rows = parser.add_argument_group("the rows")
    rows.add_argument("--rule", default="contains", choices=["contains", "exact_match"], help="when an answer is right")
    rows.add_argument(
        "--label",
        default="known",
        choices=["known", "soft", "utility"],
        help="known: Algorithm 1 (default); soft: the share of --samples answers that are right; "
        "utility: <RET> only where the gold passage makes a wrong answer right",
    )
    rows.add_argument(
        "--samples", type=whole_number, default=8, metavar="K", help="with --label soft: answers a question"
    )
    rows.add_argument("--temperature", type=float, default=0.7, help="with --label soft: of the sampled answers")
    rows.add_argument("--seed", type=int, default=0, help="with --label soft: of a local model's sampler")
    rows.add_argument(
        "--baseline-rows",
        action="store_true",
        help="also write never_rows.jsonl and always_rows.jsonl: the rows of the never-retrieve and "
        "always-retrieve models for the same questions",
    )
    return parser


def data_hash(questions: Sequence[Question]) -> str:
    """Hash what the rows are made of.

    Args:
        questions: The questions, in order.

    Returns:
        64 hexadecimal digits (SHA-256), the same for the same questions from whatever file.
    """
    digest = hashlib.sha256()
    for question in questions:
        passage = question.gold_passage.page_content if question.gold_passage is not None else None
        digest.update(json.dumps([question.id, question.text, question.answers, passage]).encode())
    return digest.hexdigest()


def gather(
    arguments: argparse.Namespace,
    llm: Runnable[Any, Any],
    questions: Sequence[Question],
    templates: PromptTemplates,
    settings: dict[str, Any],
) -> list[Evidence]:
    """Ask what the chosen label needs; each kind of answer has a journal of its own.

    Args:
        arguments: The command line's.
        llm: The base model.
        questions: The questions.
        templates: The prompts.
        settings: What every answer depends on.

    Returns:
        One piece of evidence a question.
    """
    # Several batches a chunk, so that the model can put questions of similar length together.
    chunk = 8 * arguments.batch_size
    closed_book = [(question.id, templates.render("closed_book", question.text)) for question in questions]
    asked = settings | {"prompt": templates.closed_book}
    with Journal(arguments.out / "answers.jsonl", asked) as journal:
        answers = [answer for (answer,) in ask_all(llm, closed_book, journal, chunk)]
    if arguments.label == "soft":
        sampling = {"samples": arguments.samples, "temperature": arguments.temperature, "seed": arguments.seed}
        with Journal(arguments.out / "samples.jsonl", asked | sampling) as journal:
            samples = ask_all(
                llm.bind(temperature=arguments.temperature),
                closed_book,
                journal,
                max(1, chunk // arguments.samples),
                times=arguments.samples,
                before_chunk=lambda number: seed_sampler(arguments.seed, number),
                description="sampling",
            )
        return [Evidence(answer, tuple(drawn)) for answer, drawn in zip(answers, samples, strict=True)]
    if arguments.label == "utility":
        with_passage = [
            (question.id, templates.render("context", question.text, [question.gold_passage]))
            for question in questions
            if question.gold_passage is not None
        ]
        with Journal(arguments.out / "passage_answers.jsonl", settings | {"prompt": templates.context}) as journal:
            read = ask_all(llm, with_passage, journal, chunk, description="asking with passages")
        by_id = {identifier: answer for (identifier, _), (answer,) in zip(with_passage, read, strict=True)}
        return [
            Evidence(answer, with_passage=by_id.get(question.id))
            for question, answer in zip(questions, answers, strict=True)
        ]
    return [Evidence(answer) for answer in answers]


def seed_sampler(seed: int, chunk: int) -> None:
    """Seed a local model's sampler for one chunk, so that a resumed run draws what an unbroken one would have drawn.

    Args:
        seed: Of the run.
        chunk: The number of the chunk.
    """
    if "torch" in sys.modules:  # else the model is not a local one
        sys.modules["torch"].manual_seed(seed * 1_000_003 + chunk)


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Run Algorithm 1 as the command line asks.

    Args:
        arguments: Parsed arguments.

    Returns:
        The counts, as written to ``counts.json``.

    Raises:
        InvalidInputError: If the files hold no question.
    """
    report = ReadReport()
    questions = read_many(arguments.data, **read_arguments(arguments), report=report)[: arguments.limit]
    if not questions:
        raise InvalidInputError(f"no question in {', '.join(arguments.data)}", expected="at least one question")
    templates = PromptTemplates()
    llm = load_model(arguments)
    # The label and the rule are not among the settings: they may change, and nothing is asked again.
    settings = {
        "data": data_hash(questions),
        **identity(llm, arguments.model, arguments.base_url),
        "dtype": arguments.dtype,
        "load_in": arguments.load_in,
        "max_new_tokens": arguments.max_new_tokens,
        "batch_size": arguments.batch_size,
    }
    evidence = gather(arguments, llm, questions, templates, settings)
    choice = {"label": arguments.label, "rule": arguments.rule}
    pairs = list(zip(questions, evidence, strict=True))
    rows = [row for question, said in pairs for row in adaptive_rows(question, said, templates, **choice)]
    counts = count(len(questions), rows) | choice
    counts |= {"skipped": report.skipped, "duplicates": report.duplicates, "settings": settings}
    _write(rows_file(arguments), rows)
    if arguments.baseline_rows:
        never = [never_retrieve_row(question, said, templates, rule=arguments.rule) for question, said in pairs]
        always = [always_retrieve_row(question, said, templates, rule=arguments.rule) for question, said in pairs]
        _write(arguments.out / "never_rows.jsonl", never)
        _write(arguments.out / "always_rows.jsonl", [row for row in always if row is not None])
    write_whole(_named(arguments, "counts.json"), json.dumps(counts, indent=2, ensure_ascii=False) + "\n")
    return counts


def rows_file(arguments: argparse.Namespace) -> Path:
    """Say where the rows go.

    Args:
        arguments: The command line's.

    Returns:
        ``rows.jsonl`` in the output folder for the paper's label, ``rows_<label>.jsonl`` for another.
    """
    return _named(arguments, "rows.jsonl")


def _named(arguments: argparse.Namespace, name: str) -> Path:
    path: Path = arguments.out / name
    return path if arguments.label == "known" else path.with_stem(f"{path.stem}_{arguments.label}")


def _write(path: Path, rows: Iterable[Row]) -> None:
    write_whole(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        argv: Arguments; by default those of the process.

    Returns:
        0, or 2 where the input was at fault.
    """
    arguments = make_parser().parse_args(argv)
    return exit_code("algorithm1", lambda: _run_and_tell(arguments))


def _run_and_tell(arguments: argparse.Namespace) -> None:
    counts = run(arguments)
    print(
        f"{counts['questions']} questions: {counts['known']} known, {counts['unknown']} unknown "
        f"(<RET> {counts['ret_share']:.1%}); {counts['skipped']} broken rows skipped; "
        f"rows: {counts['rows']} -> {rows_file(arguments)}"
    )


if __name__ == "__main__":
    raise SystemExit(main())
