"""Foreign text made safe for where it goes: model names and notes are text everywhere, whatever they contain."""

from __future__ import annotations

import re

_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "[": "{[}",  # behind the end of a row it would be taken for a length
    "]": "{]}",
    **{character: f"\\{character}" for character in "$&#%_"},
}


def clean(text: str) -> str:
    r"""One line without characters that can't be seen, such as terminal codes and changes of the writing direction.

    >>> clean("a\x1b[31m\n b\u202e")
    'a [31m b'
    """
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def markdown(text: str) -> str:
    r"""Text that Markdown (GitHub's too) shows as it is: no markup, no table cells, no links.

    >>> print(markdown("a|b *c* <i> [x](y) https://z _d_ e_f"))
    a\|b \*c\* \<i\> \[x\](y) https\://z \_d\_ e_f
    """
    escaped = re.sub(r"([\\`*{}\[\]<>|#~&$@]|(?<![^\W_])_|_(?![^\W_]))", r"\\\1", clean(text))
    escaped = escaped.replace("://", "\\://").replace("www.", "www\\.")
    return re.sub(r"^(\d*)([-+.)])", r"\1\\\2", escaped)  # no list within a list


def latex(text: str) -> str:
    r"""Text that LaTeX prints as it is.

    >>> print(latex("50% of [a_b] \\input{x}"))
    50\% of {[}a\_b{]} \textbackslash{}input\{x\}
    """
    return "".join(_LATEX.get(character, character) for character in clean(text))


def spreadsheet(text: str) -> str:
    """Text that a spreadsheet doesn't take for a formula.

    >>> spreadsheet("=1+1"), spreadsheet("Llama")
    ("'=1+1", 'Llama')
    """
    cleaned = clean(text)
    return f"'{cleaned}" if cleaned.startswith(("=", "+", "-", "@")) else cleaned
