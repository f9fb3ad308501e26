"""What readers of a run must know before they believe it: found in its scores, its options and what it doesn't say."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lm_eval_bias.core import catalog, numbers, registry
from lm_eval_bias.core.benchmark import DETAIL, REQUIRED
from lm_eval_bias.core.errors import ask
from lm_eval_bias.core.run_data import Run, TaskRun, readable
from lm_eval_bias.core.score_cells import score_label
from lm_eval_bias.report import parts
from lm_eval_bias.runs import settings

# by weight: what is about the numbers themselves, how they were made, and what single ones lack
SERIOUS, SETTING, NOTE = "Read before the numbers", "How the runs were made", "Notes on single scores"
KINDS = (SERIOUS, SETTING, NOTE)
FEW_GROUPS = 5.0
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


@dataclass(frozen=True)
class Caution:
    """One thing to beware of.

    Attributes:
        text: What it is.
        places: Where it holds: tasks, with their run where there are several.
        scores: The scores that it is about, if not all.
        kind: How serious it is.
    """

    text: str
    places: list[str] = field(default_factory=list)
    scores: list[str] = field(default_factory=list)
    kind: str = SERIOUS

    @property
    def scope(self) -> str:
        """Places and scores for people."""
        about = f"scores {numbers.few(self.scores)}" if len(self.scores) > 1 else "".join(self.scores)
        return "; ".join(part for part in (numbers.few(self.places), about) if part)


def _shortage(task: TaskRun) -> Iterator[str]:
    if items := settings.part(task):
        yield (
            f"a limited run: {items}; use its numbers only to try things out, and compare them only with a run limited "
            "in the same way"
        )
    if not task.scores:
        benchmark = registry.by_name().get(task.benchmark)
        if benchmark is not None and (withheld := registry.withheld(benchmark.name, task)):
            yield withheld
        return
    main = [task.scores[name] for name in parts.main_names(task)]
    groups = [value.dof + 1 for value in main if not math.isnan(value.stderr) and math.isfinite(value.dof)]
    if groups and min(groups) <= FEW_GROUPS:
        yield f"few independent groups of items ({min(groups):.1f}): the intervals rest on little evidence"
    for value in main:
        if value.interval is not None and 0 < value.high - value.low < math.inf:
            share = (value.interval[1] - value.interval[0]) / (value.high - value.low)
            if share > WIDE:
                yield f"the interval of {value.name} covers {100 * share:.0f}% of its range: it says next to nothing"


def _of_benchmark(task: TaskRun) -> Iterable[str]:
    benchmark = registry.by_name().get(task.benchmark)
    return () if benchmark is None else ask((), benchmark, benchmark.cautions, task)


def _departures(task: TaskRun) -> Iterator[str]:
    fixed = task.metadata.get("fixed")
    benchmark = registry.by_name().get(task.benchmark)
    roles = {} if benchmark is None else benchmark.options
    options = [option for option, role in roles.items() if role not in (DETAIL, REQUIRED) and option != "dataset"]
    departures = {key: task.metadata[key] for key in options if task.metadata.get(key) is not None}
    if isinstance(fixed, Mapping):
        departures = {key: value for key, value in departures.items() if key not in fixed}
    if departures:
        listing = ", ".join(f"{key}={readable(value)}" for key, value in departures.items())
        yield f"departs from the defaults, and so perhaps from the paper: {listing}"
    dataset = task.metadata.get("dataset_used")
    if isinstance(dataset, Mapping):
        yield f"its own data set, not the published one: {readable(dataset.get('file'))}"
    name = task.task.partition(" ")[0]
    if name not in catalog.entries() and not isinstance(dataset, Mapping):
        yield "not a task of this version: the run used another version, or its own tasks"


def _of_run(run: Run) -> Iterator[str]:
    provenance = run.provenance
    seeds = provenance.get("seeds")
    lacking = [
        label
        for key, label in EXPECTED.items()
        if provenance.get(key) in (None, "")
        or (key == "seeds" and isinstance(seeds, list) and all(seed is None for seed in seeds))
    ]
    if lacking:
        yield f"provenance is incomplete: no {', no '.join(lacking)}"
    if not run.command:
        yield "no command to repeat it"
    if provenance.get("chat_template"):
        yield "run with a chat template, which the papers' prompts don't have"
    if provenance.get("system_instruction"):
        yield "run with a system instruction, which the papers' prompts don't have"


def of(runs: Sequence[Run]) -> list[Caution]:
    """Everything to beware of in some runs, alike ones together, serious ones first."""
    cautions: dict[str, Caution] = {}
    notes: dict[str, Caution] = {}

    def add(into: dict[str, Caution], kind: str, text: str, place: str, score: str = "") -> None:
        caution = into.setdefault(text, Caution(text, kind=kind))
        if place not in caution.places:
            caution.places.append(place)
        if score and score not in caution.scores:
            caution.scores.append(score)

    several = len(runs) > 1
    for run in runs:
        for task in run.tasks.values():
            place = f"{run.name}: {task.task}" if several else task.task
            for check, kind in ((_of_benchmark, SERIOUS), (_shortage, SERIOUS), (_departures, SETTING)):
                for text in check(task):
                    add(cautions, kind, text, place)
            warned = {c.text for c in cautions.values()}
            for value in task.scores.values():
                if value.note and value.note not in warned:
                    add(notes, NOTE, value.note, place, score_label(task.benchmark, value.name))
        for text in _of_run(run):
            add(cautions, SETTING, text, run.name)
    return sorted([*cautions.values(), *notes.values()], key=lambda caution: KINDS.index(caution.kind))
