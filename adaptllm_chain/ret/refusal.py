"""Saying in our own words what pydantic refuses: who catches ``AdaptLLMError`` must not miss a wrong setting."""

from __future__ import annotations

from pydantic import BaseModel, ValidationError

from adaptllm_chain.errors import InvalidInputError


def refusal(owner: type[BaseModel], error: ValidationError) -> InvalidInputError:
    """Make our error of pydantic's.

    Args:
        owner: The class whose settings were refused; an example beside a field says what to type.
        error: What pydantic raised.

    Returns:
        The error, to be raised ``from`` pydantic's.
    """
    found = error.errors()[0]
    name = str(found["loc"][0]) if found["loc"] else ""
    if found["type"] == "extra_forbidden":
        return InvalidInputError(
            f"{owner.__name__} has no setting {name!r}",
            expected=f"one of {', '.join(owner.model_fields)}" if owner.model_fields else "no settings",
        )
    missing = found["type"] == "missing"
    field = owner.model_fields.get(name)
    return InvalidInputError(
        f"{owner.__name__} needs {name}" if missing else f"{owner.__name__}: {name}={found['input']!r:.80}",
        expected=f"{name}=…" if missing else found["msg"].removeprefix("Input should be "),
        hint=f"{name}={field.examples[0]!r}" if field is not None and field.examples else None,
    )
