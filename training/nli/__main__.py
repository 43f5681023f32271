"""Train the embedded entailment scorer and measure it.

    python -m training.nli --data ../shared/data/nq-open-oracle.jsonl.gz --data ../shared/data/nq_train_gold.json \
        --data ../shared/data/squad_train_gold.json --out runs/nli

A run takes about twenty minutes on one core. One that was killed starts over, but for the passages' vectors, which
are kept. The output folder then holds ``head`` (what is shipped in ``adaptllm_chain/entailment/weights``) and
``result.json``, which holds no text of the data.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from adaptllm_chain.journal import write_whole
from training.exit_codes import exit_code
from training.nli.recipe import NliRecipe

RECIPE_FILE = "recipe.yaml"
RESULT_FILE = "result.json"
HEAD_FOLDER = "head"


def make_parser() -> argparse.ArgumentParser:
    """Describe the command line: an option for each setting of the recipe.

    Returns:
        The parser.
    """
    parser = argparse.ArgumentParser(prog="python -m training.nli", description="Train the embedded entailment scorer.")
    parser.add_argument("--data", action="append", type=Path, required=True, help="a file of questions with passages")
    for name, field in NliRecipe.model_fields.items():
        if name != "data":
            option = f"--{name.replace('_', '-')}"
            kind: Any = field.annotation
            parser.add_argument(option, type=kind, default=field.default, help=f"default: {field.default}")
    return parser


def run(recipe: NliRecipe) -> dict[str, Any]:
    """Make rows, train, measure.

    Args:
        recipe: The settings.

    Returns:
        What is written to ``result.json``.

    Raises:
        JournalError: If the output folder belongs to another recipe.
        InvalidInputError: If the files give nothing to train or to measure on.
    """
    import yaml

    from adaptllm_chain.entailment import embedded_scorer
    from adaptllm_chain.entailment.embedded import BASE_NAME
    from adaptllm_chain.entailment.head_files import save_head
    from training.adapter_folder import check_recipe, versions
    from training.nli.figures import baseline, cosine, figures, word_overlap
    from training.nli.fitting import fit
    from training.nli.items import read_sides
    from training.nli.probe import probe
    from training.nli.rows import make_rows

    recipe.out.mkdir(parents=True, exist_ok=True)
    written = recipe.model_dump(mode="json")
    check_recipe(recipe.out / RECIPE_FILE, written)
    write_whole(recipe.out / RECIPE_FILE, yaml.safe_dump(written, sort_keys=False))

    sides = read_sides(recipe.data, held_out_share=recipe.held_out_share, store_folder=recipe.out / "passages")
    train, held_out = (make_rows(items, seed=recipe.seed) for items in (sides.train, sides.held_out))
    head, trained = fit(train, recipe, say=lambda text: print(text, file=sys.stderr, flush=True))
    save_head(head, recipe.out / HEAD_FOLDER, base=BASE_NAME)

    # As it is shipped: read back from disk, rounded to float16.
    scorer = embedded_scorer(recipe.out / HEAD_FOLDER)
    scores = scorer.score([(row.premise, row.hypothesis) for row in held_out])
    result: dict[str, Any] = {
        "questions": {"read": sides.questions, "train": len(sides.train), "held_out": len(sides.held_out)},
        "train_rows": dict(sorted(Counter(row.kind for row in train).items())),
        "training": trained,
        "held_out": figures(held_out, scores),
        "baselines": {
            "word_overlap": baseline(held_out, [word_overlap(row) for row in held_out]),
            "cosine": baseline(held_out, cosine(held_out)),
        },
        "probe": probe(scorer),
        "recipe": {name: value for name, value in written.items() if name not in {"data", "out"}},
        "data": [path.name for path in recipe.data],
        "versions": versions(),
    }
    write_whole(recipe.out / RESULT_FILE, json.dumps(result, indent=2) + "\n")
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: By default those of the process.

    Returns:
        0, or 2 where the input was at fault.
    """
    options = make_parser().parse_args(arguments)

    def work() -> None:
        recipe = NliRecipe(**vars(options))
        result = run(recipe)
        held_out = result["held_out"]
        print(
            f"{recipe.out / HEAD_FOLDER}: AUC {held_out['auc']}, "
            f"right at .5: {held_out['accuracy'][0]:.1%} of {held_out['rows']} held-out rows"
        )

    return exit_code("python -m training.nli", work)


if __name__ == "__main__":
    sys.exit(main())
