"""Pickled pandas frames read without pandas and without trust.

A pickle is a program: loading it runs what it names. This reader admits only the dozen names that a frame of texts
needs and puts harmless stand-ins behind all of them, so that nothing of pandas, numpy or anything else runs, whatever
the file says and whichever pandas version wrote it (tested with 1.x files, which name classes that pandas 3 no longer
has).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lm_eval_bias.data.restricted_pickle import Refused, StandIn, load
from lm_eval_bias.errors import BiasError, one_line

_INTEGERS = {"i8": "q", "i4": "i", "u8": "Q", "u4": "I"}


def _numbers(value: Any, name: str) -> tuple[int, ...]:
    """Whole numbers that a file gives as such."""
    if not isinstance(value, tuple) or not all(type(number) is int for number in value):
        raise Refused(f"{name} that is none")
    return value


class _Dtype(StandIn):
    def __init__(self, code: Any, *_: object) -> None:
        if not isinstance(code, str) or code not in ("O8", "O", *_INTEGERS):
            raise Refused("an array of something other than texts and whole numbers")
        self.code = code
        self.order = "<"

    def fill(self, state: Any) -> None:
        self.order = ">" if state[1] == ">" else "<"


class _Array(StandIn):
    """A numpy array's content: its shape and a flat list of values in C order."""

    def __init__(self) -> None:
        self.shape: tuple[int, ...] = ()
        self.values: list[Any] = []

    def take(self, raw_shape: Any, dtype: Any, fortran: bool, content: Any) -> _Array:
        shape = _numbers(raw_shape, "a shape")
        if len(shape) not in (1, 2) or min(shape) < 0 or not isinstance(dtype, _Dtype):
            raise Refused("an array that is none")
        count = shape[0] * shape[-1] if len(shape) == 2 else shape[0]
        # the content says how much there is, before anything is made of the shape
        kind = _INTEGERS.get(dtype.code, "")
        if kind and isinstance(content, bytes) and len(content) == count * struct.calcsize(f"={kind}"):
            flat = list(struct.unpack(f"{dtype.order}{count}{kind}", content))
        elif not kind and isinstance(content, list) and len(content) == count:
            flat = list(content)
        else:
            raise Refused("an array whose shape doesn't fit its content")
        if fortran and count and len(shape) == 2:
            rows, columns = shape
            flat = [flat[column * rows + row] for row in range(rows) for column in range(columns)]
        self.shape, self.values = shape, flat
        return self

    def fill(self, state: Any) -> None:
        _, shape, dtype, fortran, content = state
        self.take(shape, dtype, bool(fortran), content)


class _Index(StandIn):
    def __init__(self, content: Any) -> None:
        if not isinstance(content, dict):
            raise Refused("an index that is none")
        self.content: dict[str, Any] = content

    def texts(self) -> list[str]:
        """Names of columns."""
        data = self.content.get("data")
        if not isinstance(data, _Array) or not all(isinstance(name, str) for name in data.values):
            raise Refused("columns without names")
        return data.values

    def __len__(self) -> int:
        data = self.content.get("data")
        if isinstance(data, _Array):
            return len(data.values)
        return len(range(*_numbers(tuple(self.content[key] for key in ("start", "stop", "step")), "a range")))


@dataclass(eq=False)
class _Block(StandIn):
    values: Any
    placement: Any
    ndim: int = 2


@dataclass(eq=False)
class _Manager(StandIn):
    blocks: Any
    axes: Any


class _Frame(StandIn):
    manager: _Manager

    def fill(self, state: Any) -> None:
        self.manager = state["_mgr"]

    def columns(self) -> dict[str, list[Any]]:
        """Values by the names of columns, in their order."""
        columns, rows = self.manager.axes
        names = columns.texts()
        values: dict[str, list[Any]] = {}
        for block in self.manager.blocks:
            places = block.placement
            numbers = places.values if isinstance(places, _Array) else range(*places.indices(len(names)))
            height, width = block.values.shape
            if len(numbers) != height or width != len(rows):
                raise Refused(f"a block of {height} x {width} for {len(numbers)} x {len(rows)} places")
            for row, number in enumerate(numbers):
                values[names[number]] = block.values.values[row * width : (row + 1) * width]
        if len(values) != len(names):
            raise Refused(f"{len(values)} columns for {len(names)} names")
        return {name: values[name] for name in names}


def _new_array(*_: object) -> _Array:
    return _Array()


def _from_buffer(content: Any, dtype: Any, shape: Any, order: Any) -> _Array:
    return _Array().take(shape, dtype, order == "F", content)


def _new_index(_: object, content: Any) -> _Index:
    return _Index(content)


# what may be named, and what stands behind it
_NAMES: dict[tuple[str, str], Callable[..., Any]] = {
    ("builtins", "slice"): slice,
    ("pandas._libs.internals", "_unpickle_block"): _Block,
    ("pandas.core.frame", "DataFrame"): _Frame,
    ("pandas.core.internals.managers", "BlockManager"): _Manager,
    ("pandas.core.indexes.base", "_new_Index"): _new_index,
    ("pandas.core.indexes.base", "Index"): _Index,
    ("pandas.core.indexes.range", "RangeIndex"): _Index,
    ("pandas.core.indexes.numeric", "Int64Index"): _Index,
    ("pandas", "DataFrame"): _Frame,  # pandas 3 on
    ("pandas", "Index"): _Index,
    ("pandas", "RangeIndex"): _Index,
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Dtype,
}
for _package in ("numpy.core", "numpy._core"):
    _NAMES[f"{_package}.multiarray", "_reconstruct"] = _new_array
    _NAMES[f"{_package}.numeric", "_frombuffer"] = _from_buffer


def read_frame(content: bytes, where: str) -> dict[str, list[Any]]:
    """The columns of a pickled pandas frame of texts, numbers and lists.

    Args:
        content: The pickle.
        where: What to call it in an error.

    Returns:
        Lists of equal length by column name.

    Raises:
        BiasError: It is no such frame, or names anything that such a frame doesn't need; nothing of it was run.
    """
    try:
        frame = load(content, _NAMES)
        if not isinstance(frame, _Frame):
            raise Refused(f"it holds a {type(frame).__name__.strip('_')}, no table")
        return frame.columns()
    except Exception as error:  # a hostile or damaged file can fail in any way; none of them may pass
        raise BiasError(f"{where}: refused and not read: {one_line(error)[:300]}") from error
