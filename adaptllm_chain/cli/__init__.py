"""The command line. Importing it is quick: each command loads what it needs when it runs."""

from adaptllm_chain.cli.app import main

__all__ = ["main"]
