"""Comparisons, as ``lm-eval-bias compare`` writes them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lm_eval_bias.comparing import power
from lm_eval_bias.comparing.findings import LEVEL, NOT_SHOWN, Finding, NotCompared
from lm_eval_bias.core import registry
from lm_eval_bias.core.numbers import (
    bracketed_ends,
    count,
    difference,
    grouped,
    join_some,
    p_value,
    target_text,
)
from lm_eval_bias.core.page_parts import Cell, Row, Table, numeric
from lm_eval_bias.core.run_data import Run
from lm_eval_bias.core.wording import number_cell, score_cell
from lm_eval_bias.report import board_reports, sentences
from lm_eval_bias.report.outputs import Output
from lm_eval_bias.runs import diagnostics

BRACKETS = "95% intervals in brackets, each for itself: only p is corrected"
MDE = (
    "MDE: the minimum detectable effect, the smallest true difference that these items detect with 80% power, by the "
    "first step of that correction."
)
# what a comparison doesn't say, beside what it couldn't find
NOT_TO_CLAIM = (
    "That the models are alike where no difference is significant: a true difference below the MDE is likely missed.",
    "That one model is more biased than the other as such: a finding is about its task's items, language and groups.",
    "That a model nearer to neutral is fair: one that understands less is often nearer. Look at the abilities.",
)
FAMILIES = {
    True: "primary scores (first family, chosen before looking)",
    False: "other scores (second family)",
}
NOT_COMPARED = "not compared"
_OF_PAPER = (
    6  # columns of a paper's table: the score, both values, their difference and p
)
_OF_DIFFERENCE = ("stderr", "dof", "interval", "p", "test", "clusters", "reason")
_OF_FINDING = ("base_value", "other_value", "minimum_detectable", "required_clusters", "paired", "items", "outcome",
               "note")  # fmt: skip
_OF_SCORE = ("summary", "range", "neutral", "direction", "unit")


def _record(finding: Finding) -> dict[str, object]:
    difference = finding.difference
    of_score = finding.score.describe()
    record = {
        "family": "primary" if finding.primary else "other",
        "task": finding.subject,
        "base": finding.base,
        "other": finding.other,
        "score": finding.score.name,
        "difference": difference.value,
        "p_adjusted": finding.adjusted,
        "minimum_detectable_alone": power.smallest_difference(difference),
        "minimum_detectable_level": finding.level,
        "finding": finding.verdict,
    }
    record |= {name: getattr(difference, name) for name in _OF_DIFFERENCE}
    record |= {name: getattr(finding, name) for name in _OF_FINDING}
    return record | {name: of_score[name] for name in _OF_SCORE}


def _cells(finding: Finding) -> list[Cell | str]:
    moved = finding.difference
    unit = finding.score.unit
    ends = bracketed_ends(moved.interval, unit, "+")
    least = finding.minimum_detectable
    return [
        Cell(finding.subject, note="" if finding.paired else "independent"),
        score_cell(finding.score, target_text(finding.score)),
        number_cell(finding.base_value, unit),
        number_cell(finding.other_value, unit),
        Cell(difference(moved.value, unit), moved.value, ends),
        Cell(p_value(finding.adjusted), finding.adjusted),
        _says(finding),
        Cell(difference(least, unit, ""), least),
        Cell(count(finding.items), finding.items),
    ]


def _table(findings: Sequence[Finding]) -> Table:
    """Make one row per finding, all of the same two sides."""
    names = (findings[0].base, findings[0].other, "Difference", "p (Holm)")
    columns = ["Task", "Score", *numeric(*names), "Finding"]
    columns += numeric("MDE", "n")
    caption = f"Differences with {BRACKETS}"
    return Table(caption, columns, map(_cells, findings))


def legend(findings: Sequence[Finding]) -> str:
    """Describe how many differences of each family are significant, and how they were tested."""
    tested = [one for one in findings if not math.isnan(one.adjusted)]
    if not tested:
        return "None of these differences could be tested: the findings say why."
    named = any(finding.primary for finding in findings)
    families = grouped((one.primary, one.adjusted <= LEVEL) for one in tested)
    counts = [
        f"{sum(families[primary])} of {len(families[primary])} {of if named else 'differences'}"
        for primary, of in FAMILIES.items()
        if primary in families
    ]
    methods = sorted({finding.difference.test for finding in findings})
    return (
        f"Significant at {LEVEL:.0%} by p (Holm): {', '.join(counts)}. "
        f"p: {'; '.join(methods)}."
    )


def _says(finding: Finding) -> str:
    return "no verdict" if finding.no_claim_reason else finding.verdict


def _sentences(findings: Sequence[Finding]) -> list[str]:
    """Describe the differences by verdict, the clearest first, those without a test last."""
    listed = sorted(findings, key=lambda one: (math.isnan(one.adjusted), one.adjusted))
    places = grouped(
        (_says(one), f"{one.score.title} ({one.subject})") for one in listed
    )
    return [f"{verdict}: {join_some(where, 4)}" for verdict, where in places.items()]


def _notes(findings: Sequence[Finding]) -> list[str]:
    """Collect the notes on two sides, each with its tasks."""
    notes = grouped((one.note, one.subject) for one in findings if one.note)
    return [f"{join_some(tasks, 4)}: {note}" for note, tasks in notes.items()]


@dataclass(frozen=True)
class ComparisonReport(Output):
    """A comparison report: warnings, primary scores, all others; in LaTeX one table per pair of sides.

    Attributes:
        findings: At least one.
        left_out: What was not compared; in ``csv`` and ``json`` a row each, without numbers.
        runs: The runs that were compared.
    """

    findings: Sequence[Finding]
    left_out: Sequence[NotCompared] = ()
    runs: Sequence[Run] = ()
    template = "comparison"

    def records(self) -> Iterator[dict[str, object]]:
        """Yield findings, then what was not compared, without numbers."""
        for finding in self.findings:
            record = _record(finding)
            yield record | {"correction": "holm"}
        nothing = dict.fromkeys(record)
        for pair in self.left_out:
            yield nothing | {
                "family": NOT_COMPARED,
                "task": pair.subject,
                "base": pair.base,
                "other": pair.other,
                "outcome": NOT_SHOWN,
                "finding": NOT_COMPARED,
                "reason": pair.reason,
            }

    def _pair(self, findings: Sequence[Finding]) -> Mapping[str, object]:
        """Return what is said of two sides: the primary scores, all others, and notes."""
        primary = [finding for finding in findings if finding.primary]
        others = [finding for finding in findings if not finding.primary]
        first = _table(primary or others)
        title = f"{findings[0].other} against {findings[0].base}"
        meanings = sentences.meanings(one.score for one in primary or others)
        caption = f"{title} (base); {meanings}; {BRACKETS}"
        names = [finding.score.name for finding in primary or others]
        parts = zip(names, first.rows, strict=True)
        rows: list[Row] = [
            [row[0].text, name, *row[2:_OF_PAPER]] for name, row in parts
        ]
        return {
            "title": title,
            "sentences": _sentences(primary or others),
            "first": first,
            "paper": Table(caption, first.columns[:_OF_PAPER], rows),
            "rest": _table(others) if primary and others else None,
            "notes": _notes(findings),
        }

    def context(self) -> Mapping[str, object]:
        """Override."""
        listed = sorted(
            self.findings, key=lambda one: registry.place(one.definition.family)
        )
        sides = grouped(((one.base, one.other), one) for one in listed)
        return {
            "pairs": list(map(self._pair, sides.values())),
            "diagnostics": diagnostics.of_runs(self.runs),
            "legend": legend(listed),
            "mde": MDE,
            "not_to_claim": NOT_TO_CLAIM,
            "left_out": list(map(str, self.left_out)),
            "origins": board_reports.origins(self.runs),
        }
