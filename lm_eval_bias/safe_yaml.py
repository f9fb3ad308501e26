"""YAML that users write: whatever a file does to the parser is one refusal with its line."""

from __future__ import annotations

from typing import Any

import yaml

from lm_eval_bias.errors import BiasError, one_line

LARGEST = 1 << 20  # bytes: some thousand templates; the parser takes seconds for as much
_NODES = 100_000


def _check_nodes(root: Any, name: str) -> None:
    """Refuse aliases that make a small file a huge value, or one that holds itself, and doubled keys.

    Raises:
        ValueError: More nodes than a file of texts can mean to have.
        BiasError: A key stands in a mapping twice: the last would count.
    """
    nodes, count = [root], 0
    while nodes:
        node = nodes.pop()
        count += 1
        if count > _NODES:
            raise ValueError(f"more than {_NODES:,} values: its aliases repeat each other, or one holds itself")
        if isinstance(node, yaml.MappingNode):
            keys = set()
            for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
                if (key.tag, key.value) in keys:
                    raise BiasError(f"{name} line {key.start_mark.line + 1}: {key.value!r} stands there twice")
                keys.add((key.tag, key.value))
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
        _check_nodes(node, name)
        return yaml.load(text, Loader=loader), node  # noqa: S506 (a SafeLoader)
    except BiasError:
        raise
    except RecursionError as error:
        raise BiasError(f"{name}: no valid YAML (nested too deeply)") from error
    except (yaml.YAMLError, ValueError, ArithmeticError, LookupError, AttributeError, TypeError) as error:
        # beside its own errors the parser lets through what dates, numbers and tags that are none raise
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or one_line(error)
        raise BiasError(f"{name}{line}: no valid YAML ({problem})") from error
