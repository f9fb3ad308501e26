"""A machine for the few pickle instructions that a table of texts needs, in place of Python's own.

A pickle is a program. Python's machine can be kept from naming functions, but not from what costs memory and time
alone: a memo of four billion places, tuples that hold each other and take for ever to hash. This one has no attributes
to set, no object that is two objects' part, no keys but texts, and never does more than its file has bytes.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


class Refused(Exception):
    """The file asks for something that no table of texts needs."""


class StandIn:
    """What a file may make and fill in place of an object of pandas or numpy."""

    def fill(self, state: Any) -> None:
        """Take the state that the file holds for the object.

        Raises:
            Refused: It has none.
        """
        raise Refused(f"it gives a state to a {type(self).__name__.strip('_')}")


@dataclass(frozen=True)
class _Name:
    make: Callable[..., Any]


_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_VALUES = {
    *("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"),
    *("SHORT_BINBYTES", "BINBYTES", "BINBYTES8"),
}


class _Machine:
    def __init__(self, names: Mapping[tuple[str, str], Callable[..., Any]]) -> None:
        self.names = names
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}

    def pop(self) -> Any:
        if len(self.stack) <= (self.marks[-1] if self.marks else 0):
            raise Refused("it uses a value that isn't there")
        return self.stack.pop()

    def pop_to_mark(self) -> list[Any]:
        if not self.marks:
            raise Refused("it uses a value that isn't there")
        start = self.marks.pop()
        items = self.stack[start:]
        del self.stack[start:]
        return items

    def pop_many(self, number: int) -> list[Any]:
        return [self.pop() for _ in range(number)][::-1]

    def top(self, kind: type) -> Any:
        value = self.pop()
        if not isinstance(value, kind):
            raise Refused(f"it treats a {type(value).__name__.strip('_')} as a {kind.__name__.strip('_')}")
        self.stack.append(value)
        return value

    def name(self, module: Any, name: Any) -> None:
        if (module, name) not in self.names:
            raise Refused(f"it names {module}.{name}"[:200] + ", which no table of texts needs")
        self.stack.append(_Name(self.names[module, name]))

    def make(self) -> None:
        arguments = self.top(tuple)
        self.pop()
        constructor = self.top(_Name)
        self.pop()
        self.stack.append(constructor.make(*arguments))

    def fill(self) -> None:
        state = self.pop()
        self.top(StandIn).fill(state)

    def pairs(self, items: list[Any]) -> None:
        mapping = self.top(dict)
        if len(items) % 2 or not all(type(key) is str for key in items[::2]):
            raise Refused("it holds a mapping whose keys are not texts")
        mapping.update(zip(items[::2], items[1::2], strict=True))

    def recall(self, index: int) -> None:
        value = self.memo.get(index)
        if index not in self.memo or isinstance(value, (list, dict, tuple)):
            raise Refused("it uses one collection as two, or one that it never stored")
        self.stack.append(value)

    def step(self, name: str, arg: Any) -> None:
        if name in _VALUES:
            self.stack.append(arg)
        elif name in _CONSTANTS:
            self.stack.append(_CONSTANTS[name])
        elif name == "MEMOIZE":
            self.memo[len(self.memo)] = self.top(object)
        elif name in ("BINPUT", "LONG_BINPUT"):
            self.memo[arg] = self.top(object)
        elif name in ("BINGET", "LONG_BINGET"):
            self.recall(arg)
        elif name == "MARK":
            self.marks.append(len(self.stack))
        elif name in ("EMPTY_LIST", "EMPTY_DICT", "EMPTY_TUPLE"):
            self.stack.append({"EMPTY_LIST": list, "EMPTY_DICT": dict, "EMPTY_TUPLE": tuple}[name]())
        elif name in ("TUPLE1", "TUPLE2", "TUPLE3"):
            self.stack.append(tuple(self.pop_many(int(name[-1]))))
        elif name == "TUPLE":
            self.stack.append(tuple(self.pop_to_mark()))
        elif name in ("APPEND", "APPENDS"):
            items = self.pop_to_mark() if name == "APPENDS" else self.pop_many(1)
            self.top(list).extend(items)
        elif name in ("SETITEM", "SETITEMS"):
            self.pairs(self.pop_to_mark() if name == "SETITEMS" else self.pop_many(2))
        elif name == "BYTEARRAY8":
            self.stack.append(bytes(arg))
        elif name == "GLOBAL":
            self.name(*arg.split(" ", 1))
        elif name == "STACK_GLOBAL":
            self.name(*(part if type(part) is str else type(part).__name__ for part in self.pop_many(2)))
        elif name in ("REDUCE", "NEWOBJ"):
            self.make()
        elif name == "BUILD":
            self.fill()
        elif name not in ("PROTO", "FRAME"):
            raise Refused(f"it holds the instruction {name}, which no table of texts needs")


def load(content: bytes, names: Mapping[tuple[str, str], Callable[..., Any]]) -> Any:
    """The object that a pickle describes, made of plain values and stand-ins.

    Args:
        content: The pickle; nothing may come after it.
        names: What may be named, by module and name, and what makes its stand-in.

    Raises:
        Refused: An instruction or a name that isn't admitted.
        Exception: Whatever a damaged file makes :mod:`pickletools` or a stand-in raise.
    """
    machine = _Machine(names)
    for opcode, arg, position in pickletools.genops(content):
        if opcode.name == "STOP":
            if position != len(content) - 1 or machine.marks or len(machine.stack) != 1:
                raise Refused("it doesn't end where it says it does")
            return machine.stack[0]
        machine.step(opcode.name, arg)
    raise Refused("it has no end")
