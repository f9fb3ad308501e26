"""The methods paragraphs of a paper on runs: what was asked of which models, and how scores and intervals are made.

In come runs; all that is said stands in their records, the benchmarks' cards, the meanings of scores and
``custom_metrics/statistics.yaml``. Keys of citations are those that ``cite`` writes of the same runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lm_eval_bias.core import catalog
from lm_eval_bias.core.benchmark import samples_texts
from lm_eval_bias.core.numbers import grouped, join_some
from lm_eval_bias.core.run_data import Problem, Run, TaskRun, readable
from lm_eval_bias.data.sources import manifest
from lm_eval_bias.report import citing, provenance_facts
from lm_eval_bias.report.escaping import Markup
from lm_eval_bias.report.outputs import Output
from lm_eval_bias.runs import diagnostics, measurement
from lm_eval_bias.runs.harness_results import presentable

# a text, a phrase with formulas (Markup), or keys to cite
Piece = str | tuple[str, ...]
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
_MOST = 40  # names in a list


@dataclass(frozen=True)
class Paragraph:
    """A paragraph with a heading.

    Attributes:
        title: Its heading.
        pieces: What it says, in order.
    """

    title: str
    pieces: Sequence[Piece]

    def is_spaced(self, place: int) -> bool:
        """Return whether a space follows so many pieces (none before punctuation)."""
        after = self.pieces[place : place + 1]
        return bool(after) and after[0][:1] not in tuple(".,;:")


def _data(runs: Sequence[Run], tasks: Tasks) -> Iterable[Piece]:
    """Name benchmarks, and of each task its version, how many of its items were asked and their hash."""
    families = grouped((task.definition.family, (run, task)) for run, task in tasks)
    for family, members in families.items():
        yield family.title or family.name
        if cited := citing.of_benchmarks([family]):
            yield tuple(cited)
        alike = grouped((_items(task), run.name) for run, task in members)
        texts = []
        for text, names in alike.items():
            where = "" if len(names) == len(runs) else f" in {join_some(names)}"
            texts.append(f"{text}{where}")
        yield f": {'; '.join(texts)}."
    if pinned := _pinned(tasks):
        yield f"Data files, by the beginnings of their commits: {join_some(pinned, _MOST)}."


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


def _items(task: TaskRun) -> str:
    items = measurement.items_run(task) or f"all {task.documents:,} items"
    suite = task.metadata.get("suite") or {}
    if "documents" in suite:
        items += f", chosen in balance by the suite {suite['name']}"
        items += f", {suite['rule']}" if "rule" in suite else ""
    repeats = task.metadata.get("repeats")
    if repeats and samples_texts(task.definition):
        items += f", {repeats} texts of each prompt"
    digest = measurement.documents_hash(task)[:12]
    return (
        f"{task.task} (version {task.version}; {items}; hash of the prompts {digest})"
    )


def _prompts(tasks: Tasks) -> Iterable[Piece]:
    """Describe the prompts, grouped by tasks."""
    alike = grouped((_prompt(task), task.task) for _, task in tasks)
    for text, names in alike.items():
        about = "All tasks" if len(alike) == 1 else join_some(names, _MOST)
        yield f"{about}: {text}."


def _prompt(task: TaskRun) -> str:
    record = measurement.of(task)
    shots = record.task.shots
    template = record.prompt.template
    system = record.prompt.system_instruction
    changed = ", ".join(record.task.changed)
    parts = [
        f"prompts of the run's own ({changed})" if changed else "the packaged prompts",
        f"{shots} examples" if shots else "no examples",
        f"the chat template with SHA-256 {template[:12]}" if template else "no chat template",
        f"the system instruction “{system}”" if system else "no system instruction",
    ]  # fmt: skip
    for name, value in measurement.choices(task).items():
        if name not in ("chat_template", "system_instruction", "num_fewshot"):
            parts.append(f"{name} {value}".strip())
    return ", ".join(parts)


def _models(runs: Sequence[Run]) -> Iterable[Piece]:
    """Name models by what their files prove, and the packages that asked them."""
    for run in runs:
        facts = provenance_facts.facts(run)
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
        yield f"{run.name} ({'; '.join(phrases)})."
    asked = grouped((_software(run), run.name) for run in runs)
    for (own, harness, others), names in asked.items():
        about = "All models" if len(asked) == 1 else join_some(names)
        yield f"{about} were asked by lm-eval-bias {own}"
        yield ("lm-eval-bias",)
        yield f"with the Language Model Evaluation Harness {harness}"
        yield ("lm-eval-harness",)
        yield f"({others})."


def _software(run: Run) -> tuple[str, str, str]:
    facts = provenance_facts.facts(run)
    others = [f"{name} {facts[name]}" for name in _PACKAGES if facts.get(name)]
    return (
        readable(facts["lm-eval-bias"]),
        readable(facts["lm_eval"]),
        ", ".join(others),
    )


def _scores(tasks: Tasks) -> Iterable[Piece]:
    """Describe of each benchmark's shown scores what they measure, by which formula and from where."""
    for benchmark, asked in grouped((t.definition, t) for _, t in tasks).items():
        known = {score.name: score for score in catalog.headline(benchmark)}
        by_name = {value.name: value for task in asked for value in task.shown()}
        alike = grouped(
            ((getattr(known.get(name), "formula", ""), v.source), v)
            for name, v in by_name.items()
        )
        yield f"{citing.title_of(benchmark)}:"
        for place, ((formula, source), members) in enumerate(alike.items(), start=1):
            texts = [known.get(v.name, v).summary or v.title for v in members]
            yield "; ".join(
                f"{v.name}, {text}" for v, text in zip(members, texts, strict=True)
            )
            if formula:
                yield ":"
                yield Markup(formula)
            yield f"({source})" if source else ""
            yield ";" if place < len(alike) else "."


def _uncertainty(runs: Sequence[Run]) -> Iterable[Piece]:
    """Describe the methods of errors, intervals and tests."""
    known = citing.known_statistics()["statistics"]
    for name, scores in citing.statistics_of(runs).items():
        if name == citing.UNTOLD:
            yield f"The interval method of {join_some(scores, _MOST)} was not recorded."
            continue
        method = known[name]
        before, _, after = method["says"].partition("{scores}")
        yield Markup(before.strip())
        yield join_some(scores, _MOST)
        yield Markup(after.strip())
        if "formula" in method:
            yield ":"
            yield Markup(f"${method['formula']}$")
        if "cites" in method:
            yield tuple(method["cites"])
        yield "."


def _left_out(tasks: Tasks, problems: Sequence[Problem]) -> Iterable[Piece]:
    """Describe skipped files, missing values and warnings."""
    named = [
        f"{problem if problem.is_choice else f'{problem.path.name}: {problem.reason}'}."
        for problem in problems
    ]
    yield from dict.fromkeys(named)
    several = len({run.name for run, _ in tasks}) > 1
    lacking = []
    for run, task in tasks:
        place = f"{task.task} of {run.name}" if several else task.task
        lacking += [(text, place) for text in _lacks(task)]
    for text, places in grouped(lacking).items():
        yield f"{join_some(places)}: {text}."
    if not problems and not lacking:
        yield "Nothing was left out; every score above has a value."


def _lacks(task: TaskRun) -> list[str]:
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

    @property
    def paragraphs(self) -> list[Paragraph]:
        """The paragraphs."""
        runs = presentable(self.runs)
        tasks = [(run, task) for run in runs for task in run.tasks.values()]
        made = {
            "Data": _data(runs, tasks),
            "Prompts": _prompts(tasks),
            "Models": _models(runs),
            "Scores": _scores(tasks),
            "Intervals and tests": _uncertainty(runs),
            "Left out and not measured": _left_out(tasks, self.problems),
        }
        return [
            Paragraph(title, list(filter(None, pieces)))
            for title, pieces in made.items()
        ]

    def context(self) -> Mapping[str, object]:
        """Override."""
        return {"paragraphs": self.paragraphs}
