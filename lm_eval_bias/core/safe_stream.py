"""Streams that are safe to read: what commands a terminal or a CI's log is written out, secrets are masked."""

from __future__ import annotations

import contextlib
import logging
import re
import sys
from collections.abc import Iterator
from typing import Any, TextIO

from lm_eval_bias.core import redaction
from lm_eval_bias.core.errors import BiasError

# controls, halves of characters, what turns the direction of a text or can't be seen, and what no XML may hold
_UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\ufffe\uffff]"
)
# of GitHub at the beginning of a line; of others, and formerly of GitHub, anywhere
_WORKFLOW = re.compile(r"(^[^\S\n]*:):|(#)#(?=\w*\[)", re.MULTILINE)
_OF_BARS = re.compile(r"[\r\n]*(?:\x1b\[A)*")


def visible(text: object) -> str:
    r"""Escape control characters of a text, as JSON does.

    >>> print(visible("a\x1b[2J\ud800 \u202eb"))
    a\u001b[2J\ud800 \u202eb
    """
    text = str(text)
    if text.isascii() and text.isprintable():  # most texts
        return text
    return _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def visible_line(text: object) -> str:
    r"""Escape control characters and line breaks of a text.

    >>> visible_line(" a\n b")
    'a b'
    """
    return " ".join(visible(text).split())


def _inert(match: re.Match[str]) -> str:
    return f"{match[1] or match[2]}\\u{ord(match[0][-1]):04x}"


class SafeStream:
    r"""A stream that escapes control characters and masks secrets.

    >>> SafeStream(sys.stdout).write("::error::a\x1bb\n")
    :\u003aerror::a\u001bb
    13
    """

    def __init__(self, stream: TextIO, bars: bool = False) -> None:
        """Wrap a stream; carriage returns of progress bars are kept."""
        self.behind: TextIO = stream
        self._bars = bars
        self._line = ""  # as far as it is written

    def __getattr__(self, name: str) -> Any:
        """Delegate everything else to the stream."""
        return getattr(self.behind, name)

    def write(self, text: str) -> int:
        """Write a text."""
        bar = _OF_BARS.match(text) if self._bars else None
        ahead = bar[0] if bar else ""
        line = "" if ahead else self._line
        before = line if line.strip() in ("", ":") else "."
        shown = visible(redaction.masked(text[len(ahead) :]))
        shown = _WORKFLOW.sub(_inert, before + shown)[len(before) :]
        self.behind.write(ahead + shown)
        self._line = (line + text[len(ahead) :]).rpartition("\n")[2]
        return len(text)


def write_page(text: str) -> None:
    """Print a page, in which all texts are shown already: its scripts are known by their hashes."""
    stream = sys.stdout
    if isinstance(stream, SafeStream):
        stream = stream.behind
    stream.write(redaction.masked(text))


@contextlib.contextmanager
def safe_streams() -> Iterator[None]:
    """Send all printed and logged text through safe streams while the context lasts."""
    before = sys.stdout, sys.stderr
    streams = {handler: handler.stream for handler in _handlers()}
    with redaction.learning():
        sys.stdout = SafeStream(sys.stdout)
        sys.stderr = SafeStream(sys.stderr, bars=True)
        for handler in streams:
            handler.stream = sys.stderr
        try:
            yield
        except BiasError as error:  # for whoever called, with what it came from
            error.args = tuple(redaction.masked(error.args))
            raise error from None
        finally:
            sys.stdout, sys.stderr = before
            for handler in _handlers():
                handler.stream = streams.get(handler, before[1])


def _handlers() -> list[Any]:
    """List the log handlers of the harness and of this package."""
    handlers = logging.getLogger("lm_eval").handlers
    return [one for one in handlers if type(one) is logging.StreamHandler]
