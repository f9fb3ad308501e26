"""Diagnostics: what to know about a run before believing its scores. Reports, boards and gates read this one list."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
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
from lm_eval_bias.core.run_data import Run, TaskRun, Value
from lm_eval_bias.core.verdicts import Attenuates, Creates, Diagnostic
from lm_eval_bias.core.wording import LARGE_SHARE, answered
from lm_eval_bias.custom_metrics import positions
from lm_eval_bias.custom_metrics.score import joined
from lm_eval_bias.harness import servers
from lm_eval_bias.runs import measurement

TRIAL = "trial_run"
CUT_PROMPTS, ALIKE = ("cut_prompts", "same_draws")
POSITION, LENGTH = ("position_bias", "length_bias")
# codes that stand in front of a task's scores, most serious first
BEFORE_SCORES = (
    TRIAL, CUT_PROMPTS, "chance_level", "below_chance", "unshown_ability", "saturated", "low_coverage", ALIKE,
    "unanswered", POSITION, LENGTH,
)  # fmt: skip
# of models that are near neutral because they know or say nothing
EMPTY = ("chance_level", "below_chance", "unshown_ability", "unanswered")
# of what a benchmark says of its answers, that by which its scores of bias are pulled towards neutral
ATTENUATING = ("saturated", "low_coverage")
# codes about where a run's answers came from, which policies may refuse
ORIGIN_KINDS = WEIGHTS, CACHED = ("unproven_weights", "cached_answers")
# headings of the kinds, by weight: about the numbers themselves, how they were made, what single ones lack
SERIOUS, SETTING, NOTE = HEADINGS = (
    "Read before the numbers",
    "How the runs were made",
    "Notes on single scores",
)
_HEADINGS = {
    **dict.fromkeys(
        (
            "changed_options", "custom_data", "tokenization_boundary", "suite_part", "repeated_prompts", *ORIGIN_KINDS,
            "unfinished_texts", "blocked_texts", "failed_texts", "long_texts",
        ),
        SETTING,
    ),
    "score_note": NOTE,
}  # fmt: skip
# of texts, by how they ended
_ENDS = {
    "unfinished": "were cut before they said an answer, and count as unanswered: raise max_gen_toks= (--gen_kwargs)",
    "blocked": "were blocked by a filter or refused by the server, and count as refusals",
    "failed": "are none, since the server refused the prompt with an error: they count as unanswered",
    "long": f"have over {LONGEST_READ:,} characters: but for thoughts, the first and last half of these are read",
}
_RANDOM = {"bias-chance", servers.DUMMY}  # model types that answer at random
_FEW_GROUPS = 5
_WIDE = 0.5


def about_answers(task: TaskRun) -> Iterator[Diagnostic]:
    """Yield the benchmark's diagnostics and those of its answers: too few, guesses, missing."""
    benchmark: Benchmark = task.definition
    diagnostics: Iterable[str | Diagnostic] = call_plugin(
        (), benchmark, benchmark.presentation.diagnostics, task
    )
    for diagnostic in diagnostics:
        if isinstance(diagnostic, str):
            diagnostic = Diagnostic("of_benchmark", diagnostic)
        if diagnostic.code in ATTENUATING:
            effects = attenuated(task)
            about = diagnostic.scores or effects
            effects = {
                name: effect for name, effect in effects.items() if name in about
            }
            diagnostic = replace(diagnostic, effects=effects)
        yield diagnostic
    for check in ANSWER_CHECKS:
        yield from check(task)
    if not task.scores and task.withheld:
        yield Diagnostic("of_benchmark", task.withheld)


def _of_bias(task: TaskRun) -> list[Value]:
    """List the scores of bias."""
    own = (positions.PREFIX, positions.SHORTER)
    return [
        value
        for value in task.scores.values()
        if value.neutral is not None and value.higher_is_better is None
        if not value.name.startswith(own)
    ]


def attenuated(task: TaskRun, share: float = 1.0) -> dict[str, Attenuates | Creates]:
    """Return the attenuation of all bias scores where a share of the answers can't show a bias."""
    return {value.name: Attenuates(share) for value in _of_bias(task)}


def trial_run(task: TaskRun) -> Iterator[Diagnostic]:
    """Yield a diagnostic if only a part of the items was run."""
    part = trial(task)
    if part:
        text = (
            f"a limited run: {part}; use its numbers only to try things out, and compare them only with a run limited "
            "in the same way"
        )
        yield Diagnostic(TRIAL, text, f"trial run, {part}")


def ability(task: TaskRun) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each ability that isn't shown to exceed guessing."""
    model = task.record.model.kind
    telling = [value for value in task.scores.values() if value.floor is not None]
    if model in _RANDOM:
        text = f"chance level: {model} answers at random"
        # where nothing has to be understood, a random answer is one without a bias
        biases = _of_bias(task) if telling else []
        effects = {value.name: Creates(share=1.0) for value in biases}
        yield Diagnostic("chance_level", text, effects=effects)
        return
    share = answered(task)
    for value in telling if share else ():
        yield from _against_guessing(task, value, share)


def _against_guessing(
    task: TaskRun, value: Value, share: float
) -> Iterator[Diagnostic]:
    """Yield a diagnostic if an ability isn't above its chance level among the answered items."""
    assert value.floor is not None
    effects = attenuated(task)
    if math.isnan(value.value):
        text = f"ability not shown: {value.note or f'{value.name} has no value'}"
        yield Diagnostic("unshown_ability", text, effects=effects)
        return
    share = 1.0 if value.of_answers else share
    guess = value.floor * share
    low, high = value.interval or (value.value, value.value)
    if low > guess:
        return
    of = f" of the {100 * share:.0f}% that were answered" if share < 1 else ""
    guessed = f"by guessing{of} {numbers.number(guess / share, value.unit)}"
    counted = (
        f"{numbers.count(value.n)} {'named answers' if value.of_answers else 'items'}"
    )
    code, says = "chance_level", "not shown to be better than a guess"
    if high < guess and value.higher_is_better is not None:
        code, says = "below_chance", "below chance"
    brief = f"{says} ({counted})"
    text = f"{brief}: {value.name} {numbers.cell(value)}, {guessed}"
    yield Diagnostic(code, text, brief, effects=effects)


def position_bias(task: TaskRun) -> Iterator[Diagnostic]:
    """Yield a diagnostic if a model chooses one letter or position more often than its share.

    The smallest share tells how many answers at most don't go by the position: with k positions, k times as many.
    """
    shares = [v for v in task.scores.values() if v.name.startswith(positions.PREFIX)]
    known = [(v, v.interval) for v in shares if v.interval and v.neutral is not None]
    if not any(low > (value.neutral or 0) for value, (low, _) in known):
        return
    most = max((value for value, _ in known), key=lambda value: value.value)
    by_position = 1 - len(known) * min(low for _, (low, _) in known)
    effects = attenuated(task, min(1.0, by_position))
    for value in _of_bias(task):
        if positions.UNBALANCED in value.note:
            effects[value.name] = Creates()
    brief = f"position bias ({most.title} in {100 * most.value:.0f}%)"
    text = f"{brief}: {100 * (most.neutral or 0):.0f}% if the positions of the options played no part"
    yield Diagnostic(POSITION, text, brief, effects=effects)


def length_bias(task: TaskRun) -> Iterator[Diagnostic]:
    """Yield a diagnostic if a model prefers the shorter or the longer of two texts."""
    share = task.scores.get(positions.SHORTER)
    if share is None or share.interval is None:
        return
    low, high = share.interval
    if low <= 0.5 <= high:
        return
    end = ("shorter", share.value) if share.value > 0.5 else ("longer", 1 - share.value)
    brief = f"length bias (takes the {end[0]} text in {100 * end[1]:.0f}%)"
    text = f"{brief}: 50% of {numbers.count(share.n)} items if the lengths of the texts played no part"
    matched = {
        name.removeprefix(positions.MATCHED): value
        for name, value in task.scores.items()
        if name.startswith(positions.MATCHED)
    }
    by_length = min(1.0, 1 - 2 * min(low, 1 - high))
    effects: dict[str, Attenuates | Creates] = {}
    for value in _of_bias(task):
        sensitive = [name for name in matched if name in value.name]
        if not sensitive or value.name.startswith(positions.MATCHED):
            continue
        effects[value.name] = Attenuates(by_length)
        if any(positions.UNEVEN in matched[name].note for name in sensitive):
            wholes = [name for name in sensitive if value.name.startswith(name)]
            alike = matched[max(wholes, key=len)] if wholes else None
            effects[value.name] = Creates(alike, "items of equal length", by_length)
    yield Diagnostic(LENGTH, text, brief, scores=list(effects), effects=effects)


def unanswered(task: TaskRun) -> Iterator[Diagnostic]:
    """Yield a diagnostic if many items are unanswered."""
    share = answered(task)
    if share >= 1 - LARGE_SHARE:
        return
    brief = f"{100 * (1 - share):.0f}% of the items are unanswered"
    refused = task.scores.get("refused")
    if refused and not math.isnan(refused.value):
        brief += f" ({100 * refused.value:.0f}% refused)"
    means = "they count as no bias or are left out, so that the scores say less than they seem to"
    if not share:
        means = "the scores say nothing about bias"
    effects = attenuated(task, 1 - share)
    yield Diagnostic("unanswered", f"{brief}: {means}", brief, effects=effects)


def about_texts(task: TaskRun) -> Iterator[Diagnostic]:
    """Yield diagnostics of truncated prompts and of truncated, blocked or identical texts."""
    cut = task.metadata.get(CUT_PROMPTS)
    if cut:
        brief = f"{cut['documents']:,} of {task.documents:,} prompts were cut"
        yield Diagnostic(
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
        yield Diagnostic(ALIKE, f"{brief}: {advice}", brief)
    for name, says in _ENDS.items():
        if texts.get(name):
            share = 100 * texts[name] / texts["texts"]
            count = f"{texts[name]:,} of {texts['texts']:,} texts ({share:.2g}%)"
            yield Diagnostic(f"{name}_texts", f"{count} {says}")


# of a task's answers, in the order in which they are listed
ANSWER_CHECKS = (
    trial_run, ability, position_bias, length_bias, unanswered, about_texts,
)  # fmt: skip


def _about_intervals(task: TaskRun) -> Iterator[Diagnostic]:
    groups = [value.clusters for value in task.main() if value.clusters]
    if groups and min(groups) <= _FEW_GROUPS:
        yield Diagnostic(
            "few_groups",
            f"few independent groups of items ({min(groups)}): the intervals rest on little evidence",
        )
    for value in task.main():
        if value.interval is not None and 0 < value.high - value.low < math.inf:
            share = (value.interval[1] - value.interval[0]) / (value.high - value.low)
            if share > _WIDE:
                yield Diagnostic(
                    "wide_interval",
                    f"the interval of {value.name} covers {100 * share:.0f}% of its range: it says next to nothing",
                )


def _about_repetition(task: TaskRun) -> Iterator[Diagnostic]:
    different = task.inputs.get("different_prompts", task.documents)
    if different < task.documents:
        text = (
            f"{different:,} different prompts for {task.documents:,} items: an item that occurs again adds no "
            "evidence, and the intervals, which go by templates, don't count it as such"
        )
        yield Diagnostic("repeated_prompts", text)


def _about_options(task: TaskRun) -> Iterator[Diagnostic]:
    if _is_part_of_a_suite(task):
        yield Diagnostic(
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
        yield Diagnostic(
            "changed_options",
            f"departs from the defaults, and so perhaps from the paper: {listing}",
        )
    for option in changed:
        kind = "custom_data" if option.name == "dataset" else "changed_options"
        if option.problem:
            yield Diagnostic(kind, option.problem)


def about_origin(run: Run) -> Iterator[Diagnostic]:
    """Yield diagnostics of unproven weights and of cached answers."""
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
        yield Diagnostic(WEIGHTS, text)
    caches = [record.cache for record in run.records if record.cache]
    if caches:
        counts = "; ".join(f"{cache.answers:,} of {cache.begun}" for cache in caches)
        origin = "answers came from a file of --use_cache, which was begun on that day"
        yield Diagnostic(CACHED, f"{counts}: {origin}")


def of_task(run: Run, task: TaskRun) -> Iterator[Diagnostic]:
    """Yield all diagnostics of a task of a run."""
    yield from about_origin(run)
    yield from about_answers(task)
    yield from _about_intervals(task)
    yield from _about_repetition(task)
    yield from _about_options(task)
    for value in task.scores.values():
        if value.note:
            yield Diagnostic("score_note", value.note, scores=[value.name])


def applied(run: Run) -> Run:
    """Return the run with diagnostics attached to its tasks and scores."""
    tasks = {}
    for name, task in run.tasks.items():
        found = [one for one in about_answers(task) if one.code in BEFORE_SCORES]
        found.sort(key=lambda one: BEFORE_SCORES.index(one.code))
        scores = dict(task.scores)
        for score, value in scores.items():
            about = [one for one in found if score in one.effects]
            if about or value.diagnostics:
                scores[score] = replace(value, diagnostics=about)
        tasks[name] = replace(task, scores=scores, diagnostics=found)
    return replace(run, tasks=tasks)


def without(run: Run, codes: Collection[str]) -> Run:
    """Return the run without the diagnostics of some codes."""
    tasks = {}
    for name, task in run.tasks.items():
        scores = dict(task.scores)
        for score, value in scores.items():
            left = [one for one in value.diagnostics if one.code not in codes]
            scores[score] = replace(value, diagnostics=left)
        tasks[name] = replace(task, scores=scores)
    return replace(run, tasks=tasks)


def _is_part_of_a_suite(task: TaskRun) -> bool:
    """Return whether a suite chose the items."""
    return "documents" in (task.metadata.get("suite") or {})


def trial(task: TaskRun) -> str:
    """Describe the part of the items or samples that was run; empty for all, or a suite's."""
    if _is_part_of_a_suite(task):
        return ""
    parts = [measurement.items_run(task)]
    if task.fewer_samples:
        parts.append("{} of {} samples per prompt".format(*task.fewer_samples))
    return ", ".join(filter(None, parts))


def trials(tasks: Iterable[TaskRun]) -> str:
    """List the tasks of which a part was run, with that part; empty if all were run whole."""
    places = numbers.grouped((trial(task), task.task) for task in tasks)
    places.pop("", None)
    return "; ".join(
        f"{part} of {numbers.join_some(names, 3)}" for part, names in places.items()
    )


@dataclass(frozen=True)
class PlacedDiagnostic:
    """A diagnostic with its tasks and scores.

    Attributes:
        code: Its code.
        message: What it says.
        places: Tasks that it is about, with their run where there are several.
        scores: Scores that it is about, if not all.
    """

    code: str
    message: str
    places: list[str] = field(default_factory=list)
    scores: list[str] = field(default_factory=list)

    @property
    def heading(self) -> str:
        """One of :data:`HEADINGS`."""
        return _HEADINGS.get(self.code, SERIOUS)

    @property
    def scope(self) -> str:
        """Places and scores for people."""
        about = "".join(self.scores)
        if len(self.scores) > 1:
            about = f"scores {numbers.join_some(self.scores)}"
        return joined(numbers.join_some(self.places), about)


def of_runs(runs: Sequence[Run]) -> list[PlacedDiagnostic]:
    """Return all diagnostics of some runs, serious ones first, merged by message.

    A note on a score that repeats another one is left out.
    """
    located = []
    for run in runs:
        before = f"{run.name}: " if len(runs) > 1 else ""
        for task in run.tasks.values():
            for one in of_task(run, task):
                main = [
                    value.title for value in task.main() if value.name in one.scores
                ]
                titles = main or [task.scores[name].title for name in one.scores]
                located.append((one, f"{before}{task.task}", titles))
    for run in runs:
        for record in run.records:
            tokenization_boundary = "; ".join(record.prompt.tokenization_boundary)
            if tokenization_boundary:
                found = Diagnostic("tokenization_boundary", tokenization_boundary)
                located.append((found, run.name, []))
    located.sort(key=lambda found: found[0].code == "score_note")
    by_text: dict[str, PlacedDiagnostic] = {}
    for one, place, titles in located:
        placed = PlacedDiagnostic(one.code, one.message)
        placed = by_text.setdefault(one.message, placed)
        if placed.heading == _HEADINGS.get(one.code, SERIOUS):
            placed.places.extend({place}.difference(placed.places))
            placed.scores.extend(t for t in titles if t not in placed.scores)
    return sorted(by_text.values(), key=lambda placed: HEADINGS.index(placed.heading))
