"""Fills empty cells of a translation sheet with a program that reads lines and writes as many."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping, Sequence

from lm_eval_bias.core.errors import BiasError, one_line
from lm_eval_bias.core.questions import BLANK
from lm_eval_bias.core.safe_stream import visible_line

STAND_IN = "XYZ"  # comes back from programs that translate, drop or inflect BLANK
_CAPITALISED = ("de", "lb")  # languages whose nouns begin with a capital letter
Row = dict[str, str]


def translations(texts: Sequence[str], command: str) -> dict[str, str]:
    """Translate texts by one call of a program, one text per line; equal texts get one translation.

    Raises:
        BiasError: It can't be started, fails, or writes another number of lines.
    """
    lines = list(dict.fromkeys(texts))
    try:
        done = subprocess.run(  # noqa: S603 (the user's own command)
            shlex.split(command),
            input="".join(f"{line}\n" for line in lines),
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
    except (OSError, ValueError, IndexError) as error:
        raise BiasError(f"--with {command!r}: {one_line(error)}") from error
    if done.returncode:
        last = visible_line(done.stderr.strip().rpartition("\n")[2])
        raise BiasError(f"--with {command!r}: ended with {done.returncode}: {last}")
    written = done.stdout.removesuffix("\n").split("\n") if lines else []
    if len(written) != len(lines):
        raise BiasError(
            f"--with {command!r}: wrote {len(written):,} lines for {len(lines):,}: it must write one for each"
        )
    return {
        line: " ".join(own.split()) for line, own in zip(lines, written, strict=True)
    }


def fill(
    sources: Sequence[Mapping[str, str]],
    rows: Sequence[Row],
    command: str,
    language: str,
) -> int:
    """Fill the empty cells of rows, and return their number; existing texts stay.

    Args:
        sources: English texts by column, as :func:`.translate.texts_of` gives them.
        rows: The sheet's rows, in the same order.
        command: The program.
        language: What it translates into.
    """
    empty = [
        (row, name, text)
        for source, row in zip(sources, rows, strict=True)
        for name, text in source.items()
        # within sentences a sentence is the context with its word
        if not row[name] and f"{name} word" not in source
    ]
    found = translations([text for _, _, text in empty], command)
    lost = [text for text in found if text.count(BLANK) != found[text].count(BLANK)]
    hidden = [text.replace(BLANK, STAND_IN) for text in lost]
    again = translations(hidden, command) if hidden else {}
    for text, sent in zip(lost, hidden, strict=True):
        found[text] = again[sent].replace(STAND_IN, BLANK)
    for row, name, text in empty:
        row[name] = found[text]
        if name.endswith(" word") or name == "target":
            row[name] = _alone(text, found[text], language)
    return len(empty)


def _alone(source: str, text: str, language: str) -> str:
    """Remove the capital letter and the full stop that translation programs add to single words.

    >>> _alone("loud", "Luide.", "nl")
    'luide'
    """
    if not source.endswith("."):
        text = text.removesuffix(".")
    if source[:1].islower() and language.partition("-")[0] not in _CAPITALISED:
        text = text[:1].lower() + text[1:]
    return text
