"""Remarks: what to know about a run before believing its scores. Reports, boards and gates read this one list."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from lm_eval_bias.core import numbers
from lm_eval_bias.core.answers import LONGEST_READ
from lm_eval_bias.core.benchmark import (
    REQUIRED,
    Benchmark,
    UnknownBenchmark,
    options_for,
)
from lm_eval_bias.core.errors import call_plugin
from lm_eval_bias.core.run_data import Remark, Run, TaskRun
from lm_eval_bias.core.wording import LARGE_SHARE, answered
from lm_eval_bias.custom_metrics import places
from lm_eval_bias.custom_metrics.score import joined
from lm_eval_bias.harness import servers
from lm_eval_bias.runs import measurement

TRIAL = "trial_run"
CUT_PROMPTS, ALIKE = ("cut_prompts", "same_draws")
# kinds that stand in front of a task's scores, most serious first
BEFORE_SCORES = (
    TRIAL, CUT_PROMPTS, "chance_level", "below_chance", "unshown_ability", "habit", "saturated", "low_coverage", ALIKE,
    "unanswered", "place",
)  # fmt: skip
# kinds of models that are near neutral because they know or say nothing: their bias is not ranked
EMPTY = ("chance_level", "below_chance", "unshown_ability", "habit", "unanswered")
# kinds about where a run's answers came from, which policies may refuse
ORIGIN_KINDS = WEIGHTS, CACHED = ("unproven_weights", "cached_answers")
# headings of the kinds, by weight: about the numbers themselves, how they were made, what single ones lack
SERIOUS, SETTING, NOTE = HEADINGS = (
    "Read before the numbers",
    "How the runs were made",
    "Notes on single scores",
)
_HEADINGS = {
    **dict.fromkeys(("changed_options", "own_data", "border", "suite_part"), SETTING),
    "repeated_prompts": SETTING,
    **dict.fromkeys(ORIGIN_KINDS, SETTING),
    **dict.fromkeys(
        ("unfinished_texts", "blocked_texts", "failed_texts", "long_texts"), SETTING
    ),
    "score_note": NOTE,
}
# of texts, by how they ended
_ENDS = {
    "unfinished": "were cut before they said an answer, and count as unanswered: raise max_gen_toks= (--gen_kwargs)",
    "blocked": "were blocked by a filter or refused by the server, and count as refusals",
    "failed": "are none, since the server refused the prompt with an error: they count as unanswered",
    "long": f"have over {LONGEST_READ:,} characters: but for thoughts, the first and last half of these are read",
}
_RANDOM = {"bias-chance", servers.DUMMY}  # model types that answer at random
_FEW_GROUPS = 5.0
_WIDE = 0.5
_HABIT = 0.9  # share of the answers from which on a habit gives nearly all of them


def about_answers(task: TaskRun) -> Iterator[Remark]:
    """Yield the benchmark's own cautions, and say if answers are too few, guesses or missing."""
    benchmark: Benchmark = task.definition
    cautions: Iterable[str | Remark] = call_plugin(
        (), benchmark, benchmark.presentation.cautions, task
    )
    for caution in cautions:
        if isinstance(caution, str):
            caution = Remark("of_benchmark", caution)
        yield caution
    part = trial(task)
    if part:
        yield Remark(
            TRIAL,
            (
                f"a limited run: {part}; "
                "use its numbers only to try things out, and compare them only with a run limited in the same way"
            ),
            f"trial run, {part}",
        )
    model = task.record.model.kind
    share = answered(task)
    if model in _RANDOM:
        text = f"chance level: {model} answers at random"
        yield Remark("chance_level", text, silences=_of_bias(task, needs_ability=True))
    elif share:
        yield from _about_ability(task, share)
        yield from _about_places(task)
    if share < 1 - LARGE_SHARE:
        brief = f"{100 * (1 - share):.0f}% of the items are unanswered"
        refused = task.scores.get("refused")
        if refused and not math.isnan(refused.value):
            brief += f" ({100 * refused.value:.0f}% refused)"
        means = "they count as no bias or are left out, so that the scores say less than they seem to"
        silences: list[str] = []
        if not share:
            means = "the scores say nothing about bias"
            silences = _of_bias(task)
        yield Remark("unanswered", f"{brief}: {means}", brief, silences=silences)
    yield from about_texts(task)
    if not task.scores and task.withheld:
        yield Remark("of_benchmark", task.withheld)


def about_texts(task: TaskRun) -> Iterator[Remark]:
    """Say which prompts were cut by the model's window or blocked, and which texts were cut or alike."""
    cut = task.metadata.get(CUT_PROMPTS)
    if cut:
        brief = f"{cut['documents']:,} of {task.documents:,} prompts were cut"
        yield Remark(
            CUT_PROMPTS,
            (
                f"{brief}: the model reads the last {cut['read']:,} tokens, and the longest has {cut['longest']:,}; "
                "take a model with a longer window, raise max_length= where it is set, or lower max_gen_toks="
            ),
            brief,
        )
    texts = task.metadata.get("texts") or {}
    if texts.get("alike"):
        brief = f"all {texts['alike']} draws of every prompt are the same text"
        advice = "the model is sure of each, or the server doesn't sample"
        yield Remark(ALIKE, f"{brief}: {advice}", brief)
    for name, says in _ENDS.items():
        if texts.get(name):
            share = 100 * texts[name] / texts["texts"]
            count = f"{texts[name]:,} of {texts['texts']:,} texts ({share:.2g}%)"
            yield Remark(f"{name}_texts", f"{count} {says}")


def _of_bias(task: TaskRun, needs_ability: bool = False) -> list[str]:
    """Name the scores that say how a model is biased; all, or those that say it only of one that understands."""
    return [
        value.name
        for value in task.scores.values()
        if value.neutral is not None and value.higher_is_better is None
        if value.needs_ability or not needs_ability
    ]


def _about_ability(task: TaskRun, answered: float) -> Iterator[Remark]:
    """Say where a model isn't shown to do better than by guessing, of the share that was answered."""
    # a bias that no guessing shows
    leans = any(v.favours and not v.needs_ability and v.side for v in task.main())
    needing = _of_bias(task, needs_ability=True)
    for value in task.scores.values():
        if value.floor is None:
            continue
        if math.isnan(value.value):
            text = f"ability not shown: {value.note or f'{value.name} has no value'}"
            yield Remark("unshown_ability", text, silences=needing)
            continue
        share = 1.0 if value.of_answers else answered
        guess = value.floor * share
        low, high = value.interval or (value.value, value.value)
        of = f" of the {100 * share:.0f}% that were answered" if share < 1 else ""
        guessed = f"by guessing{of} {numbers.number(guess / share, value.unit)}"
        counted = f"{numbers.count(value.n)} {'named answers' if value.of_answers else 'items'}"
        told = f"{value.name} {numbers.cell(value)}, {guessed}"
        if high < guess and value.higher_is_better is not None:
            brief = f"below chance ({counted})"
            text = f"{brief}: {told}"
            yield Remark("below_chance", text, brief, silences=_of_bias(task))
        elif low <= guess and not leans:
            brief = f"not shown to be better than a guess ({counted})"
            text = f"{brief}: {told}"
            yield Remark("chance_level", text, brief, silences=needing)


def _about_places(task: TaskRun) -> Iterator[Remark]:
    """Say where a model takes one letter, place or length more often than its share."""
    for value in task.scores.values():
        if not value.name.startswith((places.PREFIX, places.LENGTH)):
            continue
        # of lengths, what is right may be the shortest or longest option: only a habit in most items tells
        if value.neutral is None and 2 * (value.n or 0) < task.documents:
            continue
        usual = _HABIT if value.neutral is None else value.neutral + LARGE_SHARE
        low = value.interval[0] if value.interval else value.value
        if value.value < usual or low <= (value.neutral or 0.0):
            continue
        brief = f"{value.title} in {100 * value.value:.0f}%"
        decides = ": its length decides, not what it says"
        if value.neutral is not None:
            share = f"{100 * value.neutral:.0f}%"
            decides = f" ({share} if places played no part): the place decides beside what the option says"
        pulled = (
            "scores of bias towards their neutral values and abilities towards guessing"
        )
        means = f"{brief}{decides}, which pulls {pulled}"
        if value.value < _HABIT:
            yield Remark("place", means, brief)
        else:
            yield Remark("habit", means, brief, silences=_of_bias(task))


def _about_intervals(task: TaskRun) -> Iterator[Remark]:
    groups = [
        value.dof + 1
        for value in task.main()
        if not math.isnan(value.stderr) and math.isfinite(value.dof)
    ]
    if groups and min(groups) <= _FEW_GROUPS:
        yield Remark(
            "few_groups",
            f"few independent groups of items ({min(groups):.1f}): the intervals rest on little evidence",
        )
    for value in task.main():
        if value.interval is not None and 0 < value.high - value.low < math.inf:
            share = (value.interval[1] - value.interval[0]) / (value.high - value.low)
            if share > _WIDE:
                yield Remark(
                    "wide_interval",
                    f"the interval of {value.name} covers {100 * share:.0f}% of its range: it says next to nothing",
                )


def _about_repetition(task: TaskRun) -> Iterator[Remark]:
    different = task.inputs.get("different_prompts", task.documents)
    if different < task.documents:
        text = (
            f"{different:,} different prompts for {task.documents:,} items: an item that occurs again adds no "
            "evidence, and the intervals, which go by templates, don't count it as such"
        )
        yield Remark("repeated_prompts", text)


def _about_options(task: TaskRun) -> Iterator[Remark]:
    if _is_part_of_a_suite(task):
        yield Remark(
            "suite_part",
            (
                f"--suite {task.metadata['suite']['name']}: "
                "a fixed, balanced part of the items: intervals are wider than those of all items"
            ),
        )
    if isinstance(task.definition, UnknownBenchmark):
        return
    fixed = task.metadata.get("fixed") or ()
    given = {*options_for(task.definition, REQUIRED), *fixed}
    changed = [
        option
        for option in measurement.changed_options(task)
        if option.name not in (*measurement.PART, *given)
    ]
    listing = ", ".join(option.exact for option in changed if not option.problem)
    if listing:
        yield Remark(
            "changed_options",
            f"departs from the defaults, and so perhaps from the paper: {listing}",
        )
    for option in changed:
        kind = "own_data" if option.name == "dataset" else "changed_options"
        if option.problem:
            yield Remark(kind, option.problem)


def about_origin(run: Run) -> Iterator[Remark]:
    """Say where nothing proves which weights answered, and how many answers came from a file."""
    unproven = "; ".join(measurement.unproven_files(run))
    served = ", ".join(run.record.model.served)
    text = ""
    if unproven:
        text = "joined from files that don't prove that the same weights answered: "
        text += unproven
    elif not measurement.are_proven(run.record):
        text = "nothing proves which weights answered"
        if served:
            text += f"; the server calls itself {served} (not proven)"
    if text:
        yield Remark(WEIGHTS, text)
    caches = [record.cache for record in run.records if record.cache]
    if caches:
        counts = "; ".join(f"{cache.answers:,} of {cache.begun}" for cache in caches)
        said = "answers came from a file of --use_cache, which was begun on that day"
        yield Remark(CACHED, f"{counts}: {said}")


def of_task(run: Run, task: TaskRun) -> Iterator[Remark]:
    """Yield all remarks on a task of a run."""
    yield from about_origin(run)
    yield from about_answers(task)
    yield from _about_intervals(task)
    yield from _about_repetition(task)
    yield from _about_options(task)
    for value in task.scores.values():
        if value.note:
            yield Remark("score_note", value.note, scores=[value.name])


def applied(run: Run) -> Run:
    """Return the run with what stands in front of its tasks' scores, and which scores may not be spoken of."""
    tasks = {}
    for name, task in run.tasks.items():
        found = [r for r in about_answers(task) if r.kind in BEFORE_SCORES]
        found.sort(key=lambda remark: BEFORE_SCORES.index(remark.kind))
        scores = dict(task.scores)
        for remark in found:
            for score in remark.silences:
                if score in scores and not scores[score].unsaid:
                    unsaid = remark.shortest
                    scores[score] = replace(scores[score], unsaid=unsaid)
        tasks[name] = replace(task, scores=scores, caveats=found)
    return replace(run, tasks=tasks)


def _is_part_of_a_suite(task: TaskRun) -> bool:
    """Tell whether a suite chose the items, in balance."""
    return "documents" in (task.metadata.get("suite") or {})


def trial(task: TaskRun) -> str:
    """Say on which part of its items or samples a task was tried; empty where it ran whole, or as a suite takes it."""
    if _is_part_of_a_suite(task):
        return ""
    parts = [measurement.items_run(task)]
    if task.fewer_samples:
        parts.append("{} of {} samples per prompt".format(*task.fewer_samples))
    return ", ".join(filter(None, parts))


def trials(tasks: Iterable[TaskRun]) -> str:
    """List the tasks of which a part was run, with that part; empty where all were run whole."""
    places = numbers.grouped((trial(task), task.task) for task in tasks)
    places.pop("", None)
    return "; ".join(
        f"{part} of {numbers.join_some(names, 3)}" for part, names in places.items()
    )


@dataclass(frozen=True)
class PlacedRemark:
    """A remark with all tasks and scores that it is about.

    Attributes:
        kind: Kind of the remark.
        text: Text of the remark.
        places: Tasks that it is about, with their run where there are several.
        scores: Scores that it is about, if not all.
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
        about = "".join(self.scores)
        if len(self.scores) > 1:
            about = f"scores {numbers.join_some(self.scores)}"
        return joined(numbers.join_some(self.places), about)


def of_runs(runs: Sequence[Run]) -> list[PlacedRemark]:
    """Return all remarks on some runs, serious ones first; remarks with the same text are one.

    A note on a score that repeats another remark is left out.
    """
    located = []
    for run in runs:
        before = f"{run.name}: " if len(runs) > 1 else ""
        for task in run.tasks.values():
            for remark in of_task(run, task):
                titles = [task.scores[name].title for name in remark.scores]
                located.append((remark, f"{before}{task.task}", titles))
    for run in runs:
        for record in run.records:
            border = "; ".join(record.prompt.border)
            if border:
                located.append((Remark("border", border), run.name, []))
    located.sort(key=lambda told: told[0].kind == "score_note")
    by_text: dict[str, PlacedRemark] = {}
    for remark, place, titles in located:
        placed = PlacedRemark(remark.kind, remark.text)
        placed = by_text.setdefault(remark.text, placed)
        if placed.heading == _HEADINGS.get(remark.kind, SERIOUS):
            placed.places.extend({place}.difference(placed.places))
            placed.scores.extend(t for t in titles if t not in placed.scores)
    return sorted(by_text.values(), key=lambda placed: HEADINGS.index(placed.heading))
