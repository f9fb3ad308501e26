"""Comparisons and power analyses, as ``lm-eval-bias compare`` and ``power`` write them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from lm_eval_bias.comparing import power
from lm_eval_bias.comparing.findings import LEVEL, NOT_SHOWN, Finding, NotCompared
from lm_eval_bias.core import catalog, registry
from lm_eval_bias.core.files import FORMATS
from lm_eval_bias.core.numbers import (
    NONE,
    bracketed_ends,
    count,
    difference,
    grouped,
    join_some,
    p_value,
    target_text,
    two_digits,
)
from lm_eval_bias.core.page_parts import Cell, Row, Table, numeric
from lm_eval_bias.core.run_data import Run
from lm_eval_bias.core.wording import number_cell, score_cell
from lm_eval_bias.custom_metrics.intervals import error_factors
from lm_eval_bias.custom_metrics.score import joined
from lm_eval_bias.report import board_reports
from lm_eval_bias.report.listings import diagnostic_label
from lm_eval_bias.report.outputs import Output

BRACKETS = "95% intervals in brackets, each for itself: only p is corrected"
MDE = (
    "MDE: the minimum detectable effect, the smallest true difference that these items detect with 80% power, by the "
    "first step of that correction."
)
REQUIRED = (
    "Required: the number of independent groups of items, such as templates, that detects a true difference as large "
    "as the measured one, if that isn't significant. A smaller true difference requires more. More items of the same "
    "templates add little."
)
# what a comparison doesn't say, beside what it couldn't find
NOT_TO_CLAIM = (
    "That the models are alike where no difference is significant: a true difference below the MDE is likely missed.",
    "That one model is more biased than the other as such: a finding is about its task's items, language and groups.",
    "That a model nearer to neutral is fair: one that understands less is often nearer. Look at the abilities.",
)
POWER = (
    "The minimum detectable difference from a similar model: found with 80% probability if the two models' errors are "
    "independent. On the same items the errors are correlated, so the paired test can detect smaller differences. In "
    "brackets the 95% interval of this figure"
)
FAMILIES = {
    True: "primary scores (first family, chosen before looking)",
    False: "other scores (second family)",
}
NOT_COMPARED = "not compared"
_OF_DIFFERENCE = ("stderr", "dof", "interval", "p", "test", "clusters", "reason")
_OF_FINDING = ("base_value", "other_value", "minimum_detectable", "required_clusters", "paired", "items", "outcome",
               "note")  # fmt: skip
_OF_SCORE = ("summary", "range", "neutral", "direction", "unit")
CORRECTIONS = {"holm": "Holm", "bh": "Benjamini-Hochberg", "none": "not corrected"}


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


def _needed(finding: Finding) -> Cell:
    """Format the required number of clusters to two digits, beside the actual number."""
    required = finding.required_clusters
    if math.isnan(required):
        return Cell(NONE, required)
    return Cell(two_digits(required), required, _available(finding))


def _available(finding: Finding) -> str:
    """Describe the numbers of clusters of a score and of its task."""
    kind = finding.definition.clusters
    text = f"{count(finding.difference.clusters)} {kind} here"
    entry = catalog.entries().get(finding.subject)
    most = entry.metadata.get("n_clusters") if entry else None
    return f"{text}, {count(most)} in all" if most else text


def _cells(finding: Finding, several: bool) -> list[Cell | str]:
    moved = finding.difference
    unit = finding.score.unit
    ends = bracketed_ends(moved.interval, unit, "+")
    sides = f"{finding.other}, against {finding.base}" if several else ""
    return [
        Cell(
            finding.subject, note=joined(sides, "" if finding.paired else "independent")
        ),
        score_cell(finding.score, target_text(finding.score)),
        number_cell(finding.base_value, unit),
        number_cell(finding.other_value, unit),
        Cell(difference(moved.value, unit), moved.value, ends),
        Cell(p_value(finding.adjusted), finding.adjusted),
        "no verdict" if finding.no_claim_reason else finding.verdict,
        Cell(
            difference(finding.minimum_detectable, unit, ""), finding.minimum_detectable
        ),
        Cell(count(finding.items), finding.items),
        _needed(finding),
    ]


def _table(findings: Sequence[Finding], correction: str) -> Table:
    """Make one row per finding."""
    sides = {(finding.base, finding.other) for finding in findings}
    names = ("Base", "Other") if len(sides) > 1 else next(iter(sides))
    corrected = f"p ({CORRECTIONS[correction]})"
    columns = ["Task", "Score", *numeric(*names, "Difference", corrected), "Finding"]
    columns += numeric("MDE", "n", "Required")
    rows = [_cells(finding, len(sides) > 1) for finding in findings]
    return Table(f"Differences with {BRACKETS}", columns, rows)


_IN_PAPERS = 6  # columns: up to p


def _paper_tables(findings: Sequence[Finding], correction: str) -> Iterator[Table]:
    """Yield a table for a paper for each two sides: the first columns, a score by its title, and the legend below."""
    pairs = grouped(((finding.base, finding.other), finding) for finding in findings)
    for (base, other), pair in pairs.items():
        made = _table(pair, correction)
        rows: list[Row] = []
        for task, score, *rest in made.rows:
            rows.append([task.text, score.text, *rest[: _IN_PAPERS - 2]])
        notes = [legend(pair, correction), *_notes(pair)]
        caption = f"{other} against {base}: differences with {BRACKETS}"
        yield Table(caption, made.columns[:_IN_PAPERS], rows, notes)


def legend(findings: Sequence[Finding], correction: str) -> str:
    """Describe how many differences of each family are significant, and how they were tested."""
    counts = []
    named = any(finding.primary for finding in findings)
    for primary, of in FAMILIES.items():
        adjusted = [f.adjusted for f in findings if f.primary == primary]
        tests = [p for p in adjusted if not math.isnan(p)]
        if tests:
            significant = sum(p <= LEVEL for p in tests)
            counts.append(
                f"{significant} of {len(tests)} {of if named else 'differences'}"
            )
    if not counts:
        return "None of these differences could be tested: the findings say why."
    methods = sorted({finding.difference.test for finding in findings})
    text = f"Significant at {100 * LEVEL:.0f}% by p ({CORRECTIONS[correction]}): {', '.join(counts)}"
    return f"{text}. p: {'; '.join(methods)}. {MDE}"


def _planned(finding: Finding, target: float) -> list[Cell | str]:
    """Make the row of a score in a power analysis."""
    score = finding.score
    unit = score.unit
    first: list[Cell | str] = [finding.subject, score.name, count(finding.items)]
    if math.isnan(finding.difference.p):
        why = finding.no_claim_reason or finding.difference.reason
        return [*first, NONE, NONE, f"no power: {why}"]
    alone = power.smallest_difference(finding.difference)
    # of an error that is known with so many degrees of freedom; half of them are the other model's
    ends = tuple(alone * factor for factor in error_factors(finding.difference.dof / 2))
    found = [
        Cell(difference(alone, unit, ""), alone, bracketed_ends(ends, unit)),
        Cell(
            difference(finding.minimum_detectable, unit, ""), finding.minimum_detectable
        ),
    ]
    if math.isinf(score.high - score.low):
        return [*first, *found, _available(finding)]
    wanted = target * (score.high - score.low) / 2
    goal = difference(wanted, unit, "")
    times = power.growth(finding.difference, finding.level, wanted)
    text = f"{times:.2g} times the {finding.definition.clusters} for {goal}"
    if finding.difference.clusters and math.isfinite(times):
        text += f", {two_digits(times * finding.difference.clusters)}"
    if times <= 1:
        text = f"enough for {goal}"
    elif not math.isfinite(times):
        text = f"no number of {finding.definition.clusters} for {goal}"
    return [*first, *found, f"{text}; {_available(finding)}"]


def _sentences(findings: Sequence[Finding]) -> list[str]:
    """Describe the differences grouped by verdict, the clearest first, and the number of scores without one."""
    significant = [finding for finding in findings if finding.significant]
    significant.sort(key=attrgetter("adjusted"))
    places = grouped(
        (finding.verdict, f"{finding.score.title} ({finding.subject})")
        for finding in significant
    )
    verdicts = [
        f"{verdict}: {join_some(where, 4)}" for verdict, where in places.items()
    ]
    tested = [finding for finding in findings if not math.isnan(finding.adjusted)]
    others = [finding for finding in tested if not finding.significant]
    untested = [finding for finding in findings if math.isnan(finding.adjusted)]
    for label, listed in (
        (f"no significant difference in {len(others)} of {len(tested)} tests", others),
        (f"not tested: {len(untested)} of {len(findings)} scores", untested),
    ):
        if listed:
            verdicts.append(f"{label}: {join_some((f.subject for f in listed), 4)}")
    return verdicts


def _notes(findings: Sequence[Finding]) -> list[str]:
    """Collect the notes, each with its comparisons."""
    several = len({(finding.base, finding.other) for finding in findings}) > 1
    notes = []
    for one in findings:
        sides = f" ({one.other} and {one.base})" if several else ""
        notes.append((one.note, f"{one.subject}{sides}"))
    return [
        f"{join_some(compared, 4)}: {note}"
        for note, compared in grouped(notes).items()
        if note
    ]


@dataclass(frozen=True)
class ComparisonReport(Output):
    """A comparison report: warnings, primary scores, all others; in LaTeX one table per pair of sides.

    Attributes:
        findings: At least one.
        left_out: What was not compared; in ``csv`` and ``json`` a row each, without numbers.
        correction: What p-values are corrected by.
        runs: The runs that were compared.
    """

    findings: Sequence[Finding]
    left_out: Sequence[NotCompared] = ()
    correction: str = "holm"
    runs: Sequence[Run] = ()
    template = "comparison"

    def records(self) -> Iterator[dict[str, object]]:
        """Yield findings, then what was not compared, without numbers."""
        for finding in self.findings:
            record = _record(finding)
            yield record | {"correction": self.correction}
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

    def context(self) -> Mapping[str, object]:
        """Override."""
        places = {benchmark: i for i, benchmark in enumerate(registry.benchmarks())}
        listed = sorted(
            self.findings,
            key=lambda finding: places.get(finding.definition.family, len(places)),
        )
        primary = [finding for finding in listed if finding.primary]
        others = [finding for finding in listed if not finding.primary]
        correction = self.correction
        return {
            "bases": list(dict.fromkeys(finding.base for finding in listed)),
            "others": list(dict.fromkeys(finding.other for finding in listed)),
            "task_diagnostics": self._task_diagnostics(),
            "sentences": _sentences(primary or others),
            "first": _table(primary or others, correction),
            "rest": _table(others, correction) if primary and others else None,
            "papers": _paper_tables(self.findings, correction),
            "legend": legend(listed, correction),
            "required": REQUIRED,
            "not_to_claim": NOT_TO_CLAIM,
            "left_out": list(map(str, self.left_out)),
            "notes": _notes(listed),
            "origins": board_reports.origins(self.runs),
        }

    def _task_diagnostics(self) -> dict[str, str]:
        """Return the tasks of each warning, by run."""
        located = []
        for run in self.runs:
            for task in run.tasks.values():
                for one in task.diagnostics:
                    located.append(((diagnostic_label(one), run.name), task.task))
        by_run = []
        for (label, name), tasks in grouped(located).items():
            by_run.append((label, f"{name}: {join_some(tasks, 3)}"))
        return {label: "; ".join(places) for label, places in grouped(by_run).items()}


@dataclass(frozen=True)
class PowerReport(ComparisonReport):
    """A power analysis of a run's primary scores.

    Its findings are those of :func:`~lm_eval_bias.comparing.findings.power_of`.

    Attributes:
        target: The difference to be told, as a share of half the range.
    """

    target: float = 0.1
    formats = tuple(name for name in FORMATS if name != "html")
    template = "power"

    def context(self) -> Mapping[str, object]:
        """Override."""
        rows = [_planned(finding, self.target) for finding in self.findings]
        tests = sum(not math.isnan(finding.difference.p) for finding in self.findings)
        heads = numeric("n", "Alone", f"among {tests} (Holm)")
        columns = ["Task", "Score", *heads, "More templates, terms or the like"]
        return {"made": Table(POWER, columns, rows)}
