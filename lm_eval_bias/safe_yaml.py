"""YAML that users write: whatever a file does to the parser is one refusal with its line."""

from __future__ import annotations

from typing import Any

import yaml

from lm_eval_bias.errors import BiasError, one_line

LARGEST = 1 << 20  # bytes: some thousand templates; the parser takes seconds for as much
_NODES = 100_000


def _check_size(root: Any) -> None:
    """Refuse aliases that make a small file a huge value, or one that holds itself.

    Raises:
        ValueError: More nodes than a file of texts can mean to have.
    """
    nodes, count = [root], 0
    while nodes:
        node = nodes.pop()
        count += 1
        if count > _NODES:
            raise ValueError(f"more than {_NODES:,} values: its aliases repeat each other, or one contains itself")
        if isinstance(node, yaml.MappingNode):
            nodes += [part for pair in node.value for part in pair]
        elif isinstance(node, yaml.SequenceNode):
            nodes += node.value


def parse(text: str, name: str, loader: Any = yaml.SafeLoader) -> tuple[Any, Any]:
    """The value of a YAML text and its node, which knows the lines; ``None`` for both where it is empty.

    Args:
        text: The YAML.
        name: What to call it in an error.
        loader: A safe loader.

    Raises:
        BiasError: It is no YAML, or its values are none.
    """
    try:
        node = yaml.compose(text, Loader=loader)  # noqa: S506 (a SafeLoader)
        _check_size(node)
        return yaml.load(text, Loader=loader), node  # noqa: S506 (a SafeLoader)
    except RecursionError as error:
        raise BiasError(f"{name}: not valid YAML (nested too deeply)") from error
    except (yaml.YAMLError, ValueError, ArithmeticError, LookupError, AttributeError, TypeError) as error:
        # beside its own errors the parser lets through what dates, numbers and tags that are none raise
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or one_line(error)
        raise BiasError(f"{name}{line}: not valid YAML ({problem})") from error


def refuse_doubled(node: yaml.Node | None, name: str) -> None:
    """Refuse a key that stands in a mapping twice: YAML would quietly take the last.

    Args:
        node: Of :func:`parse`.
        name: What to call it in an error.

    Raises:
        BiasError: The first such key, with its line.
    """
    if isinstance(node, yaml.MappingNode):
        keys: set[str] = set()
        for key, value in node.value:
            if isinstance(key.value, str) and key.value in keys:
                raise BiasError(f"{name} line {key.start_mark.line + 1}: {key.value!r} appears twice")
            keys.add(str(key.value))
            refuse_doubled(value, name)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            refuse_doubled(value, name)
