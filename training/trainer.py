"""From a base model, encoded rows and a recipe to a trainer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from adaptllm_chain.errors import InvalidInputError
from training.processes import Processes
from training.recipe import Recipe
from training.ret_token import mend_head, trained_rows
from training.rows import Row

if TYPE_CHECKING:
    from trl import SFTTrainer


def build_trainer(
    model: Any,
    tokenizer: Any,
    rows: Sequence[Row],
    recipe: Recipe,
    *,
    ret_id: int | None = None,
    processes: Processes | None = None,
) -> SFTTrainer:
    """Make the trainer, with a LoRA adapter on the model.

    Args:
        model: The base model.
        tokenizer: Its tokenizer; rows are padded right while training.
        rows: ``input_ids`` and ``labels``, and the ``kind`` that rows which begin alike have in common.
        recipe: The hyper-parameters.
        ret_id: The added token whose rows are trained; ``None`` where ``<RET>`` is text.
        processes: How the run was launched; by default as one process.

    Returns:
        A TRL trainer. Its data set holds every row.

    Raises:
        InvalidInputError: If the trainer dropped rows.
    """
    from datasets import Dataset
    from trl import SFTConfig

    from training.completion_trainer import CompletionTrainer

    count = 1 if processes is None else processes.count
    # A sharded model waits on the CPU for its pieces to be moved.
    on_cpu = model.device.type == "cpu" and not (processes is not None and processes.sharded)
    autocast = {} if on_cpu else _autocast(model, recipe)
    model = _with_adapter(model, recipe, ret_id)
    trainer = CompletionTrainer(
        model=model,
        processing_class=tokenizer,
        train_dataset=Dataset.from_list([dict(row) for row in rows]),
        args=SFTConfig(
            output_dir=str(recipe.out / "checkpoints"),
            num_train_epochs=recipe.epochs,
            max_steps=-1 if recipe.max_steps is None else recipe.max_steps,
            learning_rate=recipe.learning_rate,
            lr_scheduler_type=recipe.schedule,
            warmup_steps=recipe.warmup_steps,
            per_device_train_batch_size=recipe.micro_batch_size,
            gradient_accumulation_steps=recipe.batch_size // (recipe.micro_batch_size * count),
            max_length=recipe.max_length,
            activation_checkpointing=recipe.gradient_checkpointing,
            use_cpu=on_cpu,
            **({"bf16": False} | autocast),
            # Every weight of the adapter is used in every pass; looking for others costs a walk of the graph.
            ddp_find_unused_parameters=False,
            save_steps=recipe.save_steps,
            save_total_limit=2,
            logging_steps=5,
            report_to=[],
            seed=recipe.seed,
            dataloader_pin_memory=not on_cpu,
        ),
    )
    for weight in model.parameters():
        if weight.requires_grad:
            # TRL rounds the adapter of a quantised base to bfloat16, PEFT gives trained rows the base's type;
            # small steps are lost in either. The authors' adapters are float32 too.
            weight.data = weight.data.float()
    kept = len(trainer.train_dataset)
    if kept != len(rows):
        raise InvalidInputError(f"the trainer kept {kept} of {len(rows)} rows", expected="all of them")
    return trainer


def _with_adapter(model: Any, recipe: Recipe, ret_id: int | None) -> Any:
    from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training

    layers = {name.rsplit(".", 1)[-1] for name, _ in model.named_modules()}
    if missing := sorted(set(recipe.lora_targets) - layers):
        raise InvalidInputError(
            f"lora_targets: the model has no layer {', '.join(missing)}",
            expected=f"names among {', '.join(sorted(name for name in layers if name.endswith('proj')))}",
        )
    if recipe.load_in is not None:
        # Norms, embeddings and head in float32, as in the authors' code; TRL turns checkpointing on if it is asked for.
        model = prepare_model_for_kbit_training(model, use_gradient_checkpointing=False)
    adapted = get_peft_model(
        model,
        LoraConfig(
            r=recipe.lora_r,
            lora_alpha=recipe.lora_alpha,
            lora_dropout=recipe.lora_dropout,
            target_modules=list(recipe.lora_targets),
            task_type="CAUSAL_LM",
            trainable_token_indices=None if ret_id is None else trained_rows(model, ret_id),
        ),
    )
    mend_head(adapted)
    return adapted


def _autocast(model: Any, recipe: Recipe) -> dict[str, bool]:
    """Choose mixed precision for a GPU.

    A bfloat16 base computes in its own type, and autocast on top would only copy. Float16 needs the scaling of
    the loss that comes with autocast; a quantised base has float32 parts, which ought to compute in half.
    """
    import torch

    if model.dtype == torch.float16:
        return {"fp16": True}
    return {"bf16": recipe.load_in is not None and model.dtype == torch.bfloat16}
