"""Text that stays text: in Markdown, in LaTeX and in the cells of spreadsheets."""

from __future__ import annotations

import re

from lm_eval_bias.runs import printable_runs

_MARKDOWN = re.compile(r"([\\`*_\[\]#|~$])")
# Excel and its kin take cells that begin so for formulas; guarded texts are guarded again, so that it can be undone
_FORMULA = re.compile(r"'* *[=+\-@\t\r\n]")


class Markup(str):
    """Text in the output's own language, which must not be escaped again."""


def markdown(raw: object) -> Markup:
    r"""Text that Markdown shows as it is, on one line: no markup, no HTML, no links that make themselves.

    >>> print(markdown("<b> *x* [a](javascript:b) www.a.org |"))
    &lt;b&gt; \*x\* \[a\](javascript:b) www&#46;a.org \|
    """
    if isinstance(raw, Markup):
        return raw
    text = printable_runs.one_line(raw).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = _MARKDOWN.sub(r"\\\1", text)
    text = re.sub(r"(?i)(www)\.", r"\1&#46;", text).replace("://", "&#58;//").replace("@", "&#64;")
    # only at a line's beginning do these make lists and rules; a negative number is neither
    return Markup(re.sub(r"^([-+=](?!\d)|\d+[.)](?=\s|$))", lambda mark: f"{mark[0][:-1]}\\{mark[0][-1]}", text))


def backslashed(raw: str) -> str:
    r"""Text whose Markdown marks are shown as they are; character entities and bare addresses keep their meaning.

    >>> print(backslashed("<b> *x* [0.1, 0.2]"))
    \<b\> \*x\* \[0.1, 0.2\]
    """
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", raw.replace("\n", " "))


def latex(raw: object) -> Markup:
    r"""Text that LaTeX sets as it is, on one line; the rules are tabulate's.

    >>> print(latex("50% of $x_1$ \\input{x}"))
    50\% of \$x\_1\$ \textbackslash{}input\{x\}
    """
    if isinstance(raw, Markup):
        return raw
    from tabulate import LATEX_ESCAPE_RULES

    return Markup("".join(LATEX_ESCAPE_RULES.get(c, c) for c in printable_runs.one_line(raw)))


def markdown_code(raw: object) -> Markup:
    """A Markdown code block whose fence is longer than any in the text."""
    text = printable_runs.text(raw)
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text) or [""]))
    return Markup(f"{fence}\n{text}\n{fence}")


def latex_comment(raw: object) -> Markup:
    """Lines that LaTeX passes over."""
    return Markup("\n".join(f"% {printable_runs.one_line(line)}" for line in printable_runs.text(raw).splitlines()))


def guarded(raw: str) -> str:
    """A text cell that no spreadsheet takes for a formula; :func:`unguarded` gives the text back.

    >>> guarded("=1+1"), guarded("gpt2"), guarded("'=x"), guarded("a=b")
    ("'=1+1", 'gpt2', "''=x", 'a=b')
    """
    return f"'{raw}" if _FORMULA.match(raw) else raw


def unguarded(cell: str) -> str:
    """The text of a cell that :func:`guarded` made, or that a person typed.

    >>> all(unguarded(guarded(text)) == text for text in ("=1", "'=1", "''+", "-", "'quoted'", "x", ""))
    True
    """
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell
