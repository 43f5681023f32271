"""A model that was only asked to say ``<RET>`` against one that was trained to: the same base, the same questions.

    python tests/benchmarks/prompted.py --data ../shared/data/popqa_test_test.json --sample 200 \\
        --out tests/benchmarks/results/prompted.json

One side is the base without an adapter and with ``PromptTemplates.few_shot()``, the other the base with an adapter and
the prompts that it was trained on. Each answers every question from memory, and as its own decision says, with the
passages that the file gives. Reported for each, with 95 % intervals: the area under the curve of P(<RET>) against
"its own answer from memory is wrong", the share of questions that it retrieves for, and the accuracy (containment, as
in the paper) from memory and as decided. The result holds identifiers and numbers, no text of the data.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from adaptllm_chain import AdaptiveRetrievalChain, LocalLLM, PromptTemplates
from adaptllm_chain.evaluation import sample_questions
from adaptllm_chain.evaluation.resampling import Resamples
from adaptllm_chain.metrics import contains_answer
from adaptllm_chain.qa_data import read_questions
from adaptllm_chain.records import AdaptiveAnswer, Question
from adaptllm_chain.retrieval.given import GivenPassagesRetriever

CHUNK = 32


def measure(
    llm: LocalLLM, prompts: PromptTemplates | None, questions: Sequence[Question], resamples: Resamples
) -> dict[str, Any]:
    """Ask one side everything."""
    retriever = GivenPassagesRetriever.from_questions(questions)

    def ask(policy: str) -> list[AdaptiveAnswer]:
        chain = AdaptiveRetrievalChain(llm=llm, retriever=retriever, policy=policy, prompts=prompts, stop=["\n"])
        results: list[AdaptiveAnswer] = []
        for start in range(0, len(questions), CHUNK):
            results += chain.batch([question.text for question in questions[start : start + CHUNK]])
            print(f"{policy}: {len(results)} of {len(questions)}", file=sys.stderr, flush=True)
        return results

    def right(results: Sequence[AdaptiveAnswer]) -> list[bool]:
        pairs = zip(results, questions, strict=True)
        return [contains_answer(result["answer"], question.answers) for result, question in pairs]

    begun = time.process_time()
    knows, decided = right(ask("never_retrieve")), ask("adaptive")
    chances = [result["ret_probability"] for result in decided]
    retrieved = [result["retrieved"] for result in decided]
    figures = {
        "auc": resamples.auc(chances, [not known for known in knows]),
        "retrieves": resamples.share(retrieved),
        "right_from_memory": resamples.share(knows),
        "right_as_decided": resamples.share(right(decided)),
        "right_when_direct": resamples.share(right(decided), [not asked for asked in retrieved]),
    }
    columns = zip(questions, chances, retrieved, knows, right(decided), strict=True)
    return {
        "model": llm.model_name,
        "figures": {name: figure and figure.model_dump() for name, figure in figures.items()},
        "cpu_seconds": round(time.process_time() - begun),
        "rows": [[question.id, round(chance, 4), *map(int, flags)] for question, chance, *flags in columns],
    }


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Measure both sides, one after the other."""
    questions = sample_questions(list(read_questions(arguments.data)), arguments.sample, arguments.seed)
    resamples = Resamples(len(questions))
    settings = {"max_new_tokens": arguments.max_new_tokens, "batch_size": arguments.batch_size}
    bare = LocalLLM.from_pretrained(arguments.base, **settings)
    prompted = measure(bare, PromptTemplates.few_shot(), questions, resamples)
    del bare
    tuned = LocalLLM.from_pretrained(arguments.base, adapter=arguments.adapter, **settings)
    return {
        "command": " ".join(sys.argv),
        "questions": len(questions),
        "columns_of_rows": ["id", "p_ret", "retrieved", "right_from_memory", "right_as_decided"],
        "prompted": prompted,
        "tuned": measure(tuned, None, questions, resamples),
    }


def make_parser() -> argparse.ArgumentParser:
    """Describe the command line."""
    parser = argparse.ArgumentParser(description="The decision of a prompted base model against that of a tuned one.")
    parser.add_argument("--data", required=True, help="questions with passages, such as popqa_test_test.json")
    parser.add_argument("--base", default="embedded")
    parser.add_argument("--adapter", default="embedded")
    parser.add_argument("--sample", type=int, help="draw so many questions")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--max-new-tokens", type=int, default=24)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--out", type=Path, metavar="FILE")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    arguments = make_parser().parse_args(argv)
    result = run(arguments)
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(compact_json(result) + "\n", encoding="utf-8")
    for side in ("prompted", "tuned"):
        print(json.dumps({side: result[side]["figures"]}, indent=2))
    return 0


def compact_json(result: dict[str, Any]) -> str:
    """Write a result with one line a question."""
    return re.sub(r"\[\s+([^\[\]]*?)\s+\]", lambda row: f"[{' '.join(row[1].split())}]", json.dumps(result, indent=2))


if __name__ == "__main__":
    raise SystemExit(main())
