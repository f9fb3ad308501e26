"""What ``lm-eval-bias check`` says: to people, as JSON, and to machines that build (JUnit XML, Markdown)."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import metadata
from pathlib import Path

from lm_eval_bias.core import Data, __version__, what_counts
from lm_eval_bias.core.files import expanded
from lm_eval_bias.core.numbers import grouped, join_some, significant
from lm_eval_bias.core.page_parts import Table
from lm_eval_bias.core.run_data import Problem, Run
from lm_eval_bias.custom_metrics.score import joined
from lm_eval_bias.gate.policy_file import Bound
from lm_eval_bias.gate.verdict import GateFinding, proof
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
    return f"{significant(finding.value)} {ends}".rstrip()


def _rows(findings: Iterable[GateFinding]) -> list[list[str]]:
    """Write a row per bound, one for all tasks of which the same is said."""
    said = []
    for finding in findings:
        texts = (
            finding.score,
            _value(finding),
            required(finding),
            says(finding),
            finding.why,
        )
        said.append((texts, finding.task or "the run"))
    return [[join_some(tasks, 3), *texts] for texts, tasks in grouped(said).items()]


def _table(findings: Sequence[GateFinding]) -> Table:
    labels = ["Task", "Score", "Value [95%]", "Required", "Found", "Why"]
    return Table("", labels, _rows(findings))


_WIDTH = 120  # of a terminal
_LONGEST = 60_000  # a comment on GitHub may have 65,536 characters


def _whole(finding: GateFinding) -> str:
    """Put a violated bound into a sentence."""
    parts = [f"required: {required(finding)}", f"but {says(finding)}"]
    if finding.why:
        parts.append(f"why: {finding.why}")
    text = joined(_value(finding), *parts)
    return f"{finding.task or 'the run'}, {finding.score}: {text}"


def _listed(word: str, findings: Iterable[GateFinding]) -> list[str]:
    """Write findings on lines of a terminal, what each asks below what it is about."""
    lines = []
    for tasks, score, value, asked, found, why in _rows(findings):
        about = f"{word:8}  {tasks}, {score}{value and f': {value}'}"
        more = joined(asked, found and f"found: {found}", why and f"why: {why}")
        lines += [about, _wrapped(more, " " * 10)]
    return lines


def _wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(
        text,
        _WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def case(finding: GateFinding) -> str:
    """Name a bound without its thresholds, so that a changed one keeps its history."""
    bound = finding.required
    if isinstance(bound, str):
        return finding.score
    kind = "distance" if math.isfinite(bound.distance) else "min"
    if kind == "min" and math.isfinite(bound.high):
        kind = "min and max" if math.isfinite(bound.low) else "max"
    return f"{finding.score}, {kind}, {bound.on}"


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def origin(run: Run) -> Data:
    """Collect what a verdict on a run is bound to: what the table of what counts says, and the SHA-256 of its files.

    Raises:
        OSError: A file can't be read any more.
    """
    found = made_by.facts(run)
    said = {
        fact.name: found[fact.name]
        for fact in what_counts.facts().values()
        if fact.gate == "said" and fact.name in found
    }
    if found["model_revision"] and not said["weights"]:
        said["weights"] = f"{found['model_revision']} (not proven)"
    said["weight_files"] = run.record.model.files
    said["made"] = ", ".join(record.made for record in run.records if record.made)
    said["items"] = {
        name: f"{task.documents:,} of {task.items or task.documents:,} items"
        for name, task in run.tasks.items()
    }
    results = [Path(record.file) for record in run.records]
    logs = [task.samples for task in run.tasks.values() if task.samples]
    for kind, paths in (("results", results), ("logs", logs)):
        said[kind] = {path.name: _sha256(path) for path in paths if path.is_file()}
    return said


@dataclass
class JudgedRun:
    """A run with what was found, beside the earlier one that it was compared with, if any."""

    run: Run
    findings: Sequence[GateFinding]
    base: Run | None = None

    @cached_property
    def origin(self) -> Data:
        """What the verdict is bound to, read once."""
        said = origin(self.run)
        if self.base:
            path = str(self.base.path)
            said["base"] = {
                "run": self.base.name,
                "path": path,
                **origin(self.base),
            }
        return said

    @property
    def facts(self) -> dict[str, str]:
        """The same as texts by name, of each file its own."""
        return dict(_flat(self.origin))

    @property
    def head(self) -> list[str]:
        """What stands first in every output: when the run was made, its weights, its base, and in what they are one."""
        lines = [_introduced("Run", self.run, self.origin)]
        if self.base:
            there = self.origin["base"]
            lines.append(_introduced("Base", self.base, there))
            model, other = self.run.record.model, self.base.record.model
            if os.path.realpath(self.run.path) == os.path.realpath(self.base.path):
                lines.append("The base is the run itself: nothing is compared")
            elif sorted(self.origin["logs"].values()) == sorted(there["logs"].values()):
                lines.append(
                    "The run and its base have the same logs: nothing is compared"
                )
            elif model.weights and model.weights == other.weights:
                lines.append(
                    "The same weights on both sides: no change of the model is compared"
                )
        return lines

    def verdict(self) -> str:
        """Say in one line how many findings are violated, and which is the first."""
        violated = [finding for finding in self.findings if not finding.holds]
        if not violated:
            return f"all {len(self.findings)} hold"
        return f"{len(violated)} of {len(self.findings)} violated, first {_whole(violated[0])}"


def _installed_from() -> str:
    """Return the commit, or the archive's or installed files' hash, that this package is; empty where none is kept."""
    with contextlib.suppress(metadata.PackageNotFoundError):
        package = metadata.distribution("lm-eval-bias")
        told = json.loads(package.read_text("direct_url.json") or "{}")
        commit = told.get("vcs_info", {}).get("commit_id")
        archive = told.get("archive_info", {}).get("hash")
        listing = (package.read_text("RECORD") or "").encode()
        return commit or archive or f"RECORD {hashlib.sha256(listing).hexdigest()}"
    return ""


def _flat(said: Data, before: str = "") -> Iterator[tuple[str, str]]:
    """Yield all values of nested facts, with the names that lead to them."""
    for name, value in said.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}, ")
        elif value:
            yield f"{before}{name}", str(value)


def _introduced(word: str, run: Run, said: Data) -> str:
    """Name a run: its path, when it was made, its model and weights."""
    hashes = [digest[:12] for digest in said["results"].values()]
    parts = [
        f"{word}: {run.name} ({run.path})",
        f"made {said['made'] or 'at a time that its file does not say'}",
        f"weights {said['weights'] or 'not proven'}",
        f"results SHA-256 {join_some(hashes)}",
    ]
    return joined(*parts)


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
        installed = _installed_from()
        if installed:
            made["installed_from"] = installed
        path = expanded(self.policy or "-")
        if path.is_file():
            made["policy_sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
        return made

    def verify(self, evidence: Data) -> None:
        """Add to each run whether an earlier verdict, as JSON, was about the same files, facts and policy."""
        for judged in self.runs:
            ours = {**judged.facts, "policy": self.made_by.get("policy_sha256")}
            told = [
                dict(_flat(run["origin"]))
                for run in evidence["runs"]
                if run["origin"]["results"].keys() == judged.origin["results"].keys()
            ]
            theirs = (
                {**told[0], "policy": evidence["made_by"].get("policy_sha256")}
                if told
                else {}
            )
            lines = [
                f"{name} was {theirs.get(name)}, now {ours.get(name)}"
                for name in {**theirs, **ours}
                if theirs.get(name) != ours.get(name) and name != "base, path"
            ]
            required = "the files of the earlier verdict"
            judged.findings = [*judged.findings, proof("", "evidence", required, lines)]

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
                    "says": judged.head,
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
        """Write the findings of each run, what is violated first."""
        blocks = []
        for judged in self.runs:
            run = judged.run
            findings = judged.findings
            told = [f"{run.name}: {judged.verdict()}", *judged.head]
            # bounds before what is asked of a run
            findings = sorted(findings, key=lambda f: isinstance(f.required, str))
            violated = [finding for finding in findings if not finding.holds]
            holding = [finding for finding in findings if finding.holds]
            rows = [*map(_wrapped, told), "", *_listed("VIOLATED", violated)]
            rows += _listed("holds", holding)
            blocks.append("\n".join(rows) + "\n")
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
