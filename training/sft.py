"""Supervised fine-tuning of an adapter on the rows of Algorithm 1, with TRL and LoRA.

    python training/sft.py --config training/configs/smollm2-nq.yaml
    python training/sft.py --config training/configs/smollm2-nq.yaml --learning-rate 5e-4 --epochs 1

The loss is on the completion alone. A killed run continues from its last checkpoint when the same command
is given again. The output folder then holds the adapter, ``prompt_spec.json`` (the format that it was
trained on), ``recipe.yaml`` (what it was trained with) and ``result.json`` (counts, losses, dev figures).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_origin

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adaptllm_chain.errors import AdaptLLMError, DataFileError, InvalidInputError, JournalError
from adaptllm_chain.journal import write_whole
from adaptllm_chain.prompts import FormatName, PromptSpec, PromptTemplates
from adaptllm_chain.records import PromptKind
from adaptllm_chain.ret.marker import RET

if TYPE_CHECKING:
    from trl import SFTTrainer

Row = dict[str, str]


class Recipe(BaseModel):
    """Everything an adapter depends on. The defaults are the paper's and its authors' (PAPERS.md says which).

    Attributes:
        base: The base model: ``"embedded"``, a folder, a GGUF file, or a hub name.
        rows: The file that ``training/algorithm1.py`` wrote.
        out: The output folder.
        format: How instructions are wrapped; the authors use Alpaca.
        kinds: Which kinds of row to train on.
        known_share: Share that the known questions are brought to among the parametric rows, by
            repeating them; ``None`` leaves the rows as they are.
        max_rows: The most rows of a kind to train on, drawn at random before balancing; all of those not named.
        dev_fraction: Share of the questions kept out for the dev figures.
        epochs: Passes over the rows.
        learning_rate: Peak learning rate.
        schedule: ``"constant"`` as in the paper, or one that decays.
        warmup_steps: Steps of linear warm-up.
        batch_size: Rows an optimizer step.
        micro_batch_size: Rows a forward pass; the rest is accumulated.
        max_length: Tokens a row; longer rows are left out and counted, never cut.
        lora_r: Rank.
        lora_alpha: Scale.
        lora_dropout: Dropout on the adapter's input.
        lora_targets: Which linear layers get an adapter.
        dtype: Type of the base's weights while training.
        device: ``"auto"``, or a torch device.
        load_in: Quantise the base with bitsandbytes; a GPU only.
        gradient_checkpointing: Trade time for memory.
        save_steps: Optimizer steps between checkpoints.
        seed: Of the split, the order and the adapter's initial weights.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    base: str = "meta-llama/Llama-2-7b-chat-hf"
    rows: Path
    out: Path
    format: FormatName = "alpaca"
    kinds: tuple[PromptKind, ...] = ("parametric", "context")
    known_share: float | None = Field(default=None, gt=0.0, lt=1.0)
    max_rows: dict[PromptKind, Annotated[int, Field(ge=1)]] = Field(default_factory=dict)
    dev_fraction: float = Field(default=0.1, ge=0.0, lt=1.0)
    epochs: float = Field(default=3, gt=0)
    learning_rate: float = Field(default=3e-4, gt=0)
    schedule: Literal["constant", "constant_with_warmup", "linear", "cosine"] = "constant"
    warmup_steps: int = Field(default=0, ge=0)
    batch_size: int = Field(default=128, ge=1)
    micro_batch_size: int = Field(default=4, ge=1)
    max_length: int = Field(default=512, ge=8)
    lora_r: int = Field(default=8, ge=1)
    lora_alpha: int = Field(default=16, ge=1)
    lora_dropout: float = Field(default=0.05, ge=0.0, lt=1.0)
    lora_targets: tuple[str, ...] = ("q_proj", "v_proj")
    dtype: str = "auto"
    device: str = "auto"
    load_in: Literal["8bit", "4bit"] | None = None
    gradient_checkpointing: bool = False
    save_steps: int = Field(default=25, ge=1)
    seed: int = 0

    @classmethod
    def load(cls, path: Path, overrides: Mapping[str, Any]) -> Recipe:
        """Read a recipe file.

        Args:
            path: A YAML file.
            overrides: Fields that replace those of the file.

        Returns:
            The recipe.

        Raises:
            InvalidInputError: If the file is missing or a field is unknown or out of range.
        """
        try:
            content = yaml.safe_load(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise InvalidInputError(f"cannot read the recipe {str(path)!r}: {error}", expected="a YAML file") from error
        if not isinstance(content, dict):
            raise InvalidInputError(f"{str(path)!r} holds {type(content).__name__}", expected="fields of a recipe")
        try:
            recipe = cls.model_validate({**content, **overrides})
        except ValidationError as error:
            problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
            raise InvalidInputError(
                f"{str(path)!r}: {problems}",
                expected=f"these fields: {', '.join(cls.model_fields)}",
                hint="python training/sft.py --help",
            ) from error
        if recipe.batch_size % recipe.micro_batch_size:
            fits = max(n for n in range(1, recipe.micro_batch_size) if recipe.batch_size % n == 0)
            raise InvalidInputError(
                f"batch_size={recipe.batch_size} with micro_batch_size={recipe.micro_batch_size}",
                expected="a batch that is a multiple of the micro-batch",
                hint=f"--micro-batch-size {fits}",
            )
        return recipe


def read_rows(path: Path) -> list[Row]:
    """Read the rows of Algorithm 1.

    Args:
        path: JSON lines with ``prompt``, ``completion``, ``kind``, ``label`` and ``question_id``; rows
            that lack the last three count as parametric, unknown if they ask for retrieval, each a
            question of its own.

    Returns:
        The rows, in order.

    Raises:
        DataFileError: If the file is missing, or a line is broken.
    """
    if not path.is_file():
        raise DataFileError(
            f"there is no file {str(path)!r}",
            expected="the rows.jsonl of Algorithm 1",
            hint="python training/algorithm1.py --data FILE --out DIR, then --rows DIR/rows.jsonl",
        )
    rows = []
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                row = json.loads(line)
                complete = all(isinstance(row[key], str) and row[key].strip() for key in ("prompt", "completion"))
                label = "unknown" if row["completion"] == RET else "known"
                rows.append({"kind": "parametric", "label": label, "question_id": str(number)} | row)
            except (ValueError, KeyError, TypeError) as error:
                complete, cause = False, error
            else:
                cause = None
            if not complete:
                raise DataFileError(
                    f"{path}, line {number} is no training row: {line[:80]!r}",
                    expected='{"prompt": "…", "completion": "…"}, neither of them empty',
                ) from cause
    return rows


def split_rows(rows: Sequence[Row], dev_fraction: float, seed: int) -> tuple[list[Row], list[Row]]:
    """Split rows by question, so that no question stands on both sides.

    Args:
        rows: The rows.
        dev_fraction: Share of the questions that goes to the dev side, in [0, 1).
        seed: Chooses another split.

    Returns:
        Training rows and dev rows. A question keeps its side when others come or go.
    """

    def on_dev_side(question_id: str) -> bool:
        digest = hashlib.sha256(f"{seed}:{question_id}".encode()).digest()
        return int.from_bytes(digest[:8], "big") < dev_fraction * 2**64

    sides: tuple[list[Row], list[Row]] = ([], [])
    for row in rows:
        sides[on_dev_side(row["question_id"])].append(row)
    return sides


def select_rows(rows: Sequence[Row], recipe: Recipe) -> list[Row]:
    """Choose and balance the rows to train on.

    Args:
        rows: The training side.
        recipe: ``kinds``, ``max_rows``, ``known_share`` and ``seed`` are used.

    Returns:
        The rows, in a fixed order; known parametric rows may stand several times.

    Raises:
        InvalidInputError: If a kind has no rows, or one class to be balanced is empty.
    """
    rng = random.Random(recipe.seed)
    kinds = {kind: [row for row in rows if row["kind"] == kind] for kind in recipe.kinds}
    if empty := [kind for kind, found in kinds.items() if not found]:
        present = sorted({row["kind"] for row in rows})
        raise InvalidInputError(
            f"{recipe.rows} holds no row of kind {', '.join(empty)}, but the recipe trains on it",
            expected=f"rows of the kinds {', '.join(recipe.kinds)}",
            hint=f"--kinds {','.join(present)}; training/algorithm1.py writes closed_book rows with --closed-book-rows",
        )
    for kind, most in recipe.max_rows.items():
        if len(kinds.get(kind, [])) > most:
            kinds[kind] = rng.sample(kinds[kind], most)
    if recipe.known_share is not None:
        kinds["parametric"] = _balance(kinds.get("parametric", []), recipe.known_share, rng)
    return [row for kind in recipe.kinds for row in kinds[kind]]


def _balance(rows: Sequence[Row], known_share: float, rng: random.Random) -> list[Row]:
    known = [row for row in rows if row["label"] == "known"]
    unknown = [row for row in rows if row["label"] != "known"]
    if not known or not unknown:
        raise InvalidInputError(
            f"known_share={known_share} needs both classes, but there are {len(known)} known, {len(unknown)} unknown",
            hint="--known-share null trains on the rows as they are",
        )
    wanted = max(len(known), round(len(unknown) * known_share / (1 - known_share)))
    # Whole rounds first, so that no known question stands more than once more than another.
    rounds, rest = divmod(wanted, len(known))
    return [*unknown, *(known * rounds), *rng.sample(known, rest)]


def write_texts(rows: Sequence[Row], encoder: Any) -> list[Row]:
    """Put the model's format around the rows.

    Args:
        rows: Rows with instructions as prompts.
        encoder: The ``PromptEncoder`` that the model will be asked through.

    Returns:
        ``prompt`` and ``completion`` as texts. TRL appends the end token to the completion.
    """
    texts = []
    for row in rows:
        prompt = encoder.frame(row["prompt"])
        texts.append({"prompt": prompt.text, "completion": f"{prompt.lead}{row['completion']}"})
    return texts


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


def within_length(texts: Sequence[Row], tokenizer: Any, max_length: int) -> list[bool]:
    """Say which texts fit, end token included: TRL would cut the completion off the others.

    Args:
        texts: ``prompt`` and ``completion`` as texts.
        tokenizer: The tokenizer.
        max_length: In tokens.

    Returns:
        One flag a text.
    """
    encoded = tokenizer([text["prompt"] + text["completion"] for text in texts])
    return [len(ids) < max_length for ids in encoded.input_ids]


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

    rows = read_rows(recipe.rows)
    recipe.out.mkdir(parents=True, exist_ok=True)
    written = recipe.model_dump(mode="json") | {"rows_sha256": hashlib.sha256(recipe.rows.read_bytes()).hexdigest()}
    recipe_file = recipe.out / "recipe.yaml"
    _check_recipe(recipe_file, written)
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
    spec = _save_adapter(trainer.model, recipe, tuple(kind for kind in recipe.kinds if kinds[kind]))

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
        "versions": _versions(),
        "dev": dev_figures(llm, dev_side),
    }
    write_whole(recipe.out / "README.md", model_card(recipe, spec, result))
    write_whole(result_file, json.dumps(result, indent=2) + "\n")
    return result


def model_card(recipe: Recipe, spec: PromptSpec, result: Mapping[str, Any]) -> str:
    """Write the card of an adapter: what it is, what it was trained with, what came out.

    Args:
        recipe: The recipe.
        spec: What it was trained on.
        result: What goes into ``result.json``.

    Returns:
        Markdown with the header that model hubs read.
    """
    figures = "\n".join(f"- {name.replace('_', ' ')}: {value}" for name, value in result["dev"].items())
    return (
        f"---\nbase_model: {spec.base_model}\nlibrary_name: peft\ntags: [lora, adapt-llm, adaptive-retrieval]\n---\n\n"
        f"# {recipe.out.name}\n\n"
        f"A LoRA adapter for {spec.base_model}, trained with `training/sft.py` of adaptllm-chain as in "
        '"When to Retrieve" (arXiv:2404.19705). It reads the prompts in `prompt_spec.json`: '
        f"format {spec.format}, kinds {', '.join(spec.trained_on)}.\n\n"
        f"Trained for {result['steps']} steps of {recipe.batch_size} rows ({result['rows']}; {result['rows_too_long']} "
        f"too long), mean loss {result['train_loss']:.3f}. The rest stands in `recipe.yaml` and `result.json`.\n\n"
        f"## On the questions kept out\n\n{figures}\n"
    )


def last_checkpoint(folder: Path) -> str | None:
    """Find the newest checkpoint that was written to its end.

    Args:
        folder: The trainer's output folder.

    Returns:
        Its path; ``None`` if there is none. The trainer writes its state last, so one that lacks it was
        cut off by a kill.
    """
    needed = ("adapter_model.safetensors", "optimizer.pt", "scheduler.pt", "trainer_state.json")
    found = sorted(folder.glob("checkpoint-*"), key=lambda path: int(path.name.rsplit("-", 1)[1]), reverse=True)
    for path in found:
        if all((path / name).is_file() for name in needed) and _is_json(path / "trainer_state.json"):
            return str(path)
    return None


def _is_json(path: Path) -> bool:
    try:
        json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return False
    return True


def _save_adapter(model: Any, recipe: Recipe, trained_on: tuple[PromptKind, ...]) -> PromptSpec:
    from adaptllm_chain.llms.embedded import EMBEDDED, EMBEDDED_BASE_NAME

    base_name = EMBEDDED_BASE_NAME if recipe.base == EMBEDDED else recipe.base
    model.peft_config["default"].base_model_name_or_path = base_name
    model.save_pretrained(str(recipe.out), save_embedding_layers=False)
    spec = PromptSpec(
        format=recipe.format,
        templates=PromptTemplates(),
        trained_on=trained_on,
        ret_marker=RET,
        base_model=base_name,
    )
    spec.save(recipe.out)
    return spec


def _check_recipe(path: Path, recipe: Mapping[str, Any]) -> None:
    """Make sure that an output folder that is in use belongs to the same recipe."""
    if not path.exists():
        return
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    found = found if isinstance(found, dict) else {}
    changed = sorted(key for key in {*found, *recipe} if found.get(key) != recipe.get(key))
    if changed:
        differences = "; ".join(f"{key}: {found.get(key)!r} -> {recipe.get(key)!r}" for key in changed)
        raise JournalError(
            f"{path.parent} belongs to a run with another recipe ({differences})",
            expected="the same recipe as the run that is resumed",
            hint="--out another-folder, or delete this one to start over",
        )


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    return {name: version(name) for name in ("torch", "transformers", "peft", "trl", "datasets")}


def make_parser() -> argparse.ArgumentParser:
    """Describe the command line: a recipe file, and a flag for each of its fields.

    Returns:
        The parser.
    """
    parser = argparse.ArgumentParser(
        prog="training/sft.py", description="Train a LoRA adapter on the rows of Algorithm 1.", allow_abbrev=False
    )
    parser.add_argument("--config", required=True, type=Path, metavar="FILE", help="a recipe (YAML)")
    for name in Recipe.model_fields:
        parser.add_argument(f"--{name.replace('_', '-')}", metavar="VALUE", help=f"replaces {name} of the recipe")
    return parser


def _overrides(arguments: argparse.Namespace) -> Iterator[tuple[str, Any]]:
    for name, field in Recipe.model_fields.items():
        text = getattr(arguments, name)
        if text is not None:
            try:
                value = yaml.safe_load(text)
            except yaml.YAMLError as error:
                raise InvalidInputError(f"--{name.replace('_', '-')} {text!r} cannot be read: {error}") from error
            if field.annotation is Path:
                value = text
            elif get_origin(field.annotation) is tuple and isinstance(value, str):
                value = [part.strip() for part in value.split(",")]
            # YAML 1.1 reads 3e-4 as a text; pydantic turns it into the number that is meant.
            yield name, value


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        argv: Arguments; by default those of the process.

    Returns:
        0, or 2 where the input was at fault.
    """
    arguments = make_parser().parse_args(argv)
    try:
        recipe = Recipe.load(arguments.config, dict(_overrides(arguments)))
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
    # ``python training/sft.py`` puts training/ on the path, not the folder above it.
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    raise SystemExit(main())
