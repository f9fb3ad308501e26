"""Errors that are reported in one line with exit status 2."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Iterable
from typing import NoReturn

_LONGEST = 2_000


class BiasError(ValueError):
    """Bad usage, bad input or data that cannot be had: one line that says what, where and what to do."""


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """`` Did you mean x, y?`` for the closest known names, or an empty string.

    >>> did_you_mean("occugneder", ["occugender", "gg_bbq"])
    ' Did you mean occugender?'
    """
    close = difflib.get_close_matches(name, list(names), n=3)
    return f" Did you mean {', '.join(close)}?" if close else ""


def extras() -> dict[str, list[str]]:
    """What the extras of this package bring, under the names of the imports; empty where it isn't installed."""
    from importlib import metadata

    brought: dict[str, list[str]] = {}
    try:
        requirements = metadata.requires("lm-eval-bias") or []
    except metadata.PackageNotFoundError:
        return {}
    for requirement in requirements:
        match = re.fullmatch(r"([\w-]+)(\[.*\])?[^;]*; *extra == ['\"](\w+)['\"]", requirement)
        if match and not match[2] and match[3] not in ("test", "dev", "mutation"):
            name = "sklearn" if match[1] == "scikit-learn" else match[1].replace("-", "_")
            brought.setdefault(match[3], []).append(name)
    return brought


def require_extra(extra: str) -> None:
    """Refuse to start what needs the packages of an extra.

    Raises:
        BiasError: One of them is not installed; says how to install it.
    """
    for package in extras().get(extra, []):
        if not _installed(package):
            raise BiasError(f"{package} is not installed: {how_to_install(extra)}")


def _installed(package: str) -> bool:
    from importlib.util import find_spec

    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # something keeps it from being imported
        return False


def how_to_install(extra: str) -> str:
    """The command that installs an extra.

    >>> how_to_install("report")
    'pip install "lm-eval-bias[report]"'
    """
    return f'pip install "lm-eval-bias[{extra}]"'


def printable(message: object) -> str:
    r"""A message on one line of bounded length, whatever the files say that it cites; paths keep their spaces.

    >>> printable("a  b\nc\x1b[2J\ud800")
    'a  b\\nc\\x1b[2J\\ud800'
    """
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(message)[:_LONGEST])
    return text if len(str(message)) <= _LONGEST else f"{text}…"


class Parser(argparse.ArgumentParser):
    """Of a command line; says what is wrong with it in one line, whatever words it has."""

    def error(self, message: str) -> NoReturn:
        """Print usage and the message, and exit with status 2."""
        super().error(printable(message))


def one_line(error: BaseException) -> str:
    r"""An exception's message without line breaks; its type where it has none.

    >>> one_line(ValueError("a\n b")), one_line(AssertionError())
    ('a b', 'AssertionError')
    """
    return " ".join(str(error).split()) or type(error).__name__
