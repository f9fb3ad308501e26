"""Reads pickled pandas frames of texts without pandas, and without running anything that they name.

A pickle is a program: loading it calls what it names. Here only the dozen names of a frame of texts are admitted, and
a harmless stand-in takes their places.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy

from lm_eval_bias.core.errors import BiasError, one_line

_NAMES = {
    ("builtins", "slice"),
    ("pandas._libs.internals", "_unpickle_block"),
    ("pandas.core.internals.managers", "BlockManager"),
    ("pandas.core.frame", "DataFrame"),
    *(("pandas.core.indexes.base", name) for name in ("_new_Index", "Index")),
    ("pandas.core.indexes.range", "RangeIndex"),
    ("pandas.core.indexes.numeric", "Int64Index"),
    *(("pandas", name) for name in ("DataFrame", "Index", "RangeIndex")),  # pandas 3 on
    *(("numpy", name) for name in ("ndarray", "dtype")),
    *((f"numpy.{core}.multiarray", "_reconstruct") for core in ("core", "_core")),
    *((f"numpy.{core}.numeric", "_frombuffer") for core in ("core", "_core")),
}


class _Part:
    """Stands for whatever is named: keeps its arguments and its state."""

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Return a new class each time, since a file can write to it."""
        if (module, name) not in _NAMES:
            raise pickle.UnpicklingError(f"it names {module}.{name}"[:200] + ", which no table of texts needs")
        return slice if name == "slice" else type(name, (_Part,), {})


def _grid(array: Any) -> Any:
    """The texts and lists of a pickled array, which has them row by row."""
    _, shape, dtype, _, values = array.state
    if dtype.arguments[0] != "O8" or not isinstance(values, list):
        raise ValueError("an array of something other than texts")
    return numpy.fromiter(values, object).reshape(shape)


def read_frame(content: bytes, where: str) -> dict[str, list[Any]]:
    """Read the columns of a pickled pandas frame of texts and lists.

    Args:
        content: The pickle.
        where: What to call it in an error.

    Returns:
        Lists of equal length by column name.

    Raises:
        BiasError: It is no such frame, or names anything that such a frame doesn't need; nothing of it was run.
    """
    try:
        blocks, (columns, _) = _Unpickler(io.BytesIO(content)).load().state["_mgr"].arguments
        names = _grid(columns.arguments[1]["data"]).tolist()
        values: dict[str, list[Any]] = {}
        for rows, places, *_ in (block.arguments for block in blocks):
            numbers = range(len(names))[places]
            values |= {names[n]: row.tolist() for n, row in zip(numbers, _grid(rows), strict=True)}
        if len({len(column) for column in values.values()}) > 1:
            raise ValueError("columns of different lengths")
        return {name: values[name] for name in names}
    except Exception as error:  # a hostile or damaged file can fail in any way; none of them may pass
        raise BiasError(f"{where}: refused and not read: {one_line(error)[:300]}") from error
