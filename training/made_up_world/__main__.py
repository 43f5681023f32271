"""The command: ``python -m training.made_up_world --out runs/world``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

# ``python training/made_up_world`` puts this folder on the path, not the one above training/.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from training.exit_codes import exit_code
from training.made_up_world.settings import SMALL, TINY, Settings


def make_parser() -> argparse.ArgumentParser:
    """Describe the command line.

    Returns:
        The parser.
    """
    parser = argparse.ArgumentParser(
        prog="python -m training.made_up_world",
        description="Teach a base half of a made-up world, and see whether it learns to retrieve the other half.",
        allow_abbrev=False,
    )
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="output folder; run again to resume")
    parser.add_argument(
        "--base",
        default="embedded",
        choices=("embedded", "tiny"),
        help="SmolLM2-135M-Instruct, or a Llama of a million parameters that is made on the spot",
    )
    parser.add_argument(
        "--small", action="store_true", help="the reduced form, with a tiny base and 32 entities a kind"
    )
    parser.add_argument("--seed", type=int, default=0, help="another world, other halves, another training")
    parser.add_argument("--per-kind", type=int, metavar="N", help="entities of each of the five kinds; a multiple of 4")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        argv: Arguments; by default those of the process.

    Returns:
        0, or 2 where the input was at fault.
    """
    typed = sys.argv[1:] if argv is None else list(argv)
    arguments = make_parser().parse_args(typed)
    changes = {"seed": arguments.seed}
    if arguments.per_kind is not None:
        changes["per_kind"] = arguments.per_kind
    preset = SMALL if arguments.small else TINY if arguments.base == "tiny" else Settings()
    settings = preset.model_copy(update=changes)
    command = " ".join(["python -m training.made_up_world", *typed])
    return exit_code("made_up_world", lambda: _run_and_tell(settings, arguments.out, command))


def _run_and_tell(settings: Settings, out: Path, command: str) -> None:
    from training.made_up_world.experiment import run
    from training.made_up_world.figures import render

    result = run(settings, out, command)
    print(render(result["figures"]))
    print(f"\n{sum(result['seconds'].values()):.0f} s -> {out / 'result.json'}")


if __name__ == "__main__":
    raise SystemExit(main())
