"""What must be known of a run before its scores are believed: one list, which reports, boards and gates read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from lm_eval_bias.core import numbers, registry
from lm_eval_bias.core.benchmark import REQUIRED
from lm_eval_bias.core.errors import ask
from lm_eval_bias.core.run_data import Remark, Run, TaskRun
from lm_eval_bias.core.wording import LARGE_SHARE, answered
from lm_eval_bias.harness import servers
from lm_eval_bias.runs import settings

# kinds that leave no verdict on a score
UNMAKING = ("trial_run", "chance_level", "low_coverage", "unanswered")
# headings of the kinds, by weight: what is about the numbers themselves, how they were made, what single ones lack
SERIOUS, SETTING, NOTE = HEADINGS = (
    "Read before the numbers",
    "How the runs were made",
    "Notes on single scores",
)
_HEADINGS = {
    **dict.fromkeys(("changed_options", "own_data", "border"), SETTING),
    "score_note": NOTE,
}
_RANDOM = {"bias-chance", servers.DUMMY}  # model types that answer at random
_FEW_GROUPS = 5.0
_WIDE = 0.5


def about_answers(run: Run, task: TaskRun) -> Iterator[Remark]:
    """What the benchmark says itself, and whether the answers are too few, guesses or missing."""
    benchmark = registry.by_name().get(task.benchmark)
    cautions: Iterable[str | Remark] = (
        ask((), benchmark, benchmark.presentation.cautions, task) if benchmark else ()
    )
    for own in cautions:
        yield own if isinstance(own, Remark) else Remark("of_benchmark", own)
    if part := trial(task):
        advice = "use its numbers only to try things out, and compare them only with a run limited in the same way"
        yield Remark(
            "trial_run", f"a limited run: {part}; {advice}", f"trial run, {part}"
        )
    share = answered(task)
    told = (value for value in task.scores.values() if value.floor is not None)
    value = next(told, None)
    floor = value.floor if value is not None and value.floor is not None else 0.0
    if (model := run.provenance.get("model")) in _RANDOM:
        yield Remark("chance_level", f"chance level: {model} answers at random")
    elif (
        value is not None
        and share
        and (value.interval[0] if value.interval else value.value) <= floor * share
    ):
        of_answers = (
            f" of the {100 * share:.0f}% that were answered" if share < 1 else ""
        )
        guessed = f"by guessing{of_answers} {numbers.number(floor, value.unit)}"
        yield Remark(
            "chance_level",
            f"chance level: {value.name} {numbers.cell(value)}, {guessed}",
        )
    if share < 1 - LARGE_SHARE:
        refused = task.scores.get("refused")
        refusals = (
            f" ({100 * refused.value:.0f}% refused)"
            if refused and not math.isnan(refused.value)
            else ""
        )
        brief = f"{100 * (1 - share):.0f}% of the items are unanswered{refusals}"
        means = "they count as no bias or are left out, so that the scores say less than they seem to"
        yield Remark(
            "unanswered",
            f"{brief}: {means if share else 'the scores say nothing about bias'}",
            brief,
        )
    if not task.scores and (withheld := registry.withheld(task.benchmark, task)):
        yield Remark("of_benchmark", withheld)


def _about_intervals(task: TaskRun) -> Iterator[Remark]:
    main = [task.scores[name] for name in registry.main_names(task)]
    groups = [
        value.dof + 1
        for value in main
        if not math.isnan(value.stderr) and math.isfinite(value.dof)
    ]
    if groups and min(groups) <= _FEW_GROUPS:
        text = f"few independent groups of items ({min(groups):.1f}): the intervals rest on little evidence"
        yield Remark("few_groups", text)
    for value in main:
        if value.interval is not None and 0 < value.high - value.low < math.inf:
            share = (value.interval[1] - value.interval[0]) / (value.high - value.low)
            if share > _WIDE:
                text = f"the interval of {value.name} covers {100 * share:.0f}% of its range: it says next to nothing"
                yield Remark("wide_interval", text)


def _about_options(run: Run, task: TaskRun) -> Iterator[Remark]:
    benchmark = registry.by_name().get(task.benchmark)
    if benchmark is None:
        return
    given = {
        option for option, role in benchmark.options.roles.items() if role == REQUIRED
    }
    given |= set(task.metadata.get("fixed") or ())
    changed = [
        c
        for c in settings.changed_options(run, task)
        if c.name not in (*settings.PART, *given)
    ]
    if listing := ", ".join(one.exact for one in changed if not one.problem):
        yield Remark(
            "changed_options",
            f"departs from the defaults, and so perhaps from the paper: {listing}",
        )
    for one in changed:
        if one.problem:
            yield Remark(
                "own_data" if one.name == "dataset" else "changed_options", one.problem
            )


def of_task(run: Run, task: TaskRun) -> Iterator[Remark]:
    """Everything to know of a task of a run."""
    yield from about_answers(run, task)
    yield from _about_intervals(task)
    yield from _about_options(run, task)
    for value in task.scores.values():
        if value.note:
            yield Remark("score_note", value.note, score=value.title)


def unmaking(run: Run, task: TaskRun) -> list[Remark]:
    """What leaves no verdict on a task's scores."""
    found = (remark for remark in about_answers(run, task) if remark.kind in UNMAKING)
    return sorted(found, key=lambda remark: UNMAKING.index(remark.kind))


def trial(task: TaskRun) -> str:
    """Say which part of its items or samples a task was run on; empty where it was run whole."""
    samples = (
        "{} of {} samples per prompt".format(*task.fewer_samples)
        if task.fewer_samples
        else ""
    )
    return ", ".join(filter(None, (settings.part(task), samples)))


def before_scores(run: Run, task: TaskRun) -> str:
    """What stands in front of a task's scores; empty where nothing has to."""
    return "; ".join(remark.brief or remark.text for remark in unmaking(run, task))


@dataclass(frozen=True)
class PlacedRemark:
    """A remark with everything that it is about.

    Attributes:
        kind: As of the remark.
        text: What it is.
        places: Where it holds: tasks, with their run where there are several.
        scores: The scores that it is about, if not all.
    """

    kind: str
    text: str
    places: list[str] = field(default_factory=list)
    scores: list[str] = field(default_factory=list)

    @property
    def heading(self) -> str:
        """One of :data:`HEADINGS`."""
        return _HEADINGS.get(self.kind, SERIOUS)

    @property
    def scope(self) -> str:
        """Places and scores for people."""
        about = (
            f"scores {numbers.few(self.scores)}"
            if len(self.scores) > 1
            else "".join(self.scores)
        )
        return "; ".join(part for part in (numbers.few(self.places), about) if part)


def of_runs(runs: Sequence[Run]) -> list[PlacedRemark]:
    """Everything to know of some runs, alike remarks together, serious ones first; notes repeat nothing."""
    found: dict[str, PlacedRemark] = {}
    pairs = [
        (run, task, f"{run.name}: " if len(runs) > 1 else "")
        for run in runs
        for task in run.tasks.values()
    ]
    placed = [
        (remark, f"{before}{task.task}")
        for run, task, before in pairs
        for remark in of_task(run, task)
    ]
    borders = [(run.name, run.provenance.get("border")) for run in runs]
    placed += [(Remark("border", str(said)), name) for name, said in borders if said]
    for remark, place in sorted(placed, key=lambda one: one[0].kind == "score_note"):
        one = found.setdefault(remark.text, PlacedRemark(remark.kind, remark.text))
        if one.heading == _HEADINGS.get(remark.kind, SERIOUS):
            one.places.extend({place}.difference(one.places))
            one.scores.extend({remark.score}.difference(one.scores, [""]))
    return sorted(found.values(), key=lambda one: HEADINGS.index(one.heading))
