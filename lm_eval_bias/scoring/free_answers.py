"""What all free answers of models share: thoughts before them, refusals, markup.

A task of generated answers names :class:`WithoutThoughtsFilter` first among its filters, then its own reader, which
gives what an answer says or one of :data:`lm_eval_bias.core.answers.UNANSWERED`.
"""

from __future__ import annotations

import html
import logging
import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

from lm_eval.api.filter import Filter

from lm_eval_bias.core.answers import ENDLESS
from lm_eval_bias.core.files import packaged_yaml

logger = logging.getLogger("lm_eval.bias")

# what stands around an answer that is to be found by a program becomes English words, which all readers know
_FRAMES = (
    (r"\\boxed\s*\{", r"\nAnswer: "),
    (r"<answer>", r"\nAnswer: "),
    (r"</answer>", r"\n"),
)
_EMPHASIS = re.compile(r"(?<![*_])([*_]{1,3})(?=[^\s*_])([^*_\n]+)\1")
_MARKUP = re.compile(
    r"\\[a-zA-Z]+|</?\w+(?:\s[^<>]*)?/?>|<\|[^<>|]*\|>|[*_`#>„“”\"«»‘{}$\\「」『』]|(?<!\w)['’]|['’](?!\w)"
)
_BULLET = re.compile(r"^[^\S\n]*[*+]\s", re.MULTILINE)
_CIRCLED = {
    first + place: 65 + place for first in (0x1F150, 0x1F170) for place in range(26)
}
_APOSTROPHES = str.maketrans("’‘ʼ´`‐‑", "'''''--")
_THOUGHTS = "thoughts.yaml"
# a tag, special token or the like, with a channel or role that is written onto it
_MARK = re.compile(
    r"(?:<[|｜]?/?(?P<name>[\w:.-]{2,})(?:\s[^<>\n]{0,99})?[|｜]?/?>|◁/?think▷|\[/?THINK\])"
    r"(?P<channel>analysis|commentary|final|thought|assistant)?(?:<\|message\|>)?",
    re.IGNORECASE,
)
_CLOSING = re.compile(
    r"\W+(?:/|end)|<\w+\||<.*(?:suffix|_end)\W", re.IGNORECASE | re.DOTALL
)
_SPACE = re.compile(r"\s*")
_THOUGHT, _OTHER = "thought", "other"  # as thoughts.yaml calls them
_BEGINNING = 160  # characters in which a refusal begins


class _Mark(NamedTuple):
    """What begins or ends a thought, or something else.

    Attributes:
        start: Where it stands in the text.
        end: Where it ends.
        key: Its name's letters, by which a closing tag fits an opening one.
        meaning: What its name tells, by the last part that is listed: ``thought``, ``other`` or nothing.
        closes: Whether it ends something.
        is_special: Whether it is a special token, which one with another name may end.
    """

    start: int
    end: int
    key: str
    meaning: str
    closes: bool
    is_special: bool


@cache
def _names() -> re.Pattern[str]:
    lists = listed(_THOUGHTS)
    parts = (f"(?P<{kind}>{'|'.join(lists[kind])})" for kind in (_THOUGHT, _OTHER))
    return re.compile("|".join(parts), re.IGNORECASE)


def _marks(text: str) -> list[_Mark]:
    marks = []
    for match in _MARK.finditer(text):
        name = match["name"] or match[0]
        if name.lower() in listed(_THOUGHTS)["markup"]:
            continue
        meaning = ""
        for part in _names().finditer(name + (match["channel"] or "")):
            meaning = str(part.lastgroup)
        key = re.sub(r"\W", "", name).casefold()
        closes = _CLOSING.match(match[0]) is not None
        is_special = re.match(r"<(?:[|｜]|\w+\|)", match[0]) is not None
        marks.append(_Mark(*match.span(), key, meaning, closes, is_special))
    return marks


def _ends(mark: _Mark, opened: _Mark) -> bool:
    if opened.is_special and mark.is_special:
        return mark.closes or mark.meaning == _OTHER
    return mark.closes and (
        mark.key == opened.key or mark.meaning == opened.meaning == _THOUGHT
    )


@cache
def _warn_of(name: str) -> None:
    logger.warning(
        "an answer begins with a block in marks named %s: taken for a model's thoughts, and not read",
        name,
    )


def without_thoughts(text: str) -> str:
    """Return what a model answered behind its thoughts; ``ENDLESS`` where these don't end.

    A block in tags or special tokens that stands before the answer is a thought, unless its name tells otherwise
    (``thoughts.yaml``). A name that isn't known is named in a warning, once.

    >>> without_thoughts("<think>A nurse ...</think> Female"), without_thoughts("Female")
    ('Female', 'Female')
    >>> without_thoughts("<think>A nurse")
    '[unfinished thoughts]'
    """
    for begin, end in listed(_THOUGHTS)["words"].items():
        if end in text:
            text = text.rpartition(end)[2].strip()
        elif text.lstrip().startswith(begin):
            return ENDLESS
    marks = _marks(text)
    last_closing = {mark.key: mark.start for mark in marks if mark.closes}
    begin = start = _SPACE.match(text).end()
    opened = None
    for mark in marks:
        is_first = mark.start == start
        if opened:
            is_over = _ends(mark, opened)
        elif mark.closes:
            is_over = mark.meaning == _THOUGHT  # which the prompt has begun
        else:
            is_over = is_first and mark.is_special and mark.meaning == _OTHER
            is_again = mark.meaning == _THOUGHT and mark.start < last_closing.get(mark.key, 0)  # fmt: skip
            if is_again or (is_first and mark.meaning != _OTHER):
                opened = mark
        if not is_over:
            continue
        behind = _SPACE.match(text, mark.end).end()
        if opened and not opened.meaning:
            if behind == len(text):  # the answer itself, in marks
                return text[start:]
            _warn_of(opened.key)
        start = behind
        opened = None
    if opened:
        return ENDLESS
    return text if start == begin else text[start:].strip()


def opening_of_thoughts(prompt: Any) -> str:
    r"""Return the mark at a prompt's end that opens a model's thoughts, so that its text begins within them; or "".

    >>> opening_of_thoughts("<|assistant|><think>\n"), opening_of_thoughts("<think></think>Female")
    ('<think>', '')
    """
    text = prompt.rstrip()[-200:] if isinstance(prompt, str) else ""
    for mark in _marks(text)[-1:]:
        if mark.end == len(text) and mark.meaning == _THOUGHT and not mark.closes:
            return text[mark.start :]
    return ""


def marks_thoughts(text: str) -> bool:
    """Tell whether a text has a mark of thoughts, or of what isn't one beside them.

    >>> marks_thoughts("<|END_THINKING|>Female"), marks_thoughts("Female<|im_end|>")
    (True, False)
    """
    return any(mark.meaning == _THOUGHT for mark in _marks(text))


def plain_lines(text: str) -> list[str]:
    r"""Return the lines of a text that are not empty, without markup and quotation marks.

    >>> plain_lines('**"Female"**\n\n* a nurse, \\boxed{Ｂ}')
    ['Female', '- a nurse,', 'Answer: B']
    """
    text = unicodedata.normalize(
        "NFKC", html.unescape(text).translate(_CIRCLED)
    ).translate(_APOSTROPHES)
    for frame, words in _FRAMES:
        text = re.sub(frame, words, text)
    text = _EMPHASIS.sub(r"\2", _BULLET.sub("- ", text))
    text = _MARKUP.sub("", text)
    return [line for line in map(str.strip, text.splitlines()) if line]


def listed(name: str) -> Any:
    """Read a YAML beside this module."""
    return packaged_yaml("lm_eval_bias.scoring", name)


@cache
def _refusals(language: str, firm: bool) -> re.Pattern[str]:
    lists = listed("refusals.yaml")
    phrases = lists[language] if firm else lists[language] + lists["unable"][language]
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, phrases))})(?!\w)")


def refuses(text: str, language: str, firm: bool = False) -> bool:
    """Tell whether an answer begins with one of the refusals that ``refusals.yaml`` lists for a language, or in English.

    Args:
        text: What the model wrote.
        language: Two letters.
        firm: Whether only those count that don't also begin what says that something can't be known.

    Raises:
        KeyError: No list for this language.

    >>> refuses("As an AI, I have no opinion.", "en"), refuses("Female. As an aide she ...", "en")
    (True, False)
    """
    beginning = " ".join(plain_lines(text)).casefold()[:_BEGINNING]
    return any(_refusals(name, firm).search(beginning) for name in (language, "en"))


class WithoutThoughtsFilter(Filter):
    """Cuts what a model thought before its answer; a text that is all thought becomes ``ENDLESS``."""

    reads_again = True  # by rule alone, from the text and its document

    def apply(
        self, resps: Iterable[Sequence[str | None]], docs: Sequence[Any]
    ) -> list[list[str]]:
        """Cut the thoughts out of every document's texts; a server's null is an empty text.

        Args:
            resps: Generated texts per document.
            docs: The documents, which say nothing here.
        """
        return [[without_thoughts(text or "") for text in texts] for texts in resps]
