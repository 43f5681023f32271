"""Options that contradict one another or the machine, refused before anything is read or loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adaptllm_chain.errors import InvalidInputError, UnsupportedHardwareError
from adaptllm_chain.llms.embedded import EMBEDDED
from training.processes import Processes

if TYPE_CHECKING:
    from training.recipe import Recipe


def refuse_contradictions(recipe: Recipe) -> None:
    """Refuse what can never work, whatever the machine.

    Args:
        recipe: The recipe.

    Raises:
        InvalidInputError: If two of its fields contradict each other.
    """
    if recipe.batch_size % recipe.micro_batch_size:
        raise InvalidInputError(
            f"batch_size={recipe.batch_size} with micro_batch_size={recipe.micro_batch_size}",
            expected="a batch that is a multiple of the micro-batch",
            hint=f"--micro-batch-size {_largest_divisor(recipe.batch_size, recipe.micro_batch_size)}",
        )
    _refuse_kinds(recipe)
    if recipe.warmup_steps and recipe.schedule == "constant":
        raise InvalidInputError(
            f"warmup_steps={recipe.warmup_steps} with schedule='constant', which has no warm-up",
            expected="a schedule that warms up, or no warm-up",
            hint="--schedule constant_with_warmup, or --warmup-steps 0",
        )
    if recipe.load_in is not None and _is_gguf(recipe.base):
        raise InvalidInputError(
            f"load_in={recipe.load_in!r} with base={recipe.base!r}, a GGUF file, which is quantised already",
            expected="a base in full precision (a folder, or a name on the hub), or no load_in",
            hint="--load-in null",
        )
    if recipe.dtype == "float16" and recipe.device == "cpu":
        raise _float16_on_cpu()


def _refuse_kinds(recipe: Recipe) -> None:
    kinds = f"kinds={list(recipe.kinds)}"
    if twice := sorted({kind for kind in recipe.kinds if recipe.kinds.count(kind) > 1}):
        raise InvalidInputError(
            f"{kinds} names {', '.join(twice)} twice",
            expected="each kind once; known_share and the rows' weights say how often a row stands",
            hint=f"--kinds {','.join(dict.fromkeys(recipe.kinds))}",
        )
    if foreign := sorted(set(recipe.max_rows) - set(recipe.kinds)):
        raise InvalidInputError(
            f"max_rows names {', '.join(foreign)}, but {kinds}",
            expected="limits of kinds that are trained on",
            hint=f"--max-rows '{{}}', or --kinds {','.join([*recipe.kinds, *foreign])}",
        )
    if "parametric" in recipe.kinds:
        return
    if recipe.known_share is not None:
        raise InvalidInputError(
            f"known_share={recipe.known_share} with {kinds}: it balances the parametric rows",
            expected="parametric among the kinds, or no known_share",
            hint="--known-share null",
        )
    if recipe.adds_token:
        raise InvalidInputError(
            f"ret_token='added' with {kinds}: none of these rows ends in <RET>, so its row would learn nothing",
            expected="parametric among the kinds, or <RET> as text",
            hint="--ret-token text",
        )


def refuse_for_machine(recipe: Recipe, processes: Processes) -> None:
    """Refuse what cannot work on this machine, or with this many processes.

    Args:
        recipe: The recipe.
        processes: How it was launched.

    Raises:
        InvalidInputError: If the recipe does not suit the processes.
        UnsupportedHardwareError: If it needs hardware that is not there.
    """
    _refuse_processes(recipe, processes)
    import torch

    from adaptllm_chain.llms.devices import check_load_in, pick_device

    device = pick_device(recipe.device)
    if recipe.load_in is not None:
        try:
            check_load_in(recipe.load_in, device)
        except UnsupportedHardwareError as error:
            raise UnsupportedHardwareError(
                error.problem,
                expected=error.expected,
                hint="--load-in null (full precision; a 7B model then needs 28 GB), or --base embedded --load-in null",
            ) from error
    if recipe.dtype == "float16" and device == "cpu":
        raise _float16_on_cpu()
    visible = torch.cuda.device_count() if device.startswith("cuda") else 0
    if visible > 1 and processes.count == 1:
        raise InvalidInputError(
            f"{visible} GPUs are visible to one process",
            expected="one process a GPU, or one visible GPU",
            hint=f"accelerate launch --config_file training/accelerate/ddp.yaml --num_processes {visible} "
            "training/sft.py …, or CUDA_VISIBLE_DEVICES=0 python training/sft.py …",
        )


def _refuse_processes(recipe: Recipe, processes: Processes) -> None:
    if recipe.batch_size % (recipe.micro_batch_size * processes.count):
        raise InvalidInputError(
            f"batch_size={recipe.batch_size} with micro_batch_size={recipe.micro_batch_size} "
            f"in {processes.count} processes",
            expected="a batch, which counts all processes, that is a multiple of micro_batch_size times processes",
            hint=_fitting_batch(recipe, processes),
        )
    if processes.count > 1 and recipe.device not in {"auto", "cpu"}:
        raise InvalidInputError(
            f"device={recipe.device!r} in {processes.count} processes, which would all use that one",
            expected="'auto', which gives each process its own GPU, or 'cpu'",
            hint="--device auto",
        )
    if processes.sharded and recipe.load_in is not None:
        raise InvalidInputError(
            f"load_in={recipe.load_in!r} under FSDP, which cannot shard weights of {recipe.load_in[0]} bits",
            expected="FSDP with a base in full precision, or load_in with a copy of the base on every GPU",
            hint="--load-in null, or accelerate launch --config_file training/accelerate/ddp.yaml …",
        )
    if processes.sharded and recipe.adds_token:
        raise InvalidInputError(
            "ret_token='added' under FSDP, where PEFT cannot train single rows of an embedding",
            expected="<RET> as text under FSDP, or a copy of the base on every GPU",
            hint="--ret-token text, or accelerate launch --config_file training/accelerate/ddp.yaml …",
        )


def _fitting_batch(recipe: Recipe, processes: Processes) -> str:
    if recipe.batch_size % processes.count:
        step = recipe.micro_batch_size * processes.count
        return f"--batch-size {-(-recipe.batch_size // step) * step}"
    return f"--micro-batch-size {_largest_divisor(recipe.batch_size // processes.count, recipe.micro_batch_size)}"


def _largest_divisor(number: int, most: int) -> int:
    return max(n for n in range(1, most + 1) if number % n == 0)


def _is_gguf(base: str) -> bool:
    return base == EMBEDDED or base.endswith(".gguf")


def _float16_on_cpu() -> InvalidInputError:
    return InvalidInputError(
        "dtype='float16' on a CPU, where its gradients vanish: it needs a GPU's loss scaling",
        expected="'float32', or 'bfloat16' for speed",
        hint="--dtype float32",
    )
