"""Errors that say what was passed, what was expected and what to type next.

None of them is a ``ValueError``: pydantic would wrap it when a Runnable is built, and a caller who catches
``AdaptLLMError`` would miss it.
"""

from __future__ import annotations


class AdaptLLMError(Exception):
    """Base of every error this library raises on purpose.

    Args:
        problem: What is wrong, with the value that was passed.
        expected: What would have been right.
        hint: What to type or change; a command where one exists.
    """

    def __init__(self, problem: str, *, expected: str | None = None, hint: str | None = None) -> None:
        self.problem = problem
        self.expected = expected
        self.hint = hint
        parts = [problem]
        if expected is not None:
            parts.append(f"  expected: {expected}")
        if hint is not None:
            parts.append(f"  try: {hint}")
        super().__init__("\n".join(parts))


class InvalidInputError(AdaptLLMError):
    """An argument or a chain input that cannot be used."""


class DataFileError(AdaptLLMError):
    """A data file that cannot be read as what it was declared to be."""


class IndexFolderError(AdaptLLMError):
    """A folder that is not a passage store, or not the one that was asked for."""


class JournalError(AdaptLLMError):
    """A resumable run whose folder belongs to other settings or is damaged."""


class PromptMismatchError(AdaptLLMError):
    """An adapter was about to meet a prompt that it was not trained on."""


class EmptyRetrievalError(AdaptLLMError, LookupError):
    """Retrieval was needed, brought nothing usable, and the chain was told to raise."""


class MissingLogprobsError(AdaptLLMError):
    """A probability threshold was set, but the model reports no log-probabilities."""


class UnsupportedHardwareError(AdaptLLMError, RuntimeError):
    """What was asked for cannot work on this machine."""


class MissingExtraError(AdaptLLMError, ImportError):
    """An optional package is not installed."""


def missing_extra(package: str, extra: str) -> MissingExtraError:
    """Build the error for an optional package that is not installed.

    Args:
        package: The package that could not be imported, e.g. ``"faiss"``.
        extra: The extra of this project that brings it, e.g. ``"cpu"``.

    Returns:
        The error, to be raised ``from`` the ``ImportError``.
    """
    return MissingExtraError(
        f"the package {package!r} is not installed",
        expected=f"the extra {extra!r} of adaptllm-chain",
        hint=f"pip install 'adaptllm-chain[{extra}]'",
    )
