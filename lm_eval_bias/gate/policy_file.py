"""Policies: YAML files that are checked against a JSON Schema; errors name the place, such as ``bounds/0``."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from lm_eval_bias.core.errors import BiasError, did_you_mean
from lm_eval_bias.core.files import (
    LARGEST_YAML,
    packaged_text,
    parse_yaml,
    read_text,
    schema_validator,
)
from lm_eval_bias.custom_metrics.score import ScoreSpec
from lm_eval_bias.runs import diagnostics, measurement

_NAMES = {
    "min": "low",
    "max": "high",
    "max_distance_from_neutral": "distance",
    "max_unanswered_share": "unanswered",
}  # what is called otherwise in the file
_NUMBER = r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?"


class Percent(float):
    """A share written in percent."""


class _Loader(yaml.SafeLoader):
    """A safe YAML loader without YAML 1.1's surprises (``on`` is true, ``010`` eight, ``1:30`` ninety)."""


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("tag:yaml.org,2002:float", rf"{_NUMBER}$", "-+.0123456789"),
    ("!percent", rf"{_NUMBER} ?%$", "-+.0123456789"),
    ("tag:yaml.org,2002:bool", r"(true|false)$", "tf"),
    ("tag:yaml.org,2002:null", r"(null|~|)$", ["n", "~", ""]),
):
    _Loader.add_implicit_resolver(_tag, re.compile(_pattern), list(_first))
_Loader.add_constructor("!percent", lambda _, node: share(node.value))


def share(text: str) -> float:
    """Read a share: ``0.05``, or ``5%``.

    >>> share("5%"), share("0.05")
    (0.05, 0.05)
    """
    if text.endswith("%"):
        return Percent(float(text[:-1]) / 100)
    return float(text)


def in_unit(number: float, score: ScoreSpec) -> float:
    """Return a number of a policy in a score's unit.

    Raises:
        BiasError: It is in percent, and the score no share; or it looks like a share, and the score is in percent.
    """
    is_in_percent = score.unit == "percent"
    if isinstance(number, Percent):
        if score.unit not in ("percent", "proportion", "difference"):
            raise BiasError(
                f"{number:.15g} in percent: {score.name} is not a share, it goes from {score.low:g} to {score.high:g}"
            )
        return 100 * number if is_in_percent else float(number)
    if is_in_percent and 0 < abs(number) < 1:
        raise BiasError(
            f"{number:.15g}: {score.name} goes from {score.low:g} to {score.high:g} percent: write "
            f"{100 * number:.12g}, or {number:.12g}%"
        )
    return number


@dataclass(frozen=True)
class Bound:
    """Limits of some scores.

    Attributes:
        task: Name, group or pattern.
        score: Name or pattern.
        low: Least allowed value, ``-inf`` if there is none.
        high: Largest allowed value, ``inf`` if there is none.
        distance: Largest distance from the score's neutral value, ``inf`` if there is none.
        on: ``interval``, ``point`` or ``evidence``.
        why: Reason for the bound.
        place: Place in the policy, for messages.
    """

    task: str
    score: str
    low: float = -math.inf
    high: float = math.inf
    distance: float = math.inf
    on: str = "interval"
    why: str = ""
    place: str = ""


@dataclass(frozen=True)
class Policy:
    """Bounds, and requirements for a run.

    Attributes:
        bounds: The bounds; without any it takes an earlier run to compare with.
        unanswered: Largest share of documents without an answer.
        margins: By pattern of scores' names, by how much one may be worse than the base's.
        refuse: Kinds of notes on where answers came from that are violations.
        allow: Permitted changes of tasks, as ``name`` or ``name=value``, and permitted kinds of notes that would
            forbid a verdict.
    """

    bounds: Sequence[Bound]
    unanswered: float = 0.1
    allow: Sequence[str] = ()
    refuse: Sequence[str] = ()
    margins: Mapping[str, float] = field(default_factory=dict)


def _parsed(path: Path) -> Any:
    try:
        text = read_text(path, largest=LARGEST_YAML)
    except OSError as error:
        raise BiasError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BiasError(f"{path}: byte {error.start} is not UTF-8") from error
    content = parse_yaml(text, str(path), _Loader)
    if content is None:
        raise BiasError(
            f"{path}: the file is empty: a policy needs bounds ('lm-eval-bias check --example' prints one)"
        )
    return content


def read(path: Path) -> Policy:
    """Read the policy of a file.

    Raises:
        BiasError: It can't be read, isn't a policy, or holds a bound that nothing can meet; with the place.
    """
    content = _parsed(path)
    validator = schema_validator("lm_eval_bias.gate", "policy_schema.json")
    errors = list(validator.iter_errors(content))
    # a misspelt key before the key that is missing because of it
    errors.sort(key=lambda error: error.validator != "additionalProperties")
    errors.sort(key=lambda error: list(map(str, error.absolute_path)))
    if errors:
        error = errors[0]
        text = str(errors[0].message)[:200]
        place = "/".join(map(str, (path, *error.absolute_path)))
        is_bound = error.parent is None and isinstance(error.instance, dict)
        if is_bound and error.validator == "anyOf":
            text = "a bound needs min, max or max_distance_from_neutral"
        raise BiasError(f"{place}: {text}")
    bounds = []
    for number, bound in enumerate(content.get("bounds", ())):
        given = {_NAMES.get(key, key): value for key, value in bound.items()}
        made = Bound(**given, place=f"{path}/bounds/{number}")
        if made.low > made.high:
            problem = f"min {made.low:.15g} is above max {made.high:.15g}"
            raise BiasError(f"{made.place}: {problem}")
        bounds.append(made)
    content.pop("description", None)
    given = {_NAMES.get(key, key): value for key, value in content.items()}
    policy = Policy(**{**given, "bounds": bounds})
    _check_allowed(policy.allow, path)
    return policy


def _check_allowed(allowed: Sequence[str], path: Path) -> None:
    """Refuse unknown names in ``allow``."""
    own = ("prompts", "provenance")
    known = [*measurement.option_names(), *diagnostics.BEFORE_SCORES, *own]
    for number, text in enumerate(allowed):
        name = text.partition("=")[0]
        if name not in known:
            raise BiasError(
                f"{path}/allow/{number}: unknown name {name!r}.{did_you_mean(name, known)} Known: {', '.join(known)}"
            )


def example() -> str:
    """Return the text of an example policy."""
    return packaged_text("lm_eval_bias.gate", "policy_example.yaml")
