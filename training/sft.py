"""Supervised fine-tuning of an adapter on the rows of Algorithm 1, with TRL and LoRA.

    python training/sft.py --config training/configs/smollm2-nq.yaml
    python training/sft.py --config training/configs/smollm2-nq.yaml --learning-rate 5e-4 --epochs 1

The loss is on the completion alone. A killed run continues from its last checkpoint when the same command
is given again. The output folder then holds the adapter, ``prompt_spec.json`` (the format that it was
trained on), ``recipe.yaml`` (what it was trained with) and ``result.json`` (counts, losses, dev figures).
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if __name__ == "__main__":
    # ``python training/sft.py`` puts training/ on the path, not the folder above it.
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import yaml

from adaptllm_chain.errors import AdaptLLMError, InvalidInputError
from adaptllm_chain.journal import write_whole
from adaptllm_chain.ret.marker import RET
from training.adapter_folder import check_recipe, last_checkpoint, model_card, save_adapter, versions
from training.recipe import Recipe, make_parser, overrides
from training.rows import Row, read_rows, select_rows, split_rows, within_length, write_texts

if TYPE_CHECKING:
    from trl import SFTTrainer


def build_trainer(model: Any, tokenizer: Any, texts: Sequence[Row], recipe: Recipe) -> SFTTrainer:
    """Make the trainer, with a LoRA adapter on the model.

    Args:
        model: The base model.
        tokenizer: Its tokenizer; texts are padded right while training.
        texts: ``prompt`` and ``completion`` as texts.
        recipe: The hyper-parameters.

    Returns:
        A TRL trainer whose loss is on the completion alone. Its data set holds every text.

    Raises:
        InvalidInputError: If the trainer dropped rows.
    """
    from datasets import Dataset
    from peft import LoraConfig
    from trl import SFTConfig

    from training.completion_trainer import CompletionTrainer

    layers = {name.rsplit(".", 1)[-1] for name, _ in model.named_modules()}
    if missing := sorted(set(recipe.lora_targets) - layers):
        raise InvalidInputError(
            f"lora_targets: the model has no layer {', '.join(missing)}",
            expected=f"names among {', '.join(sorted(name for name in layers if name.endswith('proj')))}",
        )
    on_cpu = model.device.type == "cpu"
    trainer = CompletionTrainer(
        model=model,
        processing_class=tokenizer,
        train_dataset=Dataset.from_list([dict(text) for text in texts]),
        peft_config=LoraConfig(
            r=recipe.lora_r,
            lora_alpha=recipe.lora_alpha,
            lora_dropout=recipe.lora_dropout,
            target_modules=list(recipe.lora_targets),
            task_type="CAUSAL_LM",
        ),
        args=SFTConfig(
            output_dir=str(recipe.out / "checkpoints"),
            num_train_epochs=recipe.epochs,
            learning_rate=recipe.learning_rate,
            lr_scheduler_type=recipe.schedule,
            warmup_steps=recipe.warmup_steps,
            per_device_train_batch_size=recipe.micro_batch_size,
            gradient_accumulation_steps=recipe.batch_size // recipe.micro_batch_size,
            max_length=recipe.max_length,
            completion_only_loss=True,
            activation_checkpointing=recipe.gradient_checkpointing,
            use_cpu=on_cpu,
            # The base is loaded in the recipe's type; autocast on top of it would only copy.
            bf16=False,
            save_steps=recipe.save_steps,
            save_total_limit=2,
            logging_steps=5,
            report_to=[],
            seed=recipe.seed,
            dataloader_pin_memory=not on_cpu,
        ),
    )
    kept = len(trainer.train_dataset)
    if kept != len(texts):
        raise InvalidInputError(f"the trainer kept {kept} of {len(texts)} rows", expected="all of them")
    return trainer


def dev_figures(llm: Any, rows: Sequence[Row]) -> dict[str, Any]:
    """Measure an adapter on the parametric rows of the dev side.

    Args:
        llm: The model with its adapter.
        rows: The dev rows.

    Returns:
        Counts, the share that asks for retrieval, how P(``<RET>``) ranks unknown questions above known ones
        (area under the curve), and how many direct answers are right.
    """
    from adaptllm_chain.metrics import auc
    from adaptllm_chain.ret.marker import is_request, read_spelling

    parametric = [row for row in rows if row["kind"] == "parametric"]
    if not parametric:
        return {"questions": 0}
    result = llm.generate([row["prompt"] for row in parametric])
    outputs = [generations[0] for generations in result.generations]
    asked = [is_request(read_spelling(output.text)) for output in outputs]
    unknown = [row["label"] != "known" for row in parametric]
    probabilities = [output.generation_info["ret_probability"] for output in outputs]
    both_classes = len(set(unknown)) == 2
    return {
        "questions": len(parametric),
        "known": unknown.count(False),
        "ret_share": sum(asked) / len(asked),
        "ret_share_of_known": _share(asked, [not flag for flag in unknown]),
        "ret_share_of_unknown": _share(asked, unknown),
        "auc": auc(probabilities, unknown) if both_classes else None,
        "ret_probability_quantiles": [sorted(probabilities)[int(q * (len(probabilities) - 1))] for q in _QUANTILES],
    }


_QUANTILES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)


def _share(flags: Sequence[bool], among: Sequence[bool]) -> float | None:
    chosen = [flag for flag, take in zip(flags, among, strict=True) if take]
    return sum(chosen) / len(chosen) if chosen else None


def run(recipe: Recipe) -> dict[str, Any]:
    """Train an adapter.

    Args:
        recipe: The recipe.

    Returns:
        What is written to ``result.json``.

    Raises:
        JournalError: If the output folder belongs to another recipe.
    """
    from transformers import set_seed

    from adaptllm_chain.llms.encoding import PromptEncoder
    from adaptllm_chain.llms.loading import load_base, load_tokenizer
    from adaptllm_chain.llms.local import LocalLLM

    rows = [row for path in recipe.rows for row in read_rows(path)]
    recipe.out.mkdir(parents=True, exist_ok=True)
    written = recipe.model_dump(mode="json") | {
        "rows_sha256": hashlib.sha256(b"".join(path.read_bytes() for path in recipe.rows)).hexdigest()
    }
    recipe_file = recipe.out / "recipe.yaml"
    check_recipe(recipe_file, written)
    result_file = recipe.out / "result.json"
    if result_file.exists():
        finished: dict[str, Any] = json.loads(result_file.read_text(encoding="utf-8"))
        return finished

    train_side, dev_side = split_rows(rows, recipe.dev_fraction, recipe.seed)
    tokenizer = load_tokenizer(recipe.base)
    chosen = select_rows(train_side, recipe)
    texts = write_texts(chosen, PromptEncoder(tokenizer, recipe.format, RET))
    fits = within_length(texts, tokenizer, recipe.max_length)
    kinds = Counter(row["kind"] for row, fit in zip(chosen, fits, strict=True) if fit)
    if not kinds:
        raise InvalidInputError(
            f"every row is longer than max_length={recipe.max_length} tokens", hint="--max-length with a larger number"
        )

    set_seed(recipe.seed)  # of the adapter's initial weights
    model = load_base(recipe.base, dtype=recipe.dtype, device=recipe.device, load_in=recipe.load_in)
    trainer = build_trainer(model, tokenizer, [text for text, fit in zip(texts, fits, strict=True) if fit], recipe)
    # Only now that everything could be built: a mistyped recipe must not claim the folder.
    write_whole(recipe_file, yaml.safe_dump(written, sort_keys=False))
    checkpoint = last_checkpoint(recipe.out / "checkpoints")
    outcome = trainer.train(resume_from_checkpoint=checkpoint)
    spec = save_adapter(trainer.model, recipe, tuple(kind for kind in recipe.kinds if kinds[kind]))

    if model.device.type == "cpu":
        trainer.model.float()  # the figures are taken in the type that a CPU serves in
    llm = LocalLLM(model=trainer.model, tokenizer=tokenizer, prompt_spec=spec, max_new_tokens=16, batch_size=32)
    losses = [[entry["step"], round(entry["loss"], 4)] for entry in trainer.state.log_history if "loss" in entry]
    result: dict[str, Any] = {
        "rows": dict(sorted(kinds.items())),
        "rows_too_long": fits.count(False),
        "steps": trainer.state.global_step,
        "resumed_from_step": int(checkpoint.rsplit("-", 1)[1]) if checkpoint else None,
        "train_loss": outcome.training_loss,
        "train_seconds": round(outcome.metrics["train_runtime"], 1),
        "losses": losses,
        "versions": versions(),
        "dev": dev_figures(llm, dev_side),
    }
    write_whole(recipe.out / "README.md", model_card(recipe, spec, result))
    write_whole(result_file, json.dumps(result, indent=2) + "\n")
    return result


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        argv: Arguments; by default those of the process.

    Returns:
        0, or 2 where the input was at fault.
    """
    arguments = make_parser().parse_args(argv)
    try:
        recipe = Recipe.load(arguments.config, dict(overrides(arguments)))
        result = run(recipe)
    except (AdaptLLMError, OSError) as error:
        print(f"sft: {error}", file=sys.stderr)
        return 2
    resumed = result["resumed_from_step"]
    print(
        f"{result['steps']} steps on {result['rows']} rows, loss {result['train_loss']:.3f}, "
        f"{result['train_seconds']} s{f', resumed from step {resumed}' if resumed else ''} -> {recipe.out}"
    )
    print(json.dumps(result["dev"]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
