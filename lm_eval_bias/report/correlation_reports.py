"""Which scores go together over models, in each format of ``lm-eval-bias agree``: words first, then the table."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from lm_eval_bias.analysis.differences import LEVEL
from lm_eval_bias.analysis.score_correlations import RELATIONS, Correlation, Variable
from lm_eval_bias.custom_metrics.rank_correlations import EXACT, LEAST, RankCorrelation, least_significant
from lm_eval_bias.custom_metrics.score import finite, joined
from lm_eval_bias.report import tables, templates
from lm_eval_bias.report.comparison_reports import CORRECTIONS
from lm_eval_bias.report.numbers import few, number, p_value
from lm_eval_bias.report.tables import Cell, Column, Table
from lm_eval_bias.runs import printable_runs
from lm_eval_bias.runs.run_data import Problem

TITLE = "Which scores go together"


def _label(variable: Variable, found: Sequence[Correlation]) -> str:
    """A score's name, with its paper where others are of runs."""
    return replace(variable, paper="").label if _paper(found) else variable.label


def _tests(found: Sequence[Correlation]) -> int:
    return sum(not math.isnan(one.adjusted) for one in found)


def _power(found: Sequence[Correlation], correction: str) -> list[str]:
    """How little a handful of models can tell."""
    lines = []
    tests = _tests(found)
    for n in sorted({len(one.models) for one in found}):
        if n < LEAST:
            lines.append(f"With {n} model{'s' * (n != 1)} there is no rank correlation: it needs at least {LEAST}.")
            continue
        least, orders = least_significant(n), math.factorial(n)
        if math.isnan(least):
            line = (
                f"With {n} models no correlation can be significant, not even a perfect one: 2 of the {orders} "
                "possible orders are as extreme."
            )
        elif least == 1:
            line = f"With {n} models only a perfect correlation can be significant (Spearman, two-sided, 5%, one test)."
        else:
            line = (
                f"With {n} models a correlation must be at least {least:.3f} in size to be significant (Spearman, "
                "two-sided, 5%, one test)."
            )
        lines.append(line)
        if not math.isnan(least) and correction == "holm" and n <= EXACT and 2 / orders > LEVEL / max(tests, 1):
            lines.append(
                f"With {tests} tests and {n} models, not even a perfect correlation can be significant after the "
                "correction: name fewer scores (--scores, --task), or use more models."
            )
    return lines


def _by_relation(found: Sequence[Correlation]) -> list[str]:
    values: dict[str, list[float]] = defaultdict(list)
    for one in found:
        if not math.isnan(one.spearman.value):
            values[one.relation].append(one.spearman.value)
    return [
        f"{RELATIONS[relation][0].upper()}{RELATIONS[relation][1:]}: {len(own)} correlation{'s' * (len(own) > 1)}, "
        f"median {number(statistics.median(own))}, from {number(min(own))} to {number(max(own))}."
        for relation, own in values.items()
    ]


def _noise(found: Sequence[Correlation]) -> str:
    """How much of what differs between models is the error of their scores."""
    variables = {_label(own, found): own for one in found for own in (one.first, one.second)}
    noise = {label: own.noise for label, own in variables.items() if not math.isnan(own.noise)}
    what = "Measurement error pulls correlations towards 0, and nothing here corrects for it"
    if not noise:
        return f"{what}; its size is unknown, because the scores have no standard errors."
    least, most = min(noise, key=lambda label: noise[label]), max(noise, key=lambda label: noise[label])
    share = f"{100 * min(noise[most], 1):.0f}% of the variance between models ({most})"
    if most != least:
        share = f"from {100 * min(noise[least], 1):.0f}% ({least}) to {share}"
    unknown = f"; for {len(variables) - len(noise)} scores this is unknown" if len(noise) < len(variables) else ""
    return f"{what}: squared standard errors are {share}{unknown}."


def words(found: Sequence[Correlation], correction: str, remarks: Sequence[str] = ()) -> list[str]:
    """What the correlations say, and what they can't."""
    models = list(dict.fromkeys(model for one in found for model in one.models))
    lines = [f"{len(models)} model{'s' * (len(models) != 1)}: {few(models, 12)}."]
    if paper := _paper(found):
        lines.append(f"The scores are those of {paper}.")
    if tests := _tests(found):
        told = [f"{_label(one.first, found)} and {_label(one.second, found)}" for one in found if one.adjusted <= LEVEL]
        corrected = "" if correction == "none" else f", corrected for {tests} tests ({CORRECTIONS[correction]})"
        named = f": {few(told)}" if told else ""
        verb = "is" if len(told) == 1 else "are"
        lines.append(f"{len(told)} of {tests} correlations {verb} significant at {100 * LEVEL:.0f}%{corrected}{named}.")
    lines += _power(found, correction)
    if tests:
        lines += [
            *_by_relation(found),
            _noise(found),
            "Models that share training data, a family or a base model are not independent evidence: where some do, "
            "intervals are too narrow and p-values too small. A correlation across models says nothing about any "
            "single one of them.",
        ]
        if any(one.relation == "tasks" for one in found):
            lines.append("Tasks that share items share their sampling error, which inflates their correlation.")
    return [*lines, *(f"{printable_runs.one_line(remark)}." for remark in remarks)]


def _paper(found: Sequence[Correlation]) -> str:
    """The one paper that all scores are of; empty where there are several, or runs."""
    papers = {own.paper for one in found for own in (one.first, one.second)}
    return papers.pop() if len(papers) == 1 else ""


def _cell(found: RankCorrelation) -> Cell:
    ends = found.interval
    return Cell(number(found.value), found.value, "" if ends is None else f"[{number(ends[0])}, {number(ends[1])}]")


def table(found: Sequence[Correlation], correction: str) -> Table:
    """A row per pair of scores."""
    columns = [
        Column("First"), Column("Second"), Column("Related as"), Column("Models", True), Column("Spearman", True),
        Column("p", True), Column(f"p ({CORRECTIONS[correction]})", True), Column("Kendall", True), Column("Note"),
    ]  # fmt: skip
    rows = [
        [
            Cell(_label(one.first, found)),
            Cell(_label(one.second, found)),
            Cell(RELATIONS[one.relation]),
            Cell(str(len(one.models)), len(one.models)),
            _cell(one.spearman),
            Cell(p_value(one.spearman.p), one.spearman.p),
            Cell(p_value(one.adjusted), one.adjusted),
            _cell(one.kendall),
            Cell(one.spearman.reason),
        ]
        for one in found
    ]
    return Table("Rank correlations over models, with 95% intervals in brackets", columns, rows)


def _side(variable: Variable) -> Mapping[str, object]:
    return {
        "task": variable.task,
        "score": variable.score,
        "benchmark": variable.family,
        "language": variable.language,
        "source": variable.source,
        "values": variable.values,
        "error_share": finite(variable.noise),
    }


def _numbers(found: RankCorrelation) -> Mapping[str, object]:
    return {
        "value": finite(found.value),
        "interval": None if found.interval is None else list(found.interval),
        "p": finite(found.p),
        "test": found.test,
        "reason": found.reason,
    }


def _data(one: Correlation, correction: str) -> Mapping[str, object]:
    """Plain data; ``nan`` is ``None`` with a reason."""
    return {
        "first": _side(one.first),
        "second": _side(one.second),
        "relation": one.relation,
        "models": list(one.models),
        "n": len(one.models),
        "least_told_from_0": finite(least_significant(len(one.models))),
        "spearman": _numbers(one.spearman),
        "kendall": _numbers(one.kendall),
        "p_adjusted": finite(one.adjusted),
        "correction": correction,
    }


_COLUMNS = (
    "first_task", "first_score", "first_source", "second_task", "second_score", "second_source", "relation", "n",
    "spearman", "spearman_low", "spearman_high", "spearman_p", "p_adjusted", "correction", "least_told_from_0",
    "kendall", "kendall_low", "kendall_high", "kendall_p", "test", "reason", "models",
)  # fmt: skip


def _line(one: Correlation, correction: str) -> list[object]:
    spearman, kendall = one.spearman, one.kendall
    return [
        one.first.task, one.first.score, one.first.source, one.second.task, one.second.score, one.second.source,
        one.relation, len(one.models), spearman.value, *(spearman.interval or ("", "")), spearman.p, one.adjusted,
        correction, least_significant(len(one.models)), kendall.value, *(kendall.interval or ("", "")), kendall.p,
        spearman.test, joined(spearman.reason, kendall.reason if kendall.reason != spearman.reason else ""),
        list(one.models),
    ]  # fmt: skip


def render(
    form: str, found: Sequence[Correlation], correction: str, remarks: Sequence[str], problems: Sequence[Problem]
) -> str:
    """The correlations, at least one, as ``html``, ``md``, ``latex``, ``csv`` or ``json``.

    Args:
        form: The format.
        found: The correlations.
        correction: What their p-values are corrected by.
        remarks: What has to be known of the runs.
        problems: Files that were passed over.
    """
    if form == "csv":
        return tables.csv_text(_COLUMNS, (_line(one, correction) for one in found))
    sentences = words(found, correction, remarks)
    if form == "json":
        data = {
            "words": sentences,
            "problems": [{"path": str(problem.path), "reason": problem.reason} for problem in problems],
            "correlations": [_data(one, correction) for one in found],
        }
        return tables.json_text(data, indent=1)
    return templates.render(
        f"correlations.{templates.ENDINGS[form]}.j2",
        title=TITLE,
        words=sentences,
        problems=[printable_runs.one_line(problem) for problem in problems],
        correlations=table(found, correction),
        figure=lambda text: text.replace("<", "&lt;"),  # intervals keep their brackets
    )
