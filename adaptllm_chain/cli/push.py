"""``adaptllm push``: an adapter's folder to the hub."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from adaptllm_chain.cli.console import note, stdout_kept_clean


def add_parser(subparsers: Any) -> None:
    """Add the command.

    Args:
        subparsers: What ``ArgumentParser.add_subparsers`` returned.
    """
    parser = subparsers.add_parser(
        "push",
        help="upload an adapter to the Hugging Face hub",
        description="Checks an adapter's folder and uploads what belongs to the adapter: weights, prompt format, "
        "recipe, figures, curves, card; never checkpoints or journals. The address is printed on stdout.",
    )
    parser.add_argument("--adapter", required=True, metavar="DIR", help="the folder that training/sft.py wrote")
    parser.add_argument("--repo", required=True, metavar="USER/NAME", help="where to; it is made if it is not there")
    parser.add_argument("--private", action="store_true", help="make it private, if it is made now")
    parser.add_argument(
        "--dry-run", action="store_true", help="check, and list what would be uploaded; the hub is not asked"
    )
    parser.add_argument(
        "--token",
        metavar="T",
        help="a token that may write (default: the variable HF_TOKEN, or that of `hf auth login`)",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Upload an adapter, or say what would be uploaded.

    Args:
        arguments: The parsed options.

    Returns:
        0.
    """
    from adaptllm_chain.publishing.hub import Upload

    upload = Upload.check(Path(arguments.adapter), arguments.repo)
    lines = [f"{size:>14,}  {name}" for name, size in upload.files.items()]
    total = f"{sum(upload.files.values()):,} bytes in {len(lines)} files"
    if arguments.dry_run:
        print("\n".join([*lines, f"{total} would go to {upload.address}"]))
        return 0
    note(f"uploading {total} to {upload.address}")
    with stdout_kept_clean():
        address = upload.send(private=arguments.private, token=arguments.token)
    print(address)
    return 0
