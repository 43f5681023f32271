"""Running AGREE's evaluation: ``adaptllm evaluate --suite agree``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adaptllm_chain.cli.console import note, progress_bar
from adaptllm_chain.cli.options import NONE, whole_number
from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.llms.embedded import EMBEDDED

if TYPE_CHECKING:
    from collections.abc import Callable

    from adaptllm_chain.entailment import EntailmentScorer
    from adaptllm_chain.evaluation import Chunk, Planned
    from adaptllm_chain.journal import Journal
    from adaptllm_chain.records import Question

SUITE = "agree"
# Three sentences with marks, and the statements without support.
_MAX_NEW_TOKENS = 160
# They say how Adapt-LLM decides, and nothing to AGREE.
_DECIDING = ("threshold", "never_adapter", "always_adapter")


def add_grounding_options(parser: argparse.ArgumentParser) -> None:
    """Add what AGREE's evaluation needs beside the other suites.

    Args:
        parser: The parser of ``adaptllm evaluate``.
    """
    group = parser.add_argument_group("--suite agree")
    group.add_argument(
        "--nli",
        default=EMBEDDED,
        metavar="N",
        help="the judge of entailment: embedded (the default), or a folder or a name on the hub",
    )
    group.add_argument(
        "--judge", metavar="N", help="another judge of entailment to measure with, if not the one that links (--nli)"
    )
    group.add_argument(
        "--budget",
        type=whole_number,
        metavar="B",
        help="the most model calls of test-time adaptation (default: that of GroundingLoop)",
    )


def run_grounding(arguments: argparse.Namespace) -> int:
    """Let every system answer, judge the answers, then make the report.

    Args:
        arguments: The parsed options of ``adaptllm evaluate`` with ``suite``.

    Returns:
        0, or 1 if some questions failed.
    """
    from adaptllm_chain.agree.loop import BUDGET
    from adaptllm_chain.cli import report
    from adaptllm_chain.cli.chain_loading import open_retriever
    from adaptllm_chain.cli.measuring import check_retriever
    from adaptllm_chain.cli.model_loading import LastModel, check_adapter
    from adaptllm_chain.cli.nli_loading import load_scorer
    from adaptllm_chain.cli.suite import REPORT_FOLDER, named_files, open_index
    from adaptllm_chain.evaluation import SUITES
    from adaptllm_chain.evaluation.grounding import SYSTEMS

    _check(arguments)
    check_adapter(arguments)
    if arguments.index is not None:
        check_retriever(str(arguments.index), "--index")
    suite = SUITES[SUITE]
    files = named_files(arguments.data, suite)
    arguments = argparse.Namespace(**vars(arguments))
    arguments.max_new_tokens = arguments.max_new_tokens or _MAX_NEW_TOKENS
    arguments.budget = arguments.budget or BUDGET
    arguments.index = open_index(arguments, list(files.values()))
    scorer = load_scorer(arguments.nli, device=arguments.device)
    retriever = None
    sets: list[_Asked] = []
    for one in suite.experiments:
        if one.data in files:
            own = _options_for(one, arguments, files[one.data], suite.data[one.data])
            retriever = retriever or open_retriever(own)
            sets.append(_Asked(own, _questions(own), retriever, scorer))
    models = LastModel()
    for tuned in (False, True):
        # One model after the other, not one data set after the other: each is loaded once.
        systems = [name for name, system in SYSTEMS.items() if system.tuned is tuned]
        for asked in sets:
            asked.answer(systems, models, adapter=arguments.adapter if tuned else NONE)
    del models
    for asked in sets:
        asked.answer_extractively()
    judge = arguments.judge or arguments.nli
    measuring = scorer if judge == arguments.nli else load_scorer(judge, device=arguments.device)
    failed = [error for asked in sets for error in asked.judge(judge, measuring)]
    folders = [asked.options.out for asked in sets]
    code = report.run(argparse.Namespace(folders=folders, out=arguments.out / REPORT_FOLDER))
    if failed:
        note(f"{len(failed)} answers failed; the first: {failed[0]}")
    return 1 if failed else code


def _check(arguments: argparse.Namespace) -> None:
    given = [f"--{name.replace('_', '-')}" for name in _DECIDING if getattr(arguments, name) is not None]
    if given:
        raise InvalidInputError(
            f"{', '.join(given)} with --suite {SUITE}, in which no model decides whether to retrieve",
            expected="--adapter, --nli, --budget, --k",
        )
    if arguments.adapter is None:
        raise InvalidInputError(
            f"--suite {SUITE} without --adapter",
            expected="the adapter that was tuned to cite; the baselines are asked without one",
            hint="--adapter DIR, as training/sft.py made it of the rows of training/agree_data.py",
        )


def _options_for(one: Planned, arguments: argparse.Namespace, file: str, name: str) -> argparse.Namespace:
    from adaptllm_chain.cli.measuring import adapter_name

    own = argparse.Namespace(**vars(arguments))
    own.data, own.name, own.k = [file], name, arguments.k or one.k
    own.out = arguments.out / f"{one.data}-{one.retriever}-k{own.k}"
    own.trained_on = arguments.trained_on or adapter_name(arguments)
    return own


def _questions(arguments: argparse.Namespace) -> list[Question]:
    from adaptllm_chain.cli.data_options import read_arguments
    from adaptllm_chain.evaluation import sample_questions
    from adaptllm_chain.qa_data import read_many

    questions = read_many(arguments.data, deduplicate=False, **read_arguments(arguments))
    return sample_questions(questions, arguments.sample, arguments.seed)


@dataclass(frozen=True, slots=True)
class _Asked:
    """One data set, and what its questions are answered with.

    Attributes:
        options: The options, with the folder of this data set.
        questions: The questions.
        retriever: The retriever.
        scorer: The judge of entailment that systems ask while they answer.
    """

    options: argparse.Namespace
    questions: list[Question]
    retriever: Any
    scorer: EntailmentScorer

    def answer(self, systems: Sequence[str], models: Any, *, adapter: str) -> None:
        """Let systems answer that share a model."""
        from adaptllm_chain.cli.measuring import measured_model
        from adaptllm_chain.evaluation.grounding import SYSTEMS, predict_grounded

        own = argparse.Namespace(**vars(self.options))
        own.adapter = adapter
        with measured_model(models.load(own), own) as (llm, meter):
            for name in systems:
                chain = SYSTEMS[name].build(self._ingredients(llm))
                settings = self._settings(name, chain.prompt.template, llm)
                with self._journal(name, settings) as (journal, answered):
                    predict_grounded(
                        SYSTEMS[name],
                        chain,
                        self.questions,
                        journal,
                        chunk=self._chunk,
                        meter=meter,
                        answered=answered,
                    )

    def answer_extractively(self) -> None:
        """Let the writer answer whose right marks are known."""
        from adaptllm_chain.evaluation.grounding import EXTRACTIVE, ExtractiveWriter, predict_controlled

        settings = self._settings(EXTRACTIVE, ExtractiveWriter.prompt.template, None)
        with self._journal(EXTRACTIVE, settings) as (journal, answered):
            predict_controlled(
                self._ingredients(None),
                self.questions,
                journal,
                chunk=self._chunk,
                seed=self.options.seed,
                answered=answered,
            )

    def judge(self, name: str, scorer: EntailmentScorer) -> Iterator[str]:
        """Measure all answers; yields what went wrong with questions."""
        from adaptllm_chain.evaluation.grounding import ENTAILMENT_FILE, EXTRACTIVE, SYSTEMS, GroundedRun, KnownScores
        from adaptllm_chain.journal import Journal, read_journal

        with (
            Journal(self.options.out / ENTAILMENT_FILE, {"suite": SUITE, "entailment": name}) as journal,
            progress_bar("pair judged") as bar,
        ):
            scores = KnownScores.kept_in(journal, name, scorer, bar.update)
            for mode in (*SYSTEMS, EXTRACTIVE):
                file = self.options.out / f"{mode}.jsonl"
                GroundedRun.read(file, scores)  # has judged what is not known, and keeps it
                for answer in (one for chunk in read_journal(file)[1] for one in _answers(chunk["predictions"])):
                    if answer["error"] is not None:
                        yield f"{self.options.name}, {mode}: {answer['question']!r}: {answer['error']}"

    @property
    def _chunk(self) -> int:
        return 4 * int(self.options.batch_size)

    def _ingredients(self, llm: Any) -> Any:
        from adaptllm_chain.evaluation.grounding import Ingredients

        return Ingredients(
            llm=llm, retriever=self.retriever, scorer=self.scorer, k=self.options.k, budget=self.options.budget
        )

    @contextmanager
    def _journal(self, mode: str, settings: dict[str, Any]) -> Iterator[tuple[Journal, Callable[[Chunk], None]]]:
        from adaptllm_chain.evaluation import SECONDS_FILE
        from adaptllm_chain.journal import Journal

        out: Path = self.options.out
        with (
            Journal(out / f"{mode}.jsonl", settings) as journal,
            (out / SECONDS_FILE).open("a", encoding="utf-8") as seconds,
            progress_bar(f"question ({mode})", total=len(self.questions)) as bar,
        ):
            bar.update(sum(len(row["predictions"]) for row in journal))

            def answered(chunk: Chunk) -> None:
                bar.update(chunk.questions)
                row = {"mode": mode, "start": chunk.start, "questions": chunk.questions, "shared": chunk.cost.shared}
                # A line begins with its break: what a kill left unfinished then spoils no other.
                seconds.write("\n" + json.dumps({**row, "seconds": round(chunk.seconds, 3)}))
                seconds.flush()

            yield journal, answered

    def _settings(self, mode: str, prompt: str, llm: Any) -> dict[str, Any]:
        """Name everything the predictions depend on, for a resumed run and for a report to compare."""
        from dataclasses import asdict

        from adaptllm_chain.evaluation import library_versions
        from adaptllm_chain.journal import fingerprint
        from adaptllm_chain.qa_data import describe

        options = self.options
        manifest = (Path(options.index) / "manifest.json").read_text(encoding="utf-8")
        return {
            "suite": SUITE,
            "data": options.name,
            "trained_on": options.trained_on,
            "mode": mode,
            "questions": fingerprint({"asked": [[row.id, row.text, *row.answers] for row in self.questions]}),
            "statistics": asdict(describe(self.questions)),
            "retriever": "index",
            "passages": fingerprint({"passages": manifest}),
            "k": options.k,
            "budget": options.budget,
            "scorer": options.nli,
            "prompt": prompt,
            "model": None if llm is None else getattr(llm, "model_name", llm.get_name()),
            "weights": getattr(llm, "fingerprint", None),
            "batch_size": options.batch_size,
            "max_new_tokens": options.max_new_tokens,
            "dtype": options.dtype,
            "load_in": options.load_in,
            "seed": options.seed,
            "versions": library_versions(),
        }


def _answers(rows: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """List the answers of predictions; each of the controlled experiment has several."""
    for row in rows:
        yield from [row] if "answer" in row else (row[name] for name in ("written", "attributed", "looped"))
