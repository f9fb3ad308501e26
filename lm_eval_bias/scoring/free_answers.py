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

from lm_eval.api.filter import Filter

from lm_eval_bias.core import Facts
from lm_eval_bias.core.answers import ENDLESS, LONGEST_READ, Text, finish_of
from lm_eval_bias.core.files import packaged_yaml

logger = logging.getLogger("lm_eval.bias")
_warn_once = cache(logger.warning)

# what stands around an answer that is to be found by a program becomes English words, which all readers know
_FRAMES = (
    (r"\\boxed\s*\{((?:[^{}\n]|\{[^{}\n]*\})*)\}", r" Answer:: \1. "),
    (r"\\boxed\s*\{", r" Answer:: "),
    (
        r"(?m)((?:^[^\S\n]*(?:[-*>] )?|: )(?:\*\*[^*\n]*[\w)]\*\*|`[^`\n]+`))(?=[^\S\n]+[^\W\da-z_])",
        r"\1.",
    ),
    (r"<answer>", r"\nAnswer:: "),
    (r"</answer>", r"\n"),
    (r"""[{,]\s*(["'])([\w -]+)\1\s*:\s*""", r"\n\2:: "),
)
_EMPHASIS = re.compile(r"(?<![*_])([*_]{1,3})(?=[^\s*_])([^*_\n]+)\1")
_MARKUP = re.compile(
    r"~~[^~\n]+~~|\\[a-zA-Z]+|</?\w+(?:\s[^<>]*)?/?>|<\|[^<>|]*\|>|[`#>„“”\"«»‘{}$\\「」『』]|(?<!\w)[*_'’]+|[*_'’]+(?!\w)"
)
_APOSTROPHES = str.maketrans("’‘ʼ´`‐‑", "'''''--")
_BEGINNING = 160  # characters in which a refusal begins


@cache
def _marks() -> dict[str, re.Pattern[str]]:
    """Compile the patterns of marks of thoughts, from ``thoughts.yaml``."""
    names = {kind: "|".join(parts) for kind, parts in listed("thoughts.yaml").items()}
    # a name of any length would take the square of it
    part = r"[\w:.-]{0,99}"
    thought = rf"{part}(?:{names['thought']}){part}"
    block = (
        rf"(?!{names['other']}|[\w:.-]*(?:{names['answer']}))"
        rf"(?P<name>[\w:.-]{{2,}})(?![\w:.-])[^<>\n]{{0,99}}>"
    )
    rules = {
        "any": rf"[<\[◁][|｜]?/?{thought}[|｜]?[>\]▷]",
        "opens": rf"(?:<[|｜]?(?!end|\w+_(?:suffix|end)\W){thought}[|｜]?>|◁think▷|\[THINK\])(?:thought|analysis)?\Z",
        # everything up to the last mark that ends thoughts, with its special tokens or without
        "ended": rf"(?s:.*)(?:<[|｜]?(?:/|end_?(?:of_?)?){thought}[|｜]?>|<[|｜]?{thought}(?:suffix|_end)[|｜]?>"
        r"|\[/THINK\]|◁/think▷|<channel\|>|<\|channel\|>final<\|message\|>|assistantfinal|Here is my response:)\s*",
        # blocks that stand before something else
        "blocks": rf"(?:\s*<(?P<bar>[|｜]?)(?!channel){block}(?s:.*?)"
        r"<(?:/(?P=name)[^<>]*|(?P=bar)(?<=[|｜])(?:end|/)[^<>]*)>\s*(?=\S))+",
        "begun": rf"\s*(?:<[|｜]?{block}(?!(?s:.*)</(?P=name)>)|◁think▷|\[THINK\]|analysis(?=[A-Z])"
        r"|Here is my thought process:)",
    }
    return {name: re.compile(rule, re.IGNORECASE) for name, rule in rules.items()}


def without_thoughts(text: str) -> str:
    """Return the answer after a model's thoughts; ``ENDLESS`` if these don't end.

    A block in tags or special tokens that stands before the answer is a thought, unless its name tells otherwise
    (``thoughts.yaml``). A name that isn't known is named in a warning, once.

    >>> without_thoughts("<think>A nurse ...</think> Female"), without_thoughts("Female")
    ('Female', 'Female')
    >>> without_thoughts("<think>A nurse")
    '[unfinished thoughts]'
    """
    marks = _marks()
    ended = marks["ended"].match(text)
    if ended:
        text = text[ended.end() :]
    blocks = marks["blocks"].match(text)
    if blocks:
        text = text[blocks.end() :]
        if not marks["any"].search(blocks[0]):
            _warn_once(
                "an answer begins with a block in marks named %s: taken for a model's thoughts, and not read",
                blocks["name"],
            )
    return ENDLESS if marks["begun"].match(text) else text


def opening_of_thoughts(prompt: object) -> str:
    r"""Return the mark at a prompt's end that opens a model's thoughts, so that its text begins within them; or "".

    >>> opening_of_thoughts("<|assistant|><think>\n"), opening_of_thoughts("<think></think>Female")
    ('<think>', '')
    """
    text = prompt.rstrip() if isinstance(prompt, str) else ""
    opened = _marks()["opens"].search(text[-99:])
    return opened[0] if opened else ""


def marks_thoughts(text: str) -> bool:
    """Return whether a text has a mark of thoughts.

    >>> marks_thoughts("<|END_THINKING|>Female"), marks_thoughts("Female<|im_end|>")
    (True, False)
    """
    return _marks()["any"].search(text) is not None


def plain_lines(text: str) -> list[str]:
    r"""Return the lines of a text that are not empty, without markup and quotation marks.

    Of one longer than :data:`~lm_eval_bias.core.answers.LONGEST_READ` these are the first and the last ones.

    >>> plain_lines('**"Female"**\n\n- a nurse, \\boxed{Ｂ}')
    ['Female', '- a nurse,  Answer:: B.']
    """
    if len(text) > LONGEST_READ:
        half = LONGEST_READ // 2
        text = f"{text[:half]}\n{text[-half:]}"
    text = unicodedata.normalize("NFKC", html.unescape(text)).translate(_APOSTROPHES)
    for frame, words in _FRAMES:
        text = re.sub(frame, words, text)
    text = _MARKUP.sub("", _EMPHASIS.sub(r"\2", text))
    return [line for line in map(str.strip, text.splitlines()) if line]


def listed(name: str) -> Facts:
    """Read a YAML beside this module."""
    return packaged_yaml("lm_eval_bias.scoring", name)


def refuses(text: str, language: str, *kinds: str) -> bool:
    """Return whether an answer begins with one of the refusals in ``refusals.yaml``, of a language or English.

    Args:
        text: What the model wrote.
        language: Two letters.
        kinds: The lists that count, all of them where none is named.

    Raises:
        KeyError: No list for this language.

    >>> refuses("As an AI, I have no opinion.", "en"), refuses("Female. As an aide she ...", "en")
    (True, False)
    """
    table = listed("refusals.yaml")
    phrases = []
    for kind in kinds or table:
        phrases += table[kind][language] + table[kind]["en"]
    any_phrase = "|".join(map(re.escape, phrases))
    beginning = " ".join(plain_lines(text)).casefold()[:_BEGINNING]
    return bool(re.search(rf"(?<!\w)(?:{any_phrase})(?![^\W가-힣])", beginning))


class WithoutThoughtsFilter(Filter):
    """A filter that removes a model's thoughts; a text of thoughts alone becomes ``ENDLESS``."""

    reads_again = True  # by rule alone, from the text and its document

    def apply(
        self, resps: Iterable[Sequence[str | None]], docs: Sequence[object]
    ) -> list[list[Text]]:
        """Remove the thoughts of each document's texts, which keep their finish reasons; null becomes an empty text.

        Args:
            resps: Generated texts per document.
            docs: The documents, which say nothing here.
        """
        return [
            [Text(without_thoughts(text or ""), finish_of(text)) for text in texts]
            for texts in resps
        ]
