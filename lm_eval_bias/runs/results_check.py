"""The check of what stands in a results file: strangers' files are read after it, and by nothing else."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import cache
from typing import Any

from lm_eval_bias.core import Facts, redaction
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.files import schema_validator


@cache
def _accepts(part: str) -> Callable[[object], bool]:
    """Return a fast test of whether the content, or a part of it, fits the schema."""
    import jsonschema_rs

    schema = schema_validator("lm_eval_bias.runs", "results_schema.json").schema
    if part:
        schema = {"$ref": f"#/$defs/{part}", "$defs": schema["$defs"]}
    accepts: Callable[[object], bool] = jsonschema_rs.validator_for(schema).is_valid
    return accepts


def check(content: object, *place: str) -> None:
    """Check the content of a results file, or the part of it at a place.

    Raises:
        BiasError: Something in it has another type or range than a run writes (``results_schema.json``).
    """
    with contextlib.suppress(ValueError):  # as of a number that no JSON has
        if _accepts(place[-1] if place else "")(content):
            return
    validator = schema_validator("lm_eval_bias.runs", "results_schema.json")
    if place:
        part = validator.schema["$defs"][place[-1]]
        validator = validator.evolve(schema=part)
    for error in validator.iter_errors(content):
        where = "/".join([*place, *map(str, error.absolute_path)])
        text = f"{error.message:.200}"
        text = f"{where}: {text}" if where else text
        raise BiasError(f"not the results of a harness run ({text})")


def checked(content: Any) -> Facts:
    """Return the content of a results file without keys and tokens.

    Raises:
        BiasError: As :func:`check`.
    """
    check(content)
    return redaction.of_results(content)
