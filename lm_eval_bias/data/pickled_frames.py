"""Reads pickled pandas frames without pandas, and without running anything that they name.

A pickle is a program: loading it calls what it names. Here only the dozen names of a frame of texts are admitted, and
harmless stand-ins take their places, whichever version of pandas wrote the file.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy

from lm_eval_bias.core.errors import BiasError, one_line

_INTEGERS = ("i8", "i4", "u8", "u4")


class _Part:
    # pickle itself makes attributes of a state
    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments


class _Dtype(_Part):
    def __setstate__(self, state: Any) -> None:
        self.order = state[1]


class _Array(_Part):
    def __setstate__(self, state: Any) -> None:
        _, self.shape, self.dtype, self.fortran, self.content = state

    def grid(self) -> Any:
        code, values, fortran = self.dtype.arguments[0], self.content, False  # objects are listed row by row
        if code in _INTEGERS:
            ends = ">" if getattr(self.dtype, "order", "<") == ">" else "<"
            values, fortran = numpy.frombuffer(values, ends + code).tolist(), self.fortran
        elif code not in ("O8", "O") or not isinstance(values, list):
            raise ValueError("an array of something other than texts and whole numbers")
        return numpy.fromiter(values, object).reshape(self.shape, order="F" if fortran else "C")


class _BufferArray(_Array):
    def __init__(self, content: Any, dtype: Any, shape: Any, order: Any) -> None:
        self.__setstate__((1, shape, dtype, order == "F", content))


# what may be named, and what stands for it
_NAMES: dict[tuple[str, str], type] = {
    ("builtins", "slice"): slice,
    ("pandas._libs.internals", "_unpickle_block"): _Part,
    ("pandas.core.internals.managers", "BlockManager"): _Part,
    ("pandas.core.frame", "DataFrame"): _Part,
    **{("pandas.core.indexes.base", name): _Part for name in ("_new_Index", "Index")},
    ("pandas.core.indexes.range", "RangeIndex"): _Part,
    ("pandas.core.indexes.numeric", "Int64Index"): _Part,
    **{("pandas", name): _Part for name in ("DataFrame", "Index", "RangeIndex")},  # pandas 3 on
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Dtype,
    **{(f"numpy.{core}.multiarray", "_reconstruct"): _Array for core in ("core", "_core")},
    **{(f"numpy.{core}.numeric", "_frombuffer"): _BufferArray for core in ("core", "_core")},
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Return a new class each time, since a file can write to it."""
        if (module, name) not in _NAMES:
            raise pickle.UnpicklingError(f"it names {module}.{name}"[:200] + ", which no table of texts needs")
        return slice if name == "slice" else type(name, (_NAMES[module, name],), {})


def read_frame(content: bytes, where: str) -> dict[str, list[Any]]:
    """Read the columns of a pickled pandas frame of texts, whole numbers and lists.

    Args:
        content: The pickle.
        where: What to call it in an error.

    Returns:
        Lists of equal length by column name.

    Raises:
        BiasError: It is no such frame, or names anything that such a frame doesn't need; nothing of it was run.
    """
    try:
        blocks, (columns, _) = _Unpickler(io.BytesIO(content)).load()._mgr.arguments
        names = columns.arguments[1]["data"].grid().tolist()
        values: dict[str, list[Any]] = {}
        for values_of, places, *_ in (block.arguments for block in blocks):
            numbers = range(len(names))[places] if isinstance(places, slice) else places.grid()
            values |= {names[n]: row.tolist() for n, row in zip(numbers, values_of.grid(), strict=True)}
        if len({len(column) for column in values.values()}) > 1:
            raise ValueError("columns of different lengths")
        return {name: values[name] for name in names}
    except Exception as error:  # a hostile or damaged file can fail in any way; none of them may pass
        raise BiasError(f"{where}: refused and not read: {one_line(error)[:300]}") from error
