"""Errors that are reported in one line with exit status 2.

- ``BiasError``: bad usage, bad input, or data that can't be had

  - ``BadOption``: an option's value
  - ``answers.NotOurs``: a sample log of a task that this package doesn't have

    - ``answers.NotConcerned``: one of a benchmark that the given flags aren't about

- ``BenchmarkFault``, a warning: something of a benchmark failed and was left out, while the rest went on

A score that has no value raises ``custom_metrics.score.Undefined``, which becomes ``nan`` with the reason.
"""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

T = TypeVar("T")
_LONGEST = 2_000
FAULTS: dict[
    str, None
] = {}  # what failed in a benchmark and was left out, while the rest went on


class BiasError(ValueError):
    """An error of usage, input or data; its one line says what is wrong, where, and what to do."""


class BadOption(BiasError):
    """An error about an option, which is named as a flag on the command line and as a parameter in Python."""

    def __init__(self, option: str, value: object, problem: str) -> None:
        """Describe what is wrong with an option's value.

        >>> str(BadOption("base", "x", "no such run")), BadOption("base", "x", "no such run").in_python
        ('--base x: no such run', "base='x': no such run")
        """
        self.in_shell = f"--{option} {value}: {problem}"
        super().__init__(self.in_shell)
        self.in_python = f"{option}={value!r}: {problem}"


def check_scores(names: Iterable[str], known: Iterable[str]) -> None:
    """Refuse a score that no task at hand has.

    Raises:
        BadOption: ``names`` has such a score.
    """
    known = sorted(known)
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known)
            raise BadOption("scores", name, f"no task here has this score.{hint}")


class BenchmarkFault(UserWarning):
    """A fault of a benchmark's own code; commands list faults and end with status 2."""


def fault(text: str) -> None:
    """Record a fault of a benchmark's code, once."""
    if text not in FAULTS:
        FAULTS[text] = None
        warnings.warn(text, BenchmarkFault, stacklevel=2)


def call_plugin(
    default: T,
    benchmark: Any,
    method: Callable[..., T],
    *arguments: object,
) -> T:
    """Call a plugin's method. If it raises, record a fault and return `default`."""
    try:
        result = method(*arguments)
        return list(result) if isinstance(result, Iterator) else result  # type: ignore[return-value]
    except Exception as error:
        fault(
            f"the benchmark {benchmark.name}: {getattr(method, '__name__', 'a function')} failed ({kind_of(error)})"
        )
        return default


def kind_of(error: BaseException) -> str:
    """Return an exception as one line, with its type unless it is this package's.

    >>> kind_of(KeyError("age")), kind_of(BiasError("no such file"))
    ("KeyError: 'age'", 'no such file')
    """
    text = one_line(error)
    named = isinstance(error, BiasError) or text.startswith(type(error).__name__)
    return text if named else f"{type(error).__name__}: {text}"


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return `` Did you mean x, y?`` with the closest known names, or an empty string.

    >>> did_you_mean("occugneder", ["occugender", "gg_bbq"])
    ' Did you mean occugender?'
    """
    close = difflib.get_close_matches(name, list(names), n=3)
    return f" Did you mean {', '.join(close)}?" if close else ""


def require_extra(extra: str, *packages: str) -> None:
    """Raise an error if a package of an extra is missing.

    Args:
        extra: Its name in pyproject.toml.
        packages: What it installs, by import name.

    Raises:
        BiasError: One of them is not installed; says how to install it.
    """
    from importlib.util import find_spec

    for package in packages:
        if find_spec(package) is None:
            raise BiasError(f"{package} is not installed: {how_to_install(extra)}")


def how_to_install(extra: str) -> str:
    """Write the command that installs an extra.

    >>> how_to_install("regard")
    'pip install "lm-eval-bias[regard]"'
    """
    return f'pip install "lm-eval-bias[{extra}]"'


# of what the harness's own extras bring, where one of ours is the same
_OF_HARNESS = {"vllm": "vllm", "aiohttp": "api", "tenacity": "api", "tiktoken": "api"}


def import_failure(error: Exception) -> str:
    """Explain an import error, with the command that installs the missing package where it is known.

    >>> import_failure(ModuleNotFoundError("No module named 'vllm'", name="vllm.config"))
    'vllm is not installed: pip install "lm-eval-bias[vllm]"'
    """
    package = (getattr(error, "name", None) or "").partition(".")[0]
    if not isinstance(error, ModuleNotFoundError) or package not in _OF_HARNESS:
        return one_line(error)
    return f"{package} is not installed: {how_to_install(_OF_HARNESS[package])}"


def printable(message: object) -> str:
    r"""Write a message as one line of bounded length, whatever it cites; paths keep their spaces.

    >>> printable("a  b\nc\x1b[2J\ud800")
    'a  b\\nc\\x1b[2J\\ud800'
    """
    text = "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode()
        for c in str(message)[:_LONGEST]
    )
    return text if len(str(message)) <= _LONGEST else f"{text}…"


def one_line(error: BaseException) -> str:
    r"""Return an exception's message on one line, or its type if it has none.

    >>> one_line(ValueError("a\n b")), one_line(AssertionError())
    ('a b', 'AssertionError')
    >>> one_line(TypeError("f.__init__() got an unexpected keyword argument 'a'"))
    "unknown argument 'a'"
    """
    text = " ".join(str(error).split()) or type(error).__name__
    text = re.sub(
        r"^[\w.<>]+\(\) got an unexpected keyword argument ", "unknown argument ", text
    )
    return re.sub(
        r"^[\w.<>]+\(\) missing \d+ required \S+ arguments?: ",
        "missing argument ",
        text,
    )
