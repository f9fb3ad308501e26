"""What all free answers of models share: thoughts before them, refusals, markup.

A task of generated answers names :class:`WithoutThoughtsFilter` first among its filters, then its own reader, which
gives what an answer says or one of :data:`lm_eval_bias.core.answers.UNANSWERED`.
"""

from __future__ import annotations

import html
import itertools
import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from lm_eval.api.filter import Filter

from lm_eval_bias.core.answers import ENDLESS
from lm_eval_bias.core.files import packaged_yaml

# what stands around an answer that is to be found by a program becomes English words, which all readers know
_FRAMES = (
    (r"\\boxed\s*\{", "\nAnswer: "),
    (r"<answer>", "\nAnswer: "),
    (r"</answer>", "\n"),
)
_MARKUP = re.compile(
    r"\\[a-zA-Z]+|</?\w+(?:\s[^<>]*)?/?>|<\|[^<>|]*\|>|[*_`#>„“”\"«»‘{}$\\「」『』]|(?<!\w)['’]|['’](?!\w)"
)
_BULLET = re.compile(r"^\s*[*+]\s", re.MULTILINE)
_CIRCLED = {
    first + place: 65 + place for first in (0x1F150, 0x1F170) for place in range(26)
}
_APOSTROPHES = str.maketrans("’‘ʼ´`‐‑", "'''''--")
_THOUGHTS = "thoughts.yaml"
_BEGINNING = 160  # characters in which a refusal begins


def without_thoughts(text: str) -> str:
    """Return what a model answered behind its thoughts; ``ENDLESS`` where these don't end.

    >>> without_thoughts("<think>A nurse ...</think> Female"), without_thoughts("Female")
    ('Female', 'Female')
    >>> without_thoughts("<think>A nurse")
    '[unfinished thoughts]'
    """
    marks = listed(_THOUGHTS)
    ends = [text.rfind(end) + len(end) for end in marks.values() if end in text]
    if ends:
        return text[max(ends) :].strip()
    is_begun = text.lstrip().startswith(tuple(marks))
    return ENDLESS if is_begun else text


def opening_of_thoughts(prompt: Any) -> str:
    r"""Return the mark at a prompt's end that opens a model's thoughts, so that its text begins within them; or "".

    >>> opening_of_thoughts("<|assistant|><think>\n"), opening_of_thoughts("<think></think>Female")
    ('<think>', '')
    """
    text = prompt.rstrip() if isinstance(prompt, str) else ""
    for start in listed(_THOUGHTS):
        if not start.isalpha() and text.endswith(start):
            return str(start)
    return ""


def marks_thoughts(text: str) -> bool:
    """Tell whether a text has a mark of thoughts, or is part of one.

    >>> marks_thoughts("<|END_THINKING|>Female"), marks_thoughts("<|message|>"), marks_thoughts("<|im_end|>")
    (True, True, False)
    """
    marks = itertools.chain(*listed(_THOUGHTS).items())
    return any(mark in text or text in mark for mark in marks)


def plain_lines(text: str) -> list[str]:
    r"""Return the lines of a text that are not empty, without markup and quotation marks.

    >>> plain_lines('**"Female"**\n\n* a nurse, \\boxed{Ｂ}')
    ['Female', '- a nurse,', 'Answer: B']
    """
    text = unicodedata.normalize(
        "NFKC", html.unescape(text).translate(_CIRCLED)
    ).translate(_APOSTROPHES)
    for frame, words in _FRAMES:
        text = re.sub(frame, lambda _, words=words: words, text)  # type: ignore[misc]
    text = _MARKUP.sub("", _BULLET.sub("- ", text))
    return [line for line in map(str.strip, text.splitlines()) if line]


def listed(name: str) -> Any:
    """Read a YAML beside this module."""
    return packaged_yaml("lm_eval_bias.scoring", name)


@cache
def _refusals(language: str) -> re.Pattern[str]:
    phrases = listed("refusals.yaml")[language]
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, phrases))})(?!\w)")


def refuses(text: str, language: str) -> bool:
    """Tell whether an answer begins with one of the refusals that ``refusals.yaml`` lists for a language.

    Args:
        text: What the model wrote.
        language: Two letters.

    Raises:
        KeyError: No list for this language.

    >>> refuses("As an AI, I have no opinion.", "en"), refuses("Female. As an aide she ...", "en")
    (True, False)
    """
    beginning = (
        " ".join(plain_lines(text)).translate(_APOSTROPHES).casefold()[:_BEGINNING]
    )
    return bool(_refusals(language).search(beginning))


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
