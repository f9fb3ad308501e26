"""What ``lm-eval-bias check`` says: to people, as JSON, and to machines that build (JUnit XML, Markdown)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from functools import cached_property
from importlib import metadata
from itertools import chain
from pathlib import Path

from lm_eval_bias.core import Data, __version__, comparability, content_hashes
from lm_eval_bias.core.files import expanded
from lm_eval_bias.core.numbers import grouped, join_some, significant
from lm_eval_bias.core.run_data import Problem, Run
from lm_eval_bias.custom_metrics.score import joined
from lm_eval_bias.gate.policy_file import Bound
from lm_eval_bias.gate.regression import NOT_WORSE, WORSE
from lm_eval_bias.gate.verdict import GateFinding
from lm_eval_bias.report import provenance_facts, templates
from lm_eval_bias.report.outputs import Output

# what a bound asks for, the words for its ends, and how it is missed
_KINDS = {
    "interval": ("the whole interval", "at least", "at most", "reaches"),
    "point": ("the value", "at least", "at most", "is"),
    "evidence": ("not shown to be", "below", "above", "lies entirely"),
}


def required(finding: GateFinding) -> str:
    """Describe a bound's requirement."""
    bound = finding.required
    if isinstance(bound, str):
        return bound
    asked, low, high, _ = _KINDS[bound.on]
    # as written: rounded, what violates it could seem to meet it
    pairs = ((low, bound.low), (high, bound.high))
    ends = [f"{word} {end:.15g}" for word, end in pairs if math.isfinite(end)]
    return f"{asked} {(' or ' if bound.on == 'evidence' else ' and ').join(ends)}"


def says(finding: GateFinding) -> str:
    """Describe how a bound is missed, "" if it is met; of a compared score, the outcome."""
    change = finding.change
    if change:
        outcome = finding.problem or change.outcome
        if change.margin and change.outcome in (WORSE, NOT_WORSE):
            outcome += f" by over {change.margin:g}"
        least = change.minimum_detectable
        found = "nothing" if math.isnan(least) else f"{least:.2g}"
        return f"{outcome}. Detects {found}."
    if isinstance(finding.required, Bound) and finding.side:
        *_, missed = _KINDS[finding.required.on]
        return f"{missed} {significant(finding.excess)} {finding.side}"
    return finding.problem


def _value(finding: GateFinding) -> str:
    """Write the score and its interval, "" without a value; of a compared one both values and their difference."""
    change = finding.change
    ends = ""
    if finding.interval is not None:
        ends = f" [{', '.join(map(significant, finding.interval))}]"
    if change:
        both = f"{significant(change.base)} → {significant(finding.value)}"
        sign = "+" * (change.difference > 0)
        return f"{both} ({sign}{significant(change.difference)}{ends})"
    return "" if math.isnan(finding.value) else f"{significant(finding.value)}{ends}"


def _sentences(findings: Iterable[GateFinding]) -> list[str]:
    """Describe findings in sentences, merged over tasks."""
    described = []
    for one in findings:
        value = _value(one)
        about = joined(
            f"{one.score}{value and f': {value}'}",
            "" if one.change else required(one),
            (found := says(one)) and f"found: {found}",
            one.why and f"why: {one.why}",
        )
        described.append((about, one.task or "the run"))
    return [
        f"{join_some(tasks, 3)}, {about}" for about, tasks in grouped(described).items()
    ]


# what two sides may share, so that a comparison says nothing; the first that they do is said
_SHARED = {
    "results": "The base is the run itself: nothing is compared",
    "logs": "The run and its base have the same logs: nothing is compared",
    "weight_files": "The same weights on both sides: no change of the model is compared",
}


def _origin(run: Run) -> Data:
    """Collect the provenance of a judged run, and the SHA-256 of its files.

    Raises:
        OSError: A file can't be read any more.
    """
    found = provenance_facts.facts(run)
    records = run.records
    facts: Data = {"run": run.name, "path": str(run.path)}
    moments = sorted({record.made for record in records if record.made})
    facts["made"] = ", ".join(moments)
    for fact in comparability.facts().values():
        if fact.gate == "said" and fact.name in found:
            facts[fact.name] = found[fact.name]
    if found["model_revision"] and not facts["weights"]:
        facts["weights"] = f"{found['model_revision']} (not proven)"
    facts["weight_files"] = run.record.model.files
    results = [Path(record.file) for record in records]
    saved = chain.from_iterable(task.saved_files for task in run.tasks.values())
    logs = list(dict.fromkeys(saved))
    for kind, paths in (("results", results), ("logs", logs)):
        facts[kind] = {p.name: content_hashes.of_file(p) for p in paths if p.is_file()}
    return facts


@dataclass
class RunVerdict:
    """A run with its findings, and its base, if any."""

    run: Run
    findings: list[GateFinding]
    base: Run | None = None

    @cached_property
    def origin(self) -> Data:
        """The provenance of run and base, read once."""
        base = {"base": _origin(self.base)} if self.base else {}
        return {**_origin(self.run), **base}

    @property
    def head(self) -> list[str]:
        """The first lines of every output: run, base, and what both share."""
        here, there = self.origin, self.origin.get("base")
        lines = [_introduced("Run", here)]
        if there:
            lines.append(_introduced("Base", there))
            same = (
                kind
                for kind in _SHARED
                if _digests(here, kind) == _digests(there, kind)
            )
            lines += [_SHARED[kind] for kind in same if here[kind]][:1]
            if here["made"] < there["made"]:
                lines.append("The base is newer than the run: are the two exchanged?")
        return lines


def _digests(origin: Data, kind: str) -> list[str]:
    return sorted(text for _, text in content_hashes.flat(origin[kind]))


def _entry(finding: GateFinding) -> Data:
    """Return a finding as plain data for JSON."""
    return {
        "task": finding.task or None,
        "score": finding.score,
        "passes": finding.passes,
        "says": says(finding),
        "bound": required(finding),
        "value": finding.value,
        "interval": finding.interval,
        "excess": finding.excess,
        "why": finding.why,
        "against_base": finding.change and asdict(finding.change),
    }


def _introduced(word: str, origin: Data) -> str:
    """Name a run: its path, when it was made, its weights and results."""
    hashes = [digest[:12] for digest in origin["results"].values()]
    return joined(
        f"{word}: {origin['run']} ({origin['path']})",
        f"made {origin['made'] or 'at a time that its file does not say'}",
        f"weights {origin['weights'] or 'not proven'}",
        f"results SHA-256 {join_some(hashes)}",
    )


@dataclass
class GateVerdict(Output):
    """A verdict of ``check``, complete or not.

    Attributes:
        policy: Path of the policy; empty for none.
        runs: The runs with what was found.
        problems: What couldn't be read.
        is_complete: Whether all was judged.
        options: Flags on which the verdict depends, with their values.
    """

    policy: str
    runs: list[RunVerdict] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    is_complete: bool = True
    options: Data = field(default_factory=dict)
    formats = ("text", "md", "json")
    template = "gate"

    @property
    def missed(self) -> list[GateFinding]:
        """What is violated, of scores first."""
        every = chain.from_iterable(one.findings for one in self.runs)
        missed = [finding for finding in every if not finding.passes]
        return sorted(missed, key=lambda finding: finding.is_of_run)

    @property
    def passes(self) -> bool:
        """Whether nothing is violated and every run was read."""
        return self.is_complete and not self.missed and not self.problems

    @property
    def provenance(self) -> Data:
        """The policy's SHA-256, and the releases that judged."""
        made: Data = {
            "lm-eval-bias": __version__,
            "lm_eval": metadata.version("lm_eval"),
        }
        _, installed = provenance_facts.installed_from()
        if installed:
            made["installed_from"] = installed
        path = expanded(self.policy or "-")
        if path.is_file():
            made["policy_sha256"] = content_hashes.of_file(path)
        return made

    def data(self) -> Data:
        """Return all that was judged, how, and what was found."""
        runs = []
        for one in self.runs:
            runs.append(
                {
                    "run": one.run.name,
                    "path": str(one.run.path),
                    "passes": all(finding.passes for finding in one.findings),
                    "says": one.head,
                    "origin": one.origin,
                    "findings": list(map(_entry, one.findings)),
                }
            )
        return {
            "passes": self.passes,
            "complete": self.is_complete,
            "says": self.first_line,
            "policy": self.policy,
            "options": self.options,
            "provenance": self.provenance,
            "runs": runs,
            "unreadable": [problem.as_data() for problem in self.problems],
        }

    @property
    def first_line(self) -> str:
        """The verdict and its reason: the first score or bound that is violated, or what else is."""
        number = sum(len(one.findings) for one in self.runs)
        if self.missed:
            first = _sentences(self.missed[:1])[0]
            return f"Violated: {len(self.missed)} of {number}, first {first}"
        if self.problems:
            return f"Violated: {self.problems[0]}"
        return f"Passes: all {number}"

    def context(self) -> Data:
        """Override."""
        return {
            "verdict": self,
            "required": required,
            "says": says,
            "sentences": _sentences,
            "value": _value,
        }

    def junit(self) -> str:
        """Write a suite per run and a case per bound: a failure where it is violated, an error for a lost run."""
        return templates.render("gate.xml.j2", **self.context()) + "\n"
