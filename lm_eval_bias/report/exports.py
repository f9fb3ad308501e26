"""Reports for papers and programs: Markdown, LaTeX, CSV and JSON, in each of which a file's text stays text."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Sequence
from functools import lru_cache

import jinja2

from lm_eval_bias.report import content, printable_runs
from lm_eval_bias.report.page import Table
from lm_eval_bias.runs import run_file
from lm_eval_bias.runs.run_data import Problem, Run

_MARKDOWN = re.compile(r"([\\`*_\[\]#|~$])")
# Excel and its kin take cells that begin so for formulas
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


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
    return Markup(re.sub(r"^([-+=](?!\d)|\d+[.)](?=\s|$))", lambda found: f"{found[0][:-1]}\\{found[0][-1]}", text))


def latex(raw: object) -> Markup:
    r"""Text that LaTeX sets as it is, on one line; the rules are tabulate's.

    >>> print(latex("50% of $x_1$ \\input{x}"))
    50\% of \$x\_1\$ \textbackslash{}input\{x\}
    """
    if isinstance(raw, Markup):
        return raw
    from tabulate import LATEX_ESCAPE_RULES

    return Markup("".join(LATEX_ESCAPE_RULES.get(c, c) for c in printable_runs.one_line(raw)))


def _fenced(raw: object) -> Markup:
    """A Markdown code block whose fence is longer than any in the text."""
    text = printable_runs.text(raw)
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text) or [""]))
    return Markup(f"{fence}\n{text}\n{fence}")


def _comment(raw: object) -> Markup:
    """Lines that LaTeX passes over."""
    return Markup("\n".join(f"% {printable_runs.one_line(line)}" for line in printable_runs.text(raw).splitlines()))


def _markdown_table(table: Table) -> Markup:
    from tabulate import tabulate

    rows = [[markdown(cell.whole) for cell in row] for row in table.rows]
    align = ["right" if column.numeric else "left" for column in table.columns]
    headers = [markdown(column.label) for column in table.columns]
    return Markup(tabulate(rows, headers=headers, tablefmt="pipe", colalign=align, disable_numparse=True))


@lru_cache(maxsize=2)
def _environment(escape: Callable[[object], Markup]) -> jinja2.Environment:
    """Templates in which every expression is escaped; LaTeX's braces stay its own."""
    tex = escape is latex
    made = jinja2.Environment(  # noqa: S701 (finalize escapes for the output's language, which is not HTML)
        loader=jinja2.PackageLoader("lm_eval_bias.report", package_path="."),
        finalize=escape,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        variable_start_string="<<" if tex else "{{",
        variable_end_string=">>" if tex else "}}",
        block_start_string="<%" if tex else "{%",
        block_end_string="%>" if tex else "%}",
        comment_start_string="<#" if tex else "{#",
        comment_end_string="#>" if tex else "#}",
    )
    made.globals["table"] = _markdown_table
    made.globals["verbatim"] = _comment if tex else _fenced
    made.globals["main_tables"] = content.main_tables
    return made


def as_markdown(runs: Sequence[Run], problems: Sequence[Problem]) -> str:
    """The report in Markdown: sentences, warnings, tables of the main scores, provenance."""
    made = content.build(runs, problems)
    return _environment(markdown).get_template("report.md.j2").render(report=made)


def as_latex(runs: Sequence[Run], problems: Sequence[Problem]) -> str:
    """The main scores as LaTeX tables (booktabs), to be included in a paper."""
    made = content.build(runs, problems)
    return _environment(latex).get_template("report.tex.j2").render(report=made)


COLUMNS = (
    "run", "task", "benchmark", "language", "documents", "items", "score", "value", "stderr", "interval_low",
    "interval_high", "range_low", "range_high", "neutral", "unit", "direction", "note",
)  # fmt: skip


def guarded(raw: str) -> str:
    """A text cell that no spreadsheet takes for a formula.

    >>> guarded("=1+1"), guarded("gpt2")
    ("'=1+1", 'gpt2')
    """
    return f"'{raw}" if raw.lstrip(" ").startswith(_FORMULA) else raw


def _number(value: float | None) -> float | str:
    return "" if value is None or not math.isfinite(value) else value


def as_csv(runs: Sequence[Run], problems: Sequence[Problem]) -> str:
    """One row per run, task and score; empty where there is no number."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for run in printable_runs.presentable(runs):
        for task in run.tasks.values():
            for value in task.scores.values():
                low, high = value.interval or (None, None)
                figures = (value.value, value.stderr, low, high, value.low, value.high, value.neutral)
                writer.writerow(
                    [
                        *map(guarded, (run.name, task.task, task.benchmark, task.language)),
                        task.documents,
                        task.items or "",
                        guarded(value.name),
                        *map(_number, figures),
                        *map(guarded, (value.unit, value.direction, value.note)),
                    ]
                )
    return out.getvalue()


def as_json(runs: Sequence[Run], problems: Sequence[Problem]) -> str:
    """A run file of one run, a list of several; each meets the schema.

    Raises:
        BiasError: A run that the schema doesn't allow.
    """
    made = [run_file.as_data(run) for run in runs]
    for data in made:
        run_file.check(data)
    return json.dumps(made[0] if len(made) == 1 else made, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
