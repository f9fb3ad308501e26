"""The methods paragraphs of a paper on runs: what was asked of which models, and how scores and intervals are made.

In come runs; all that is said stands in their records, the benchmarks' cards, the meanings of scores and
``custom_metrics/statistics.yaml``; the sentences are those of ``methods.tex.j2``. Keys of citations are those that
``cite`` writes of the same runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lm_eval_bias.core import Data, Facts, catalog
from lm_eval_bias.core.benchmark import samples_texts
from lm_eval_bias.core.numbers import grouped
from lm_eval_bias.core.run_data import Problem, Run, TaskRun, readable
from lm_eval_bias.data.sources import manifest
from lm_eval_bias.report import citing, provenance_facts
from lm_eval_bias.report.outputs import Output
from lm_eval_bias.runs import diagnostics, measurement
from lm_eval_bias.runs.harness_results import presentable

Tasks = Sequence[tuple[Run, TaskRun]]
# facts of a model as a sentence has them
_MODEL = {
    "parameters": "{} parameters",
    "dtype": "{}",
    "model_revision": "revision {}",
    "served": "served as {}",
    "model": "asked by --model {}",
    "model_args": "with {}",
    "device": "on {}",
    "gen_kwargs": "writing with {}",
}
_PACKAGES = ("transformers", "torch", "vllm", "numpy", "python")


def _data(tasks: Tasks) -> Iterator[tuple[object, ...]]:
    """Yield each benchmark with its citation keys, and what was asked of which runs."""
    families = grouped((task.definition.family, (run, task)) for run, task in tasks)
    for family, members in families.items():
        asked = grouped((_items(task), run.name) for run, task in members)
        cites = list(citing.of_benchmarks([family]))
        yield family.heading, cites, asked


def _pinned(tasks: Tasks) -> list[str]:
    """List the repositories and commits that the tasks' data were read from."""
    entries = [catalog.entries().get(task.task) for _, task in tasks]
    needed = {entry.data for entry in entries if entry is not None and entry.data}
    sources = manifest().resolve(sorted(needed))
    repositories = {source.repository for source in sources}
    found = []
    for place in sorted(set().union(*(task.record.files for _, task in tasks))):
        repository, _, rest = place.partition("@")
        if repository in repositories:
            found.append(f"{repository}@{rest[:12]}")
    return found


def _items(task: TaskRun) -> tuple[object, ...]:
    """Return what was asked of a task: name, version, items, suite and its rule, repeats, hash of the prompts."""
    suite = task.metadata.get("suite") or {}
    repeats = task.metadata.get("repeats")
    return (
        task.task,
        task.version,
        measurement.items_run(task) or f"all {task.documents:,} items",
        suite.get("name") if "documents" in suite else None,
        suite.get("rule"),
        repeats if samples_texts(task.definition) else None,
        measurement.documents_hash(task)[:12],
    )


def _prompt(task: TaskRun) -> tuple[object, ...]:
    """Return a task's own changes, examples, template, system instruction and further choices."""
    record = measurement.of(task)
    choices = [
        f"{name} {value}".strip()
        for name, value in measurement.choices(task).items()
        if name not in ("chat_template", "system_instruction", "num_fewshot")
    ]
    return (
        ", ".join(record.task.changed),
        record.task.shots,
        (record.prompt.template or "")[:12],
        record.prompt.system_instruction,
        ", ".join(choices),
    )


def _model(run: Run, facts: Data) -> tuple[str, list[str]]:
    """Name a model and what its file proves."""
    weights = run.record.model.weights
    if weights and "pretrained commit" not in weights:
        facts["model_revision"] = None  # of files there is none
    if isinstance(facts["parameters"], int):
        facts["parameters"] = f"{facts['parameters']:,}"
    phrases = [
        phrase.format(readable(facts[name]))
        for name, phrase in _MODEL.items()
        if facts[name]
    ]
    phrases += [f"{proof}: {digest[:12]}" for proof, digest in weights.items()]
    phrases += [one.message for one in diagnostics.about_origin(run)]
    return run.name, phrases


def _software(facts: Data) -> tuple[str, str, str]:
    others = [f"{name} {facts[name]}" for name in _PACKAGES if facts.get(name)]
    own, harness = (readable(facts[name]) for name in ("lm-eval-bias", "lm_eval"))
    return own, harness, ", ".join(others)


def _scores(tasks: Tasks) -> Iterator[tuple[str, Mapping[Sequence[str], list[str]]]]:
    """Yield each benchmark with what its shown scores measure, by formula and source."""
    for benchmark, asked in grouped((t.definition, t) for _, t in tasks).items():
        known = {score.name: score for score in catalog.headline(benchmark)}
        by_name = {value.name: value for task in asked for value in task.shown()}
        alike = []
        for name, value in by_name.items():
            score = known.get(name, value)
            place = getattr(score, "formula", ""), value.source
            alike.append((place, f"{name}, {score.summary or value.title}"))
        yield benchmark.heading, grouped(alike)


def _statistics(runs: Sequence[Run]) -> Iterator[tuple[Facts | None, list[str]]]:
    """Yield the methods of errors, intervals and tests with their scores; ``None`` where a file doesn't say it."""
    known = citing.known_statistics()["statistics"]
    for name, scores in citing.statistics_of(runs).items():
        yield known.get(name), scores


def _lacks(task: TaskRun) -> list[str]:
    """List a task's warnings, and its scores without a value."""
    if not task.scores and task.withheld:
        return [task.withheld]
    lacks = [one.shortest for one in task.diagnostics]
    for value in task.shown():
        if math.isnan(value.value):
            lacks.append(
                f"{value.name} has no value: {value.note or 'no reason given'}"
            )
    return lacks


@dataclass(frozen=True)
class Methods(Output):
    """The methods paragraphs on runs.

    Attributes:
        runs: The runs.
        problems: What was passed over or left out.
        inputs: Files that it was made from.
    """

    runs: Sequence[Run]
    problems: Sequence[Problem] = ()
    inputs: Sequence[str | Path] = ()
    formats = ("md", "latex")
    template = "methods"

    def context(self) -> Mapping[str, object]:
        """Override."""
        runs = presentable(self.runs)
        tasks = [(run, task) for run in runs for task in run.tasks.values()]
        facts = [provenance_facts.facts(run) for run in runs]
        lacking = []
        for run, task in tasks:
            place = f"{task.task} of {run.name}" if len(runs) > 1 else task.task
            lacking += [(text, place) for text in _lacks(task)]
        return {
            "runs": len(runs),
            "data": _data(tasks),
            "pinned": _pinned(tasks),
            "prompts": grouped((_prompt(task), task.task) for _, task in tasks),
            "models": map(_model, runs, facts),
            "software": grouped(
                (_software(of), run.name) for run, of in zip(runs, facts, strict=True)
            ),
            "scores": _scores(tasks),
            "statistics": _statistics(runs),
            "skipped": list(dict.fromkeys(problem.told for problem in self.problems)),
            "lacking": grouped(lacking),
        }
