"""What readers of a run must know before they believe it: found in its scores, its options and what it doesn't say."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lm_eval_bias import catalog, registry
from lm_eval_bias.report import numbers
from lm_eval_bias.report.sentences import LARGE_SHARE, LOW_COVERAGE, LOW_LMS
from lm_eval_bias.runs import printable_runs
from lm_eval_bias.runs.run_data import Run, TaskRun, Value

FEW_GROUPS = 5.0
FEW_TEXTS = 200
WIDE = 0.5
# what a run file should say, and how that is called
EXPECTED = {
    "date": "date",
    "lm-eval-bias": "version of lm-eval-bias",
    "lm_eval": "version of lm_eval",
    "transformers": "version of transformers",
    "torch": "version of torch",
    "model_args": "model arguments",
    "dtype": "dtype",
    "batch_size": "batch size",
    "seeds": "seeds",
}
# options that change what is measured
DEPARTURES = (
    "words", "items", "templates", "word_probability", "instruction", "instruction_position", "first_templates",
    "wording", "bos", "inter", "masked", "repeats", "classifier",
)  # fmt: skip


@dataclass(frozen=True)
class Caution:
    """One thing to beware of.

    Attributes:
        text: What it is.
        places: Where it holds: tasks, with their run where there are several.
        scores: The scores that it is about, if not all.
    """

    text: str
    places: list[str] = field(default_factory=list)
    scores: list[str] = field(default_factory=list)

    @property
    def where(self) -> str:
        """Places and scores for people."""
        about = f"scores {numbers.few(self.scores)}" if len(self.scores) > 1 else "".join(self.scores)
        return "; ".join(part for part in (numbers.few(self.places), about) if part)


def _main(task: TaskRun) -> list[Value]:
    names = registry.BENCHMARKS[task.benchmark].main if task.benchmark in registry.BENCHMARKS else ()
    return [task.scores[name] for name in names if name in task.scores]


def _shortage(task: TaskRun) -> Iterator[str]:
    if task.items and task.documents < task.items:
        yield (
            f"a limited run: {task.documents:,} of {task.items:,} items; such numbers are for trying out, and "
            "comparable only with a run limited alike"
        )
    main = _main(task)
    if not task.scores:
        if task.benchmark == "regard":
            yield printable_runs.WITHHELD
        return
    groups = [value.dof + 1 for value in main if not math.isnan(value.stderr) and math.isfinite(value.dof)]
    if groups and min(groups) <= FEW_GROUPS:
        yield f"few independent groups of items ({min(groups):.1f}): the intervals rest on little evidence"
    for value in main:
        if value.interval is not None and 0 < value.high - value.low < math.inf:
            share = (value.interval[1] - value.interval[0]) / (value.high - value.low)
            if share > WIDE:
                yield f"the interval of {value.name} covers {100 * share:.0f}% of its range: it tells next to nothing"


def _low_lms(task: TaskRun) -> Iterator[str]:
    low = []
    for name, lms in task.scores.items():
        part, _, kind = name.rpartition("/")
        if kind == "lms" and part in ("", "intra", "inter", "gen"):
            reach = lms.interval[0] if lms.interval is not None else lms.value
            if lms.value <= LOW_LMS or reach <= 50.0:
                low.append(f"{name} {numbers.cell(lms)}")
    if low:
        yield (
            f"low LMS, near chance (50): {', '.join(low)}: the model hardly tells sense from nonsense here, and a "
            "stereotype score near 50 says little"
        )


def _of_benchmark(task: TaskRun) -> Iterator[str]:
    scores = task.scores
    if task.benchmark == "occugender" and "coverage" in scores and scores["coverage"].value < LOW_COVERAGE:
        caught = 100 * scores["coverage"].value
        yield f"low coverage: the word lists catch {caught:.1f}% of the probability, the shares describe no more"
    if task.benchmark in ("stereoset", "stereoset_variants"):
        yield from _low_lms(task)
    if "unanswered" in scores and scores["unanswered"].value > LARGE_SHARE:
        yield f"{100 * scores['unanswered'].value:.0f}% of the items have no single answer: they count as wrong"
    if task.benchmark == "regard" and scores:
        for name, what in (("dropped", "were no sentences and left out"), ("unfinished", "don't end as sentences do")):
            if name in scores and scores[name].value > LARGE_SHARE:
                yield f"{100 * scores[name].value:.0f}% of the texts {what}"
        if "all/n" in scores and scores["all/n"].value < FEW_TEXTS:
            yield f"few texts in the test ({scores['all/n'].value:,.0f}): only large differences could show"
        if "distinct" in scores and scores["distinct"].value < 1 - LARGE_SHARE:
            differ = 100 * scores["distinct"].value
            yield f"only {differ:.0f}% of the texts differ: they are less independent than the test takes them to be"
        used = task.metadata.get("classifier_used")
        if not isinstance(used, Mapping) or not used.get("name"):
            yield "the file doesn't say which classifier labelled the texts"
        elif used.get("warning"):
            yield printable_runs.one_line(used["warning"])


def _departures(task: TaskRun) -> Iterator[str]:
    fixed = task.metadata.get("fixed")
    given = {key: task.metadata[key] for key in DEPARTURES if task.metadata.get(key) is not None}
    if isinstance(fixed, Mapping):
        given = {key: value for key, value in given.items() if key not in fixed}
    if given:
        told = ", ".join(f"{key}={printable_runs.shown(value)}" for key, value in given.items())
        yield f"departs from the default and so, perhaps, from the paper: {told}"
    dataset = task.metadata.get("dataset_used")
    if isinstance(dataset, Mapping):
        yield f"a data set of its own, not the published one: {printable_runs.shown(dataset.get('file'))}"
    name = task.task.partition(" ")[0]
    if name not in catalog.entries():
        yield "no task of this version: made by another one, or with tasks of its own"


def _outside(task: TaskRun) -> Iterator[str]:
    for value in task.scores.values():
        if value.value < value.low or value.value > value.high:
            yield f"{value.name} is outside of its range: no result of this package, or a damaged file"


def _of_run(run: Run) -> Iterator[str]:
    said: Mapping[str, Any] = run.provenance
    seeds = said.get("seeds")
    lacking = [
        called
        for key, called in EXPECTED.items()
        if said.get(key) in (None, "")
        or (key == "seeds" and isinstance(seeds, list) and all(seed is None for seed in seeds))
    ]
    if lacking:
        yield f"provenance is incomplete: no {', no '.join(lacking)}"
    if not run.command:
        yield "no command to repeat it"
    if said.get("chat_template"):
        yield "run with a chat template: the papers' prompts have none"
    if said.get("system_instruction"):
        yield "run with a system instruction: the papers' prompts have none"


def of(runs: Sequence[Run]) -> list[Caution]:
    """Everything to beware of in some runs, alike ones together, notes of single scores last."""
    found: dict[str, Caution] = {}
    notes: dict[str, Caution] = {}

    def add(into: dict[str, Caution], text: str, place: str, score: str = "") -> None:
        caution = into.setdefault(text, Caution(text))
        if place not in caution.places:
            caution.places.append(place)
        if score and score not in caution.scores:
            caution.scores.append(score)

    several = len(runs) > 1
    for run in runs:
        for task in run.tasks.values():
            place = f"{run.name}: {task.task}" if several else task.task
            for check in (_of_benchmark, _shortage, _departures, _outside):
                for text in check(task):
                    add(found, text, place)
            warned = {c.text for c in found.values()}
            for value in task.scores.values():
                if value.note and value.note not in warned:
                    add(notes, value.note, place, value.name)
        for text in _of_run(run):
            add(found, text, run.name)
    return [*found.values(), *notes.values()]
