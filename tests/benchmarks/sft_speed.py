"""Tokens a second of ``training/sft.py`` against the authors' recipe on the plain transformers Trainer.

    python tests/benchmarks/sft_speed.py --data ../shared/data/nq_train_gold.json --out runs/bench/sft_speed.json

The authors' recipe (tLabruna/Adapt-LLM, a fork of alpaca-lora): Alpaca format, LoRA r 8 on q and v, batches padded to
their longest row, the model's own loss with logits for every position. Both sides get the same base model, the same
rows in the same optimizer steps, the same initial adapter, no dropout, and take turns in one process, so that
a busy machine hits both alike. The rows are Algorithm 1's, made of the answers that Llama-2 gave (the file has them).
The result holds the ratio of real (not padding) tokens a second, and the loss of every step on either side.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch
from peft import LoraConfig, get_peft_model
from transformers import DataCollatorForSeq2Seq, Trainer, TrainerCallback, TrainingArguments, set_seed

from adaptllm_chain.llms.encoding import PromptEncoder
from adaptllm_chain.llms.loading import load_base, load_tokenizer
from adaptllm_chain.prompts import PromptTemplates
from adaptllm_chain.qa_data import read_questions
from adaptllm_chain.ret.marker import RET
from training.completion_trainer import BucketedSampler
from training.labelling import Evidence, adaptive_rows
from training.recipe import Recipe
from training.rows import encode_rows, within_length
from training.trainer import build_trainer


class _Turn(TrainerCallback):
    """Waits for its turn before every optimizer step, and notes the step's seconds."""

    def __init__(self) -> None:
        self.mine = threading.Semaphore(0)
        self.done = threading.Semaphore(0)
        self.seconds: list[float] = []
        self._began = 0.0

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        self.mine.acquire()
        self._began = time.perf_counter()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self.seconds.append(time.perf_counter() - self._began)
        self.done.release()


class _PlainTrainer(Trainer):
    """The plain Trainer, with the rows of each step as the other side has them, in no order inside a step."""

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        step = self.args.per_device_train_batch_size * self.args.gradient_accumulation_steps
        # All of one length: the order stays the random one, the sets of rows are those of the bucketed sampler.
        return BucketedSampler([0] * len(self.train_dataset), step, self.args.seed)


def plain_trainer(model: Any, tokenizer: Any, trainer: Any, recipe: Recipe, micro_batch: int) -> Trainer:
    """Build the authors' side on the token ids that the other side trains on."""
    rows = trainer.train_dataset.select_columns(["input_ids", "labels"])
    arguments = TrainingArguments(
        output_dir=str(recipe.out / "plain"),
        max_steps=trainer.args.max_steps,
        learning_rate=recipe.learning_rate,
        lr_scheduler_type="constant",
        per_device_train_batch_size=micro_batch,
        gradient_accumulation_steps=recipe.batch_size // micro_batch,
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        use_cpu=model.device.type == "cpu",
        bf16=False,
        seed=recipe.seed,
        disable_tqdm=True,
        dataloader_pin_memory=False,
        remove_unused_columns=False,
    )
    collate = DataCollatorForSeq2Seq(tokenizer, padding=True, label_pad_token_id=-100, return_tensors="pt")
    return _PlainTrainer(model=model, args=arguments, train_dataset=rows, data_collator=collate)


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Measure both sides in turns."""
    tokenizer = load_tokenizer(arguments.base)
    templates = PromptTemplates()
    questions = list(read_questions(arguments.data))
    rows = [
        row
        for question in questions
        for row in adaptive_rows(question, Evidence(str(question.metadata["prediction"])), templates)
    ]
    scratch = Path(tempfile.mkdtemp())
    recipe = Recipe(
        base=arguments.base,
        rows=(scratch / "unused",),
        out=scratch,
        format="alpaca",
        lora_dropout=0.0,
        batch_size=arguments.batch_size,
        micro_batch_size=arguments.micro_batch_size,
        dtype=arguments.dtype,
    )
    encoded = encode_rows(rows, PromptEncoder(tokenizer, recipe.format, RET))
    fits = within_length(encoded, recipe.max_length)
    encoded = [row for row, fit in zip(encoded, fits, strict=True) if fit]

    def fresh_model() -> Any:
        set_seed(recipe.seed)
        return load_base(arguments.base, dtype=recipe.dtype, device=arguments.device)

    sides: dict[str, Any] = {}
    ours = build_trainer(fresh_model(), tokenizer, encoded, recipe)
    ours.args.max_steps = arguments.steps
    ours.args.logging_steps = 1
    ours.args.save_strategy = "no"
    lora = LoraConfig(r=8, lora_alpha=16, lora_dropout=0.0, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
    for micro_batch in arguments.plain_micro_batches:
        model = get_peft_model(fresh_model(), lora)
        model.load_state_dict(ours.model.state_dict())
        sides[f"plain, micro-batch {micro_batch}"] = plain_trainer(model, tokenizer, ours, recipe, micro_batch)
    sides["ours"] = ours
    order = list(BucketedSampler([0] * len(ours.train_dataset), recipe.batch_size, recipe.seed))
    lengths = [len(ids) for ids in ours.train_dataset["input_ids"]]
    tokens = [
        sum(lengths[row] for row in order[step * recipe.batch_size : (step + 1) * recipe.batch_size])
        for step in range(arguments.steps)
    ]
    measured = take_turns(sides)
    rate = {name: sum(tokens) / sum(seconds) for name, (seconds, _) in measured.items()}
    return {
        "command": " ".join(sys.argv),
        "rows": len(encoded),
        "steps": arguments.steps,
        "tokens": sum(tokens),
        "threads": torch.get_num_threads(),
        "tokens_a_second": {name: round(value, 1) for name, value in rate.items()},
        "ratio": {name: round(rate["ours"] / value, 2) for name, value in rate.items() if name != "ours"},
        "ratio_a_step": {
            name: [round(a / b, 2) for a, b in zip(seconds, measured["ours"][0], strict=True)]
            for name, (seconds, _) in measured.items()
            if name != "ours"
        },
        "losses": {name: [round(loss, 4) for loss in losses] for name, (_, losses) in measured.items()},
        "largest_loss_difference": max(
            abs(a - b)
            for name, (_, losses) in measured.items()
            for a, b in zip(losses, measured["ours"][1], strict=True)
        ),
        "seconds_a_step": {name: [round(s, 2) for s in seconds] for name, (seconds, _) in measured.items()},
        "median_seconds": {name: round(statistics.median(seconds), 2) for name, (seconds, _) in measured.items()},
    }


def take_turns(sides: dict[str, Trainer]) -> dict[str, tuple[list[float], list[float]]]:
    """Train all sides, one optimizer step at a time in turns.

    Returns:
        The seconds and the loss of every step, a side.
    """
    turns = {name: _Turn() for name in sides}
    failures: list[BaseException] = []

    def work(name: str) -> None:
        try:
            sides[name].train()
        except BaseException as error:
            failures.append(error)
            for _ in range(sides[name].args.max_steps):
                turns[name].done.release()

    for name, trainer in sides.items():
        trainer.add_callback(turns[name])
    threads = [threading.Thread(target=work, args=(name,)) for name in sides]
    for thread in threads:
        thread.start()
    steps = next(iter(sides.values())).args.max_steps
    for step in range(steps):
        for turn in turns.values():
            turn.mine.release()
            turn.done.acquire()
        print(f"step {step + 1} of {steps}", file=sys.stderr, flush=True)
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return {
        name: (turns[name].seconds, [entry["loss"] for entry in trainer.state.log_history if "loss" in entry])
        for name, trainer in sides.items()
    }


def make_parser() -> argparse.ArgumentParser:
    """Describe the command line."""
    parser = argparse.ArgumentParser(description="SFT: tokens a second, ours against the plain Trainer.")
    parser.add_argument("--data", required=True, help="a file of the authors' (nq_train_gold.json), with predictions")
    parser.add_argument("--base", default="embedded")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--batch-size", type=int, default=64, help="the authors' is 128, in micro-batches of 32")
    parser.add_argument("--micro-batch-size", type=int, default=16)
    parser.add_argument("--plain-micro-batches", type=int, nargs="+", default=[16])
    parser.add_argument("--out", type=Path, metavar="FILE")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    arguments = make_parser().parse_args(argv)
    result = run(arguments)
    text = json.dumps(result, indent=2)
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(text + "\n", encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
