"""The rows to train on: reading, splitting by question, choosing and balancing, encoding."""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from adaptllm_chain.agree.prompts import GroundedPrompt
from adaptllm_chain.errors import DataFileError, InvalidInputError
from adaptllm_chain.llms.encoding import PromptEncoder
from adaptllm_chain.ret.marker import RET
from training.labelling import Row
from training.recipe import Recipe, RowKind


def read_rows(paths: Sequence[Path]) -> tuple[list[Row], str]:
    """Read the rows of Algorithm 1 and of AGREE.

    Args:
        paths: Files of JSON lines with ``prompt``, ``completion``, ``kind``, ``label`` and ``question_id``; rows
            that lack the last three count as parametric, unknown if they ask for retrieval, each a
            question of its own. Grounded rows have the number of their ``passages``.

    Returns:
        The rows, in order, and the SHA-256 of the files' bytes as 64 hexadecimal digits.

    Raises:
        DataFileError: If a file is missing, a line is broken, or a grounded row was made with another instruction.
    """
    digest = hashlib.sha256()
    rows = []
    for path in paths:
        if not path.is_file():
            raise DataFileError(
                f"there is no file {str(path)!r}",
                expected="the rows.jsonl of Algorithm 1, or of training/agree_data.py",
                hint="python training/algorithm1.py --data FILE --out DIR, then --rows DIR/rows.jsonl",
            )
        with path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                digest.update(line)
                rows.append(_read_row(line, f"{path}, line {number}", str(number)))
    return rows, digest.hexdigest()


def _read_row(line: bytes, where: str, question_id: str) -> Row:
    try:
        row = json.loads(line)
        complete = all(isinstance(row[key], str) and row[key].strip() for key in ("prompt", "completion"))
        complete = complete and _is_consistent(row)
        label = "unknown" if row["completion"] == RET else "known"
        found = {"kind": "parametric", "label": label, "question_id": question_id} | row
    except (ValueError, KeyError, TypeError) as error:
        complete, cause = False, error
    else:
        cause = None
    if not complete:
        raise DataFileError(
            f"{where} is no training row: {line[:80].decode(errors='replace')!r}",
            expected=f'{{"prompt": "…", "completion": "…"}}, neither of them empty; kind {", ".join(_KINDS)}; '
            'label known or unknown; a weight above 0, up to 1; "<RET>" never labelled known; a grounded row with the '
            "number of its passages",
        ) from cause
    if found["kind"] == "grounded" and not found["prompt"].startswith(_GROUNDED_BEGINNING):
        raise DataFileError(
            f"{where} is a grounded row, but its prompt begins with {found['prompt'][:80]!r}",
            expected=f"the instruction that GroundedAnswerChain asks with: {_GROUNDED_BEGINNING[:80]!r}…",
            hint="training/agree_data.py with the same --out writes the rows again, and asks nothing again",
        )
    return found


_KINDS = get_args(RowKind)
# What stands before the first field; the adapter's folder says that it was trained on this instruction.
_GROUNDED_BEGINNING = re.split(r"\{passages\}|\{question\}", GroundedPrompt().template)[0]


def _is_consistent(row: Row) -> bool:
    weight = row.get("weight", 1)
    return (
        row.get("kind", "parametric") in _KINDS
        and (row.get("kind") != "grounded" or isinstance(row.get("passages"), int))
        and row.get("label", "known") in {"known", "unknown"}
        and not (row["completion"] == RET and row.get("label") == "known")
        and isinstance(weight, int | float)
        and 0 < weight <= 1
    )


def split_rows(rows: Sequence[Row], dev_fraction: float, seed: int) -> tuple[list[Row], list[Row]]:
    """Split rows by question, so that no question stands on both sides.

    Args:
        rows: The rows.
        dev_fraction: Share of the questions that goes to the dev side, in [0, 1).
        seed: Chooses another split.

    Returns:
        Training rows and dev rows. A question keeps its side when others come or go. One that came under two
        identifiers, from two runs of Algorithm 1, and fell on both sides is left out of the dev side.
    """

    def on_dev_side(question_id: str) -> bool:
        digest = hashlib.sha256(f"{seed}:{question_id}".encode()).digest()
        return int.from_bytes(digest[:8], "big") < dev_fraction * 2**64

    sides: tuple[list[Row], list[Row]] = ([], [])
    for row in rows:
        sides[on_dev_side(row["question_id"])].append(row)
    train, dev = sides
    seen = {row["prompt"].casefold() for row in train}
    leaked = {row["question_id"] for row in dev if row["prompt"].casefold() in seen}
    return train, [row for row in dev if row["question_id"] not in leaked]


def select_rows(rows: Sequence[Row], recipe: Recipe) -> list[Row]:
    """Choose and balance the rows to train on.

    Args:
        rows: The training side.
        recipe: ``kinds``, ``max_rows``, ``known_share`` and ``seed`` are used.

    Returns:
        The rows, in a fixed order. A row stands as often as its weight says, on average; known parametric
        rows stand more often where a share is asked for.

    Raises:
        InvalidInputError: If a kind has no rows, or one class to be balanced is empty.
    """
    rng = random.Random(recipe.seed)
    kinds = {kind: [row for row in rows if row["kind"] == kind] for kind in recipe.kinds}
    if empty := [kind for kind, found in kinds.items() if not found]:
        present = sorted({row["kind"] for row in rows})
        raise InvalidInputError(
            f"{', '.join(map(str, recipe.rows))} holds no row of kind {', '.join(empty)}, but the recipe trains on it",
            expected=f"rows of the kinds {', '.join(recipe.kinds)}",
            hint=f"--kinds {','.join(present)}; training/algorithm1.py --baseline-rows writes closed_book rows",
        )
    for kind, most in recipe.max_rows.items():
        if len(kinds.get(kind, [])) > most:
            kinds[kind] = rng.sample(kinds[kind], most)
    if "parametric" in kinds:
        kinds["parametric"] = _balance(kinds["parametric"], recipe.known_share, rng)
    return [row for kind in recipe.kinds for row in kinds[kind]]


def _balance(rows: Sequence[Row], known_share: float | None, rng: random.Random) -> list[Row]:
    """Draw parametric rows by weight, the known ones so often that they reach their share."""
    known = [row for row in rows if row["label"] == "known"]
    unknown = [row for row in rows if row["label"] != "known"]
    if known_share is None:
        return [*_draw(unknown, 1.0, rng), *_draw(known, 1.0, rng)]
    if not known or not unknown:
        raise InvalidInputError(
            f"known_share={known_share} needs both classes, but there are {len(known)} known, {len(unknown)} unknown",
            hint="--known-share null trains on the rows as they are",
        )
    wanted = sum(map(_weight, unknown)) * known_share / (1 - known_share)
    # Nothing is thrown away: where the known ones are more than wanted, they stay as they are.
    return [*_draw(unknown, 1.0, rng), *_draw(known, max(1.0, wanted / sum(map(_weight, known))), rng)]


def _draw(rows: Sequence[Row], factor: float, rng: random.Random) -> list[Row]:
    """Repeat every row ``factor`` times its weight on average; two rows of one weight differ by one at most.

    The fractions are gathered along the rows, in a random order, so that the total is exact up to one row.
    """
    order = list(range(len(rows)))
    rng.shuffle(order)
    times = [0] * len(rows)
    mass, drawn = rng.random() if any(_weight(row) != 1 for row in rows) or factor % 1 else 0.0, 0
    for at in order:
        mass += factor * _weight(rows[at])
        times[at] = int(mass + 1e-9) - drawn
        drawn += times[at]
    return [row for row, count in zip(rows, times, strict=True) for _ in range(count)]


def _weight(row: Row) -> float:
    return float(row.get("weight", 1.0))


def encode_rows(rows: Sequence[Row], encoder: PromptEncoder) -> list[Row]:
    """Put the model's format around the rows and turn them into token ids, as inference does.

    Args:
        rows: Rows with instructions as prompts.
        encoder: The one that the model will be asked through.

    Returns:
        ``input_ids``: the very ids that inference feeds, then those of the completion and the end token; ``labels``:
        the same, but -100 on the prompt, where there is no loss; and the row's ``kind``.
    """
    encoded = []
    for row in rows:
        prompt, completion = _encode(row, encoder)
        labels = [_NO_LOSS] * len(prompt) + completion
        encoded.append({"input_ids": prompt + completion, "labels": labels, "kind": row["kind"]})
    return encoded


_NO_LOSS = -100  # torch's and TRL's number for it


def _encode(row: Row, encoder: PromptEncoder) -> tuple[list[int], list[int]]:
    """The ids of the prompt, and those by which its completion follows, the end token included."""
    tokenizer, completion = encoder.tokenizer, row["completion"]
    # What an encoder says of its marker, by which tokens it follows this very prompt, holds for any text.
    encoded = PromptEncoder(tokenizer, encoder.format_name, completion).encode(row["prompt"])
    follows = list(encoded.marker_ids)
    if any(special in completion for special in tokenizer.all_special_tokens):
        text = encoder.frame(row["prompt"]).lead + completion
        follows = tokenizer(text, add_special_tokens=False, split_special_tokens=True).input_ids
    return encoded.ids, [*follows, tokenizer.eos_token_id]


def within_length(encoded: Sequence[Row], max_length: int) -> list[bool]:
    """Say which rows fit: TRL would cut the completion off the others.

    Args:
        encoded: Rows with ``input_ids``, end token included.
        max_length: In tokens.

    Returns:
        One flag a row.
    """
    return [len(row["input_ids"]) <= max_length for row in encoded]


def answer_room(encoded: Sequence[Row], positions: int | None) -> int:
    """Say how many tokens a model needs to answer as rows do.

    Args:
        encoded: Rows as ``encode_rows`` makes them, at least one, each within ``positions``.
        positions: The most tokens that the model reads; ``None`` for no limit.

    Returns:
        The length of the longest completion, end token included, as far as every prompt leaves room for it.
    """
    prompts = [row["labels"].count(_NO_LOSS) for row in encoded]
    longest = max(len(row["labels"]) - prompt for row, prompt in zip(encoded, prompts, strict=True))
    return longest if positions is None else min(longest, positions - max(prompts))
