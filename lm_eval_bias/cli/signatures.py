"""Commands made of functions: parameters are arguments and flags, annotations their types, docstrings their help.

- A parameter is an argument, a keyword-only one a flag; one with a default may be left out. ``bool`` is a switch,
  ``Sequence[str]`` takes several values, as a flag by being given again, ``Literal`` one of some. A function in
  ``Annotated`` reads the value.
- ``name (PLACE): text`` under ``Args:`` is the help of a parameter, and what stands for its value; without, it is
  hidden.
- The fields of a dataclass are flags that several commands have. What its attribute ``NAMEs`` lists may be chosen for
  its field ``NAME``; ``separator`` stands between the words of its flags; those of ``once`` can't be given twice.
- ``**name`` are the flags that benchmarks add, listed by the function whose address stands in ``Annotated``.
"""

from __future__ import annotations

import argparse
import inspect
import pkgutil
import re
import sys
import typing
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Annotated, Any, NoReturn

from lm_eval_bias import api
from lm_eval_bias.core import Data
from lm_eval_bias.core.errors import printable

Names = Annotated[Sequence[str], api.names]
_PARAMETERS = re.compile(r"^(?:Args|Attributes):\n(?: .*\n?|\n)*", re.MULTILINE)
_PARAMETER = re.compile(r"^    (\w+)(?: \((.+?)\))?: (.*(?:\n     .*)*)", re.MULTILINE)
# argparse's words for a value of a wrong type: they name the function that reads it, or its address
_WRONG_TYPE = re.compile(
    r"invalid (?!choice)(\S+|functools\..*|<.*>) value: (?='.*'$|\".*\"$)", re.DOTALL
)


class _Once(argparse.Action):
    """An argparse action that refuses a flag given twice."""

    is_given = False

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: object,
        value: object,
        flag: str | None = None,
    ) -> None:
        if self.is_given:
            parser.error(f"{flag} is given twice: name one")
        self.is_given = True
        setattr(namespace, self.dest, value)


class Parser(argparse.ArgumentParser):
    """An argument parser that reports usage errors in one line."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse as usual, but refuse an empty value, as an unset variable gives: it would count as no option."""
        args = sys.argv[1:] if args is None else list(args)
        for flag, value in zip(args, [*args[1:], "-"], strict=False):
            is_empty = "=" not in flag and not value.strip()
            if flag.startswith("--") and (is_empty or flag.endswith("=")):
                self.error(
                    f"argument {flag.rstrip('=')}: is empty: give a value, or leave the option out"
                )
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Print the message and how to get help, and exit with status 2."""
        text = printable(_WRONG_TYPE.sub("not a valid value: ", message))
        self.exit(2, f"{self.prog}: error: {text} (see '{self.prog} --help')\n")


Caller = Callable[[argparse.Namespace], Any]


def _reporting(reader: Callable[[str], object]) -> Callable[[str], object]:
    """Wrap a value parser so that argparse reports its errors."""

    def read(text: str) -> object:
        try:
            return reader(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return read


def command(function: Callable[..., Any], program: str) -> tuple[Parser, Caller]:
    """Return the parser of the command ``program``, and a function that runs the command with the parsed arguments."""
    text = inspect.getdoc(function) or ""
    before, _, after = _PARAMETERS.sub("\f", text).partition("\f")
    made = Parser(
        program,
        description=before,
        epilog=after,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    return made, _add(made, function)


def _add(made: Parser, function: Callable[..., object]) -> Caller:
    """Add a function's parameters (or a dataclass's fields) as flags; return a function that calls it with them."""
    owners = getattr(function, "__mro__", [function])
    text = "\n".join(map(str, map(inspect.getdoc, owners))).replace("%", "%%")
    described = {
        name: (place, help_text) for name, place, help_text in _PARAMETER.findall(text)
    }
    kinds = typing.get_type_hints(function, include_extras=True)
    values: dict[str, Caller] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        parts = [kinds[name]]
        for part in parts:  # which grows
            parts += typing.get_args(part)
        if hasattr(parts[0], "__dataclass_fields__"):
            values[name] = _add(made, parts[0])
        elif parameter.kind is parameter.VAR_KEYWORD:
            for one in pkgutil.resolve_name(parts[-1])():
                made.add_argument(f"--{one.flag}", metavar=one.metavar, help=one.help)
                values[one.flag] = attrgetter(one.flag)
        else:
            place, help_text = described.get(name, ("", argparse.SUPPRESS))
            flags, words = _words(function, parameter, parts)
            made.add_argument(*flags, help=help_text, metavar=place or None, **words)
            values[name] = attrgetter(name)
    return lambda given: function(**{name: get(given) for name, get in values.items()})


def _words(
    function: Callable[..., object], parameter: inspect.Parameter, parts: Sequence[Any]
) -> tuple[list[str], Data]:
    """Return a parameter's flags and its argparse options."""
    name = parameter.name
    readers: list[Any] = [number for number in (int, float) if number in parts]
    readers += map(_reporting, filter(inspect.isfunction, parts))
    several = Sequence[str] in parts and not readers
    required = parameter.default is parameter.empty
    choices = [part for part in parts if isinstance(part, str)]
    words: Data = {
        "default": None if required else parameter.default,
        "choices": choices or getattr(function, f"{name}s", None),
        "type": readers[-1] if readers else None,
    }
    is_field = inspect.isclass(function)
    if not is_field and parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
        words["nargs"] = ("?", None, "*", "+")[2 * several + required]
        return [name], words
    words |= {"required": required, "action": "append" if several else "store"}
    if name in getattr(function, "once", ()):
        words["action"] = _Once
    if bool in parts:
        words = {"action": "store_const", "const": True, "default": False}
    separator = getattr(function, "separator", "-")
    flag = f"--{name.rstrip('_').replace('_', separator)}"
    return ["-o"] * (name == "output") + [flag], {**words, "dest": name}
