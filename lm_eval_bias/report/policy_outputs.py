"""What ``lm-eval-bias check`` says: to people, as JSON, and to machines that build (JUnit XML, Markdown)."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import metadata
from operator import attrgetter

from lm_eval_bias.core import Data, __version__, what_counts
from lm_eval_bias.core.files import expanded
from lm_eval_bias.core.numbers import grouped, join_some, significant
from lm_eval_bias.core.page_parts import Table
from lm_eval_bias.core.run_data import Problem, Run
from lm_eval_bias.custom_metrics.score import joined
from lm_eval_bias.gate.policy_file import Bound
from lm_eval_bias.gate.verdict import GateFinding
from lm_eval_bias.report import made_by, tables, templates

_REQUIRED = {"interval": "the whole interval", "point": "the value"}
_MISSED = {"interval": "reaches", "point": "is", "evidence": "lies entirely"}


def required(finding: GateFinding) -> str:
    """Say what a bound asks for."""
    bound = finding.required
    if isinstance(bound, str):
        return bound
    # as written: rounded, what violates it could seem to meet it
    low = f"{bound.low:.15g}"
    high = f"{bound.high:.15g}"
    if bound.on == "evidence":  # met unless the whole interval lies outside
        ends = []
        if math.isfinite(bound.low):
            ends.append(f"below {low}")
        if math.isfinite(bound.high):
            ends.append(f"above {high}")
        return f"not shown to be {' or '.join(ends)}"
    if math.isinf(bound.low):
        return f"{_REQUIRED[bound.on]} at most {high}"
    if math.isinf(bound.high):
        return f"{_REQUIRED[bound.on]} at least {low}"
    return f"{_REQUIRED[bound.on]} within {low} and {high}"


def says(finding: GateFinding) -> str:
    """Say how a bound is missed; "" where it is met."""
    if isinstance(finding.required, Bound) and finding.side:
        return f"{_MISSED[finding.required.on]} {significant(finding.excess)} {finding.side}"
    return finding.problem


def _value(finding: GateFinding) -> str:
    """Write the score and its interval; "" without a value."""
    if math.isnan(finding.value):
        return ""
    ends = ""
    if finding.interval is not None:
        low, high = finding.interval
        ends = f"[{significant(low)}, {significant(high)}]"
    return f"{significant(finding.value)} {ends}"


def _table(findings: Sequence[GateFinding], status: bool = False) -> Table:
    """Make a row per bound, one for all tasks of which the same is said; ``status`` puts in front whether it holds."""
    said = []
    for finding in findings:
        texts = (
            "holds" if finding.holds else "VIOLATED",
            finding.score,
            _value(finding),
            required(finding),
            says(finding),
            finding.why,
        )
        said.append((texts, finding.task))
    labels = ["", "Task", "Score", "Value [95%]", "Required", "Found", "Why"]
    first = 0 if status else 1
    rows = []
    for (holds, *others), tasks in grouped(said).items():
        rows.append([holds, join_some(tasks, 3), *others][first:])
    return Table("", labels[first:], rows)


_LONGEST = 60_000  # a comment on GitHub may have 65,536 characters


def _whole(finding: GateFinding) -> str:
    """Put a violated bound into a sentence."""
    parts = [f"required: {required(finding)}", f"but {says(finding)}"]
    if finding.why:
        parts.append(f"why: {finding.why}")
    text = joined(_value(finding), *parts)
    return f"{finding.task or 'the run'}, {finding.score}: {text}"


def case(finding: GateFinding) -> str:
    """Name a bound without its thresholds, so that a changed one keeps its history."""
    bound = finding.required
    if isinstance(bound, str):
        return finding.score
    kind = "distance" if math.isfinite(bound.distance) else "min"
    if kind == "min" and math.isfinite(bound.high):
        kind = "min and max" if math.isfinite(bound.low) else "max"
    return f"{finding.score}, {kind}, {bound.on}"


@dataclass
class JudgedRun:
    """A run with what was found."""

    run: Run
    findings: Sequence[GateFinding]

    @cached_property
    def origin(self) -> Data:
        """What the verdict is bound to, as the table of what counts says, and the SHA-256 of logs, read once."""
        found = made_by.facts(self.run)
        said = {
            fact.name: found[fact.name]
            for fact in what_counts.facts().values()
            if fact.gate == "said" and fact.name in found
        }
        said["weights"] = said["weights"] or found["model_revision"]
        logs = [task.samples for task in self.run.tasks.values() if task.samples]
        said["logs"] = {
            log.name: hashlib.sha256(log.read_bytes()).hexdigest()
            for log in logs
            if log.is_file()
        }
        return said


@dataclass
class Judged:
    """A verdict, as far as it was reached.

    Attributes:
        policy: Path of the policy; empty for none.
        runs: The runs with what was found.
        problems: What couldn't be read.
        is_complete: Whether all was judged.
    """

    policy: str
    runs: list[JudgedRun] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    is_complete: bool = True

    @property
    def holds(self) -> bool:
        """Whether nothing is violated. A run that can't be read must not seem to pass with the others."""
        missed = [f for judged in self.runs for f in judged.findings if not f.holds]
        return self.is_complete and not missed and not self.problems

    @property
    def made_by(self) -> Data:
        """The policy's SHA-256, and the releases that judged."""
        made: Data = {
            "lm-eval-bias": __version__,
            "lm_eval": metadata.version("lm_eval"),
        }
        path = expanded(self.policy or "-")
        if path.is_file():
            made["policy_sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
        return made

    def as_json(self) -> str:
        """Write all findings as JSON; ``null`` for what isn't there."""
        runs = []
        for judged in self.runs:
            run = judged.run
            findings = judged.findings
            entries = [
                {
                    "task": finding.task or None,
                    "score": finding.score,
                    "holds": finding.holds,
                    "says": says(finding),
                    "bound": required(finding),
                    "value": finding.value,
                    "interval": finding.interval,
                    "excess": finding.excess,
                    "why": finding.why,
                }
                for finding in findings
            ]
            runs.append(
                {
                    "run": run.name,
                    "path": str(run.path),
                    "holds": all(finding.holds for finding in findings),
                    "origin": judged.origin,
                    "findings": entries,
                }
            )
        data = {
            "holds": self.holds,
            "complete": self.is_complete,
            "policy": self.policy,
            "made_by": self.made_by,
            "runs": runs,
            "unreadable": [problem.as_data() for problem in self.problems],
        }
        return tables.json_text(data, indent=2)

    def as_text(self) -> str:
        """Write a table per run, what is violated first."""
        blocks = []
        for judged in self.runs:
            run = judged.run
            findings = judged.findings
            violated = sum(not finding.holds for finding in findings)
            told = f"all {len(findings)} hold"
            if violated:
                told = f"{violated} of {len(findings)} violated"
            # what is violated first, and bounds before what is asked of a run
            listed = sorted(findings, key=lambda f: isinstance(f.required, str))
            listed.sort(key=attrgetter("holds"))
            table = _table(listed, status=True)
            blocks.append(
                f"{run.name} ({run.path}): {told}\n{tables.text_table(table)}\n"
            )
        return "\n".join(blocks)

    def junit(self) -> str:
        """Write a suite per run and a case per bound: a failure where it is violated, an error for a lost run."""
        text = templates.render(
            "gate.xml.j2",
            judged=self,
            required=required,
            says=says,
            whole=_whole,
            case=case,
            value=_value,
        )
        return f"{text}\n"

    def comment(self) -> str:
        """Write a comment for a pull request: the verdict, what is violated, and what holds behind a click."""
        text = templates.render(
            "gate.md.j2",
            judged=self,
            table_of=_table,
        )
        if len(text) > _LONGEST:
            kept = text[: text.rindex("\n", 0, _LONGEST)]
            return f"{kept}\n\nCut here: the rest is in the log.\n"
        return text
