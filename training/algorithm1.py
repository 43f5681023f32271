"""Algorithm 1 of "When to Retrieve" (arXiv:2404.19705): training rows from a base model's own answers.

The base model answers every question with no context. Where it is right, ``parametric prompt -> answer``
is kept; where it is wrong, ``parametric prompt -> <RET>`` and ``context prompt -> answer``.

    python training/algorithm1.py --data questions.jsonl --out runs/algorithm1

writes into the output folder:

    answers.jsonl   the journal: what the base answered. A killed run resumes from it.
    rows.jsonl      the training rows: prompt, completion, kind, label, question_id.
    counts.json     questions and rows a class, and the settings they were made with.

Prompts are instructions; ``training/sft.py`` puts a model's format around them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from langchain_core.runnables import Runnable
from tqdm import tqdm

from adaptllm_chain.errors import AdaptLLMError, InvalidInputError
from adaptllm_chain.journal import Journal, write_whole
from adaptllm_chain.metrics import is_known
from adaptllm_chain.prompts import PromptTemplates
from adaptllm_chain.qa_data import FORMATS, read_many
from adaptllm_chain.records import Question
from adaptllm_chain.ret.marker import RET

Row = dict[str, str]


def ask_all(
    llm: Runnable[Any, Any], questions: Sequence[Question], templates: PromptTemplates, journal: Journal, chunk: int
) -> list[str]:
    """Ask every question with no context, a chunk at a time.

    A chunk is written whole or not at all, so a resumed run makes the same batches as an unbroken one.

    Args:
        llm: The base model: any LangChain language model.
        questions: The questions.
        templates: The prompts; the closed-book one is used.
        journal: Where finished chunks are kept; those it already holds are not asked again.
        chunk: Questions a chunk.

    Returns:
        One answer a question, in order.
    """
    answered = [answer["id"] for row in journal for answer in row["answers"]]
    journal.check_order(answered, [question.id for question in questions])
    done = len(journal)
    with tqdm(total=len(questions), initial=min(done * chunk, len(questions)), unit="question", desc="asking") as bar:
        for start in range(done * chunk, len(questions), chunk):
            part = questions[start : start + chunk]
            outputs = llm.batch([templates.render("closed_book", question.text) for question in part])
            answers = [str(getattr(output, "text", output)) for output in outputs]
            journal.extend(
                [{"answers": [{"id": q.id, "answer": a} for q, a in zip(part, answers, strict=True)]}],
            )
            bar.update(len(part))
    return [answer["answer"] for row in journal for answer in row["answers"]]


def rows_of(
    question: Question,
    prediction: str,
    templates: PromptTemplates,
    *,
    rule: str = "contains",
    closed_book: bool = False,
) -> Iterator[Row]:
    """Make the training rows of one question (Algorithm 1, lines 4 to 13).

    Args:
        question: The question with its accepted answers.
        prediction: What the base model answered with no context.
        templates: The prompts.
        rule: When a prediction is right: ``"contains"`` (the authors') or ``"exact_match"``.
        closed_book: Add ``closed-book prompt -> answer``, the row of the never-retrieve model.

    Yields:
        Rows. A question without a gold passage gives no context row.
    """
    known = is_known(prediction, question.answers, rule=rule)
    # Of several accepted answers, a known question is taught the one that the model itself gave.
    said = [answer for answer in question.answers if is_known(prediction, [answer], rule=rule)]
    answer = said[0] if said else question.answers[0]
    shared = {"label": "known" if known else "unknown", "question_id": question.id}
    yield {
        "prompt": templates.render("parametric", question.text),
        "completion": answer if known else RET,
        "kind": "parametric",
        **shared,
    }
    if not known and question.gold_passage is not None:
        yield {
            "prompt": templates.render("context", question.text, [question.gold_passage]),
            "completion": answer,
            "kind": "context",
            **shared,
        }
    if closed_book:
        yield {
            "prompt": templates.render("closed_book", question.text),
            "completion": answer,
            "kind": "closed_book",
            **shared,
        }


def count(questions: int, rows: Iterable[Row]) -> dict[str, Any]:
    """Count what was made.

    Args:
        questions: How many questions were asked.
        rows: The rows.

    Returns:
        Questions, known and unknown ones, the share of ``<RET>`` in [0, 1], and rows a kind.
    """
    kinds: Counter[str] = Counter()
    labels: Counter[str] = Counter()
    for row in rows:
        kinds[row["kind"]] += 1
        if row["kind"] == "parametric":
            labels[row["label"]] += 1
    return {
        "questions": questions,
        "known": labels["known"],
        "unknown": labels["unknown"],
        "ret_share": round(labels["unknown"] / questions, 4) if questions else None,
        "rows": dict(sorted(kinds.items())),
    }


def make_parser() -> argparse.ArgumentParser:
    """Describe the command line.

    Returns:
        The parser.
    """
    parser = argparse.ArgumentParser(
        prog="training/algorithm1.py",
        description="Ask a base model every question and write the training rows of Algorithm 1.",
    )
    parser.add_argument("--data", action="append", required=True, metavar="FILE", help="question file; repeatable")
    parser.add_argument("--format", default="auto", choices=["auto", *FORMATS], help="default: found out from the file")
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="output folder; run again to resume")
    parser.add_argument("--model", default="embedded", help="base model (default: the embedded SmolLM2-135M-Instruct)")
    parser.add_argument("--dtype", default="auto", help="auto, float32, bfloat16 or float16")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1 …")
    parser.add_argument("--load-in", choices=["8bit", "4bit"], help="quantise the base with bitsandbytes (GPU)")
    parser.add_argument("--prompt-format", choices=["plain", "alpaca", "chat"], help="default: the model's own")
    parser.add_argument(
        "--rule", default="contains", choices=["contains", "exact_match"], help="when an answer is right"
    )
    parser.add_argument("--closed-book-rows", action="store_true", help="add the rows of the never-retrieve model")
    parser.add_argument("--max-new-tokens", type=int, default=32)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--limit", type=int, metavar="N", help="take the first N questions")
    return parser


def _settings(arguments: argparse.Namespace, templates: PromptTemplates, llm: Any) -> dict[str, Any]:
    """Name everything the answers depend on; the labelling rule is not among it, so it may change on a resume."""
    return {
        "data": [[Path(file).name, hashlib.sha256(Path(file).read_bytes()).hexdigest()] for file in arguments.data],
        "format": arguments.format,
        "limit": arguments.limit,
        "model": arguments.model,
        "dtype": arguments.dtype,
        "load_in": arguments.load_in,
        "prompt": templates.closed_book,
        "weights": llm.fingerprint,
        "prompt_format": llm.format,
        "max_new_tokens": arguments.max_new_tokens,
        "batch_size": arguments.batch_size,
    }


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Run Algorithm 1 as the command line asks.

    Args:
        arguments: Parsed arguments.

    Returns:
        The counts, as written to ``counts.json``.

    Raises:
        InvalidInputError: If the files hold no question.
    """
    from adaptllm_chain.llms import LocalLLM

    questions = read_many(arguments.data, format=arguments.format)[: arguments.limit]
    if not questions:
        raise InvalidInputError(f"no question in {', '.join(arguments.data)}", expected="at least one question")
    templates = PromptTemplates()
    llm = LocalLLM.from_pretrained(
        arguments.model,
        format=arguments.prompt_format,
        dtype=arguments.dtype,
        device=arguments.device,
        load_in=arguments.load_in,
        batch_size=arguments.batch_size,
        max_new_tokens=arguments.max_new_tokens,
    )
    settings = _settings(arguments, templates, llm)
    # Several batches a chunk, so that the model can put questions of similar length together.
    with Journal(arguments.out / "answers.jsonl", settings) as journal:
        predictions = ask_all(llm, questions, templates, journal, chunk=8 * arguments.batch_size)
    rows = [
        row
        for question, prediction in zip(questions, predictions, strict=True)
        for row in rows_of(question, prediction, templates, rule=arguments.rule, closed_book=arguments.closed_book_rows)
    ]
    counts = count(len(questions), rows) | {"rule": arguments.rule, "settings": settings}
    write_whole(arguments.out / "rows.jsonl", "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    write_whole(arguments.out / "counts.json", json.dumps(counts, indent=2, ensure_ascii=False) + "\n")
    return counts


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        argv: Arguments; by default those of the process.

    Returns:
        0, or 2 where the input was at fault.
    """
    arguments = make_parser().parse_args(argv)
    try:
        counts = run(arguments)
    except (AdaptLLMError, OSError) as error:
        print(f"algorithm1: {error}", file=sys.stderr)
        return 2
    print(
        f"{counts['questions']} questions: {counts['known']} known, {counts['unknown']} unknown "
        f"(<RET> {counts['ret_share']:.1%}); rows: {counts['rows']} -> {arguments.out / 'rows.jsonl'}"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
