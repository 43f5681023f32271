"""Supervised fine-tuning of an adapter on the rows of Algorithm 1 or AGREE, with TRL and LoRA.

    python training/sft.py --config training/configs/smollm2-nq-adaptive.yaml
    python training/sft.py --config training/configs/llama2-7b-nq-adaptive.yaml --load-in 4bit --epochs 1
    accelerate launch --config_file training/accelerate/ddp.yaml training/sft.py --config …

The loss is on the completion alone. A killed run continues from its last checkpoint when the same command
is given again. The output folder then holds the adapter, ``prompt_spec.json`` (the format that it was
trained on), ``recipe.yaml`` (what it was trained with), ``result.json`` (counts, losses, dev figures), the curves as
a picture, and a card.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if __name__ == "__main__":
    # ``python training/sft.py`` puts training/ on the path, not the folder above it.
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import yaml

from adaptllm_chain.errors import InvalidInputError
from adaptllm_chain.journal import write_whole
from adaptllm_chain.ret.marker import RET
from training.adapter_folder import check_recipe, last_checkpoint, save_adapter, versions
from training.contradictions import refuse_for_machine
from training.dev_figures import citing_figures, dev_figures
from training.exit_codes import exit_code
from training.model_card import model_card
from training.processes import Processes
from training.recipe import Recipe, make_parser, overrides
from training.ret_token import add_to_model, add_to_tokenizer
from training.rows import answer_room, encode_rows, read_rows, select_rows, split_rows, within_length
from training.trainer import build_trainer

if TYPE_CHECKING:
    from adaptllm_chain.llms import LocalLLM


def run(recipe: Recipe) -> dict[str, Any]:
    """Train an adapter.

    Args:
        recipe: The recipe.

    Returns:
        What is written to ``result.json``. Of several processes only the first writes; the others get
        an empty result.

    Raises:
        InvalidInputError: If the recipe does not suit the machine, or no row is left to train on.
        JournalError: If the output folder belongs to another recipe.
    """
    processes = Processes.from_environment()
    refuse_for_machine(recipe, processes)
    from transformers import set_seed

    from adaptllm_chain.llms.encoding import PromptEncoder
    from adaptllm_chain.llms.generation import weights_fingerprint
    from adaptllm_chain.llms.loading import load_tokenizer
    from training.curves import draw_curves  # before the training: a missing matplotlib must not cost its result
    from training.stopwatch import Stopwatch

    rows, rows_sha256 = read_rows(recipe.rows)
    recipe.out.mkdir(parents=True, exist_ok=True)
    written = recipe.model_dump(mode="json") | {"rows_sha256": rows_sha256}
    recipe_file = recipe.out / "recipe.yaml"
    check_recipe(recipe_file, written, yet_unknown="base_weights")
    result_file = recipe.out / "result.json"
    if result_file.exists() and (recipe.out / "adapter_model.safetensors").exists():
        finished: dict[str, Any] = json.loads(result_file.read_text(encoding="utf-8"))
        return finished if processes.is_main else {}

    train_side, dev_side = split_rows(rows, recipe.dev_fraction, recipe.seed)
    tokenizer = load_tokenizer(recipe.base)
    ret_id = add_to_tokenizer(tokenizer) if recipe.adds_token else None
    chosen = select_rows(train_side, recipe)
    encoder = PromptEncoder(tokenizer, recipe.format, RET)
    encoded = encode_rows(chosen, encoder)
    fits = within_length(encoded, recipe.max_length)
    kinds = Counter(row["kind"] for row, fit in zip(chosen, fits, strict=True) if fit)
    if not kinds:
        raise InvalidInputError(
            f"every row is longer than max_length={recipe.max_length} tokens", hint="--max-length with a larger number"
        )

    set_seed(recipe.seed)  # of the adapter's initial weights
    model = _load_base(recipe, processes)
    _check_lengths(recipe, model)
    # A path may hold another model by now; a run that is resumed must not change its base.
    written["base_weights"] = weights_fingerprint(model)
    check_recipe(recipe_file, written)
    if ret_id is not None:
        add_to_model(model, tokenizer)
    fitting = [row for row, fit in zip(encoded, fits, strict=True) if fit]
    trainer = build_trainer(model, tokenizer, fitting, recipe, ret_id=ret_id, processes=processes)
    stopwatch = Stopwatch()
    trainer.add_callback(stopwatch)
    # Only now that everything could be built: a mistyped recipe must not claim the folder.
    if processes.is_main:
        write_whole(recipe_file, yaml.safe_dump(written, sort_keys=False))
    checkpoint = last_checkpoint(recipe.out / "checkpoints")
    outcome = trainer.train(resume_from_checkpoint=checkpoint)
    # All processes have to help where each holds a piece of the model; from here on the first works alone.
    weights = trainer.accelerator.get_state_dict(trainer.model_wrapped) if processes.sharded else None
    if processes.count > 1:
        trainer.accelerator.end_training()
    if not processes.is_main:
        return {}
    trained_on = tuple(kind for kind in recipe.kinds if kinds[kind])
    spec = save_adapter(trainer.model, recipe, trained_on, state_dict=weights)
    if ret_id is not None:
        # Beside an adapter with an added token; whoever loads it then resizes the base without being asked.
        tokenizer.save_pretrained(str(recipe.out))

    history = trainer.state.log_history
    result: dict[str, Any] = {
        "rows": dict(sorted(kinds.items())),
        "rows_too_long": fits.count(False),
        "steps": trainer.state.global_step,
        "processes": processes.count,
        "resumed_from_step": int(checkpoint.rsplit("-", 1)[1]) if checkpoint else None,
        "train_loss": mean_loss(history, otherwise=outcome.training_loss),
        "train_seconds": round(stopwatch.seconds, 1),
        "losses": [[entry["step"], round(entry["loss"], 4)] for entry in history if "loss" in entry],
        "learning_rates": [[entry["step"], entry["learning_rate"]] for entry in history if "loss" in entry],
        "versions": versions(),
    }
    if processes.sharded:
        del trainer, model, weights
        gc.collect()
        llm = _reload(recipe)
    else:
        llm = _wrap(trainer.model, tokenizer, spec)
    encoded_dev = encode_rows(dev_side, encoder)
    fitting_dev = within_length(encoded_dev, recipe.max_length)
    result["dev_rows_too_long"] = fitting_dev.count(False)
    dev = [(row, ids) for row, ids, fit in zip(dev_side, encoded_dev, fitting_dev, strict=True) if fit]
    result["dev"] = dev_figures(llm, [row for row, _ in dev])
    if "grounded" in trained_on and (grounded := [pair for pair in dev if pair[0]["kind"] == "grounded"]):
        llm.batch_size = recipe.micro_batch_size  # these prompts are long; so many fitted while training
        room = answer_room([ids for _, ids in grounded], getattr(llm.model.config, "max_position_embeddings", None))
        result["dev"]["grounded"] = citing_figures(llm, [row for row, _ in grounded], room)
    draw_curves(recipe.out / "curves.png", result["losses"], result["learning_rates"], title=recipe.out.name)
    card = model_card(recipe, spec, result, encoder=encoder, rows_sha256=rows_sha256)
    write_whole(recipe.out / "README.md", card)
    write_whole(result_file, json.dumps(result, indent=2) + "\n")
    return result


def _check_lengths(recipe: Recipe, model: Any) -> None:
    most = getattr(model.config, "max_position_embeddings", None)
    if most is not None and recipe.max_length > most:
        raise InvalidInputError(
            f"max_length={recipe.max_length}, but the base reads {most} tokens at most", hint=f"--max-length {most}"
        )


def _load_base(recipe: Recipe, processes: Processes) -> Any:
    from adaptllm_chain.llms.devices import pick_device, pick_training_dtype
    from adaptllm_chain.llms.loading import load_base

    device = pick_device(recipe.device)
    dtype = pick_training_dtype(recipe.dtype, device)
    # FSDP moves a model to the GPUs piece by piece; whole it might fit on none of them.
    return load_base(recipe.base, dtype=dtype, device="cpu" if processes.sharded else device, load_in=recipe.load_in)


def _wrap(model: Any, tokenizer: Any, spec: Any) -> LocalLLM:
    from adaptllm_chain.llms.local import LocalLLM

    if model.device.type == "cpu":
        model.float()  # the figures are taken in the type that a CPU serves in
    return LocalLLM(model=model, tokenizer=tokenizer, prompt_spec=spec, **_ANSWERING)


def _reload(recipe: Recipe) -> LocalLLM:
    """Load what was saved: a model that is spread over several processes cannot answer in one of them."""
    from adaptllm_chain.llms.local import LocalLLM

    return LocalLLM.from_pretrained(
        recipe.base, adapter=recipe.out, dtype=recipe.dtype, device=recipe.device, **_ANSWERING
    )


_ANSWERING: Mapping[str, Any] = {"max_new_tokens": 16, "batch_size": 32}


def mean_loss(history: Sequence[Mapping[str, Any]], *, otherwise: float) -> float:
    """Average the logged losses over the steps of a whole run.

    The trainer's own average divides the losses since a resumption by the steps since the beginning.

    Args:
        history: The trainer's log, which its checkpoints carry over.
        otherwise: What to say where none was logged, since the run was too short.

    Returns:
        The mean loss a step.
    """
    logged = [(entry["step"], entry["loss"]) for entry in history if "loss" in entry]
    steps = [step - before for (step, _), before in zip(logged, (0, *(at for at, _ in logged)), strict=False)]
    if not logged:
        return otherwise
    return float(sum(loss * count for (_, loss), count in zip(logged, steps, strict=True)) / sum(steps))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        argv: Arguments; by default those of the process.

    Returns:
        0, or 2 where the input was at fault.
    """
    arguments = make_parser().parse_args(argv)
    return exit_code("sft", lambda: _train_and_tell(arguments))


def _train_and_tell(arguments: argparse.Namespace) -> None:
    recipe = Recipe.load(arguments.config, dict(overrides(arguments)))
    if recipe.max_steps is not None:
        print(f"sft: max_steps={recipe.max_steps} wins over epochs={recipe.epochs:g}", file=sys.stderr)
    result = run(recipe)
    if not result:  # the first of several processes speaks for all
        return
    resumed = result["resumed_from_step"]
    print(
        f"{result['steps']} steps on {result['rows']} rows, loss {result['train_loss']:.3f}, "
        f"{result['train_seconds']} s{f', resumed from step {resumed}' if resumed else ''} -> {recipe.out}"
    )
    print(json.dumps(result["dev"]))


if __name__ == "__main__":
    raise SystemExit(main())
