"""Keeping transformers quiet while a model loads. Nothing heavy is imported before it is used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from adaptllm_chain.errors import missing_extra


@contextmanager
def quiet_transformers(extra: str) -> Iterator[None]:
    """Silence the progress bars of transformers and its reports of unused or new weights.

    Args:
        extra: The extra of this project that brings transformers to the caller, for the error.

    Yields:
        Nothing; behind the block everything is as loud as before.

    Raises:
        MissingExtraError: If transformers is not installed.
    """
    try:
        from transformers.utils import logging
    except ImportError as error:
        raise missing_extra("transformers", extra) from error
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
