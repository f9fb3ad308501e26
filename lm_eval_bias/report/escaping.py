"""Text that stays text: in Markdown, in LaTeX and in the cells of spreadsheets."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

from lm_eval_bias.core.safe_stream import visible, visible_line

_MARKDOWN = re.compile(r"([\\`*_\[\]#|~$])")
_MINUS = re.compile(r"(?<![\w.])-(?=\.?\d)")
# signs of ours that LaTeX's text fonts lack
_LATEX_SIGNS = {
    "∞": "$\\infty$", "≤": "$\\leq$", "≥": "$\\geq$", "→": "$\\rightarrow$", "−": "$-$", "×": "$\\times$",
    "±": "$\\pm$", "†": "$\\dagger$", "‡": "$\\ddagger$", "§": "\\S{}", "¶": "\\P{}", "α": "$\\alpha$",
    "χ": "$\\chi$", "²": "$^2$", "…": "\\ldots{}", "–": "--", "\u00a0": "~",
}  # fmt: skip


def page(raw: object) -> object:
    """Prepare a value for a page of HTML before it is escaped: clean texts, leave all else as it is."""
    return visible(raw) if type(raw) is str else raw


class Markup(str):
    """Text in the output's own language, which must not be escaped again."""


def markdown(raw: object) -> Markup:
    r"""Escape text for Markdown, on one line: no markup, no HTML, no automatic links.

    >>> print(markdown("<b> *x* [a](javascript:b) www.a.org |"))
    &lt;b&gt; \*x\* \[a\](javascript:b) www&#46;a.org \|
    """
    if isinstance(raw, Markup):
        return raw
    shown = _MARKDOWN.sub(r"\\\1", html.escape(visible_line(raw), quote=False))
    shown = (
        re.sub(r"(?i)(www)\.", r"\1&#46;", shown)
        .replace("://", "&#58;//")
        .replace("@", "&#64;")
    )
    # only at a line's beginning do these make lists and rules; a negative number is neither
    return Markup(
        re.sub(
            r"^([-+=](?!\d)|\d+[.)](?=\s|$))",
            lambda mark: f"{mark[0][:-1]}\\{mark[0][-1]}",
            shown,
        )
    )


def latex(raw: object) -> Markup:
    r"""Escape text for LaTeX, on one line, negative numbers with a minus; the rules are tabulate's.

    >>> print(latex("50% of $x_1$ \\input{x}"))
    50\% of \$x\_1\$ \textbackslash{}input\{x\}
    >>> latex("-0.5 of gpt-2")
    '$-$0.5 of gpt-2'
    """
    if isinstance(raw, Markup):
        return raw
    from tabulate import LATEX_ESCAPE_RULES

    rules = LATEX_ESCAPE_RULES | _LATEX_SIGNS
    return Markup(
        _MINUS.sub("$-$", "".join(rules.get(c, c) for c in visible_line(raw)))
    )


def cited(keys: Iterable[str]) -> Markup:
    """Cite in Markdown, as Pandoc reads it.

    >>> print(cited(["a", "b"]))
    [@a; @b]
    """
    return Markup(f"[{'; '.join(f'@{key}' for key in keys)}]")


def breakable(written: str) -> Markup:
    r"""Allow LaTeX to break lines within names.

    >>> print(breakable(r"gg\_bbq/names"))
    gg\_\allowbreak{}bbq/\allowbreak{}names
    """
    return Markup(re.sub(r"(\\_|/|-(?!\$))", r"\1\\allowbreak{}", written))


def markdown_code(raw: object) -> Markup:
    """Make a Markdown code block whose fence is longer than any in the text."""
    code = visible(raw)
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", code) or [""]))
    return Markup(f"{fence}\n{code}\n{fence}")


def latex_comment(raw: object) -> Markup:
    """Turn text into LaTeX comments."""
    return Markup(
        "\n".join(f"% {visible_line(line)}" for line in visible(raw).splitlines())
    )
