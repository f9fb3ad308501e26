"""``doctor --benchmark``: runs each task with models whose answers are known, and checks what was saved.

What a run itself refuses or can't compute is a finding as it stands.
"""

from __future__ import annotations

import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lm_eval_bias.core import catalog, registry
from lm_eval_bias.core.benchmark import REQUIRED, folder_of, options_for, read_card
from lm_eval_bias.core.catalog import Entry
from lm_eval_bias.core.errors import FAULTS, BiasError, did_you_mean, kind_of
from lm_eval_bias.core.numbers import grouped, join_some
from lm_eval_bias.core.run_data import TaskRun
from lm_eval_bias.core.synthetic_bias import Dial
from lm_eval_bias.core.wording import LARGE_SHARE
from lm_eval_bias.custom_metrics.score import OUTSIDE
from lm_eval_bias.evaluation import steps
from lm_eval_bias.harness import internals
from lm_eval_bias.runs import integrity, rescoring, run_discovery

if TYPE_CHECKING:
    from lm_eval_bias.harness.task import BiasTask

DOCUMENTS = 120  # of a task that are answered, where its scores don't need more
STRENGTHS = (0.4, -0.4)  # of the bias that is simulated, either way
_SHARE = 0.25  # of the synthetic difference that must come back from so few documents
_LARGE = 0.2  # the share of its range by which a score has to move for that
_ERRORS = 4.0  # standard errors by which random answers may differ from chance

Texts = Iterator[str]
Finding = tuple[str, str]  # ok, note or problem, and what it is


class Trial(NamedTuple):
    """A task with the runs that were made of it.

    Attributes:
        entry: Its entry in the catalogue.
        task: As the harness has it.
        random: Random answers.
        biased: Answers with a synthetic bias, either way; none if the benchmark has none.
        right: Right answers without a bias; none if the benchmark has no synthetic bias.
    """

    entry: Entry
    task: BiasTask
    random: TaskRun
    biased: Sequence[TaskRun]
    right: Sequence[TaskRun]


def examine(name: str) -> Iterator[Finding]:
    """Yield the findings about a benchmark and its variants, each once, with its tasks.

    Raises:
        BiasError: There is none of that name.
    """
    family = registry.get(name).family
    paths = sorted(folder_of(family).glob("*.yaml"))
    found = grouped((each, path.stem) for path in paths for each in _findings(path))
    for (status, text), tasks in sorted(found.items()):
        yield status, f"{join_some(tasks)}: {text}"
    if all(status == "note" for status, _ in found):
        ran = sum(map(_can_run, map(catalog.entry_of, paths)))
        yield "ok", f"{family.name}: no mistake found; tasks that were run: {ran}"


def _can_run(entry: Entry) -> bool:
    return not entry.members and not options_for(entry.definition, REQUIRED)


def _findings(path: Path) -> Iterator[Finding]:
    """Check a task or group, up to an error, which is a finding, too."""
    try:
        entry = catalog.entry_of(path)
        for text in _of_file(entry):
            yield "problem", text
        if not _can_run(entry):
            if not entry.members:
                yield "note", "not run (it needs a file of the user's)"
            return
        if entry.definition.synthetic_bias is None:
            text = "whether its scores follow a bias wasn't checked: add one (Benchmark.synthetic_bias)"
            yield "note", text
        trial = _try(entry)
        for check in CHECKS:
            for text in check(trial):
                yield "problem", text
    except Exception as error:  # other people's code can fail in any way
        text = kind_of(error).removeprefix(f"{path}: ").removeprefix(f"{path.stem}: ")
        for frame in traceback.extract_tb((error.__cause__ or error).__traceback__):
            if Path(frame.filename).parent == path.parent:
                text = f"{Path(frame.filename).name}:{frame.lineno}: {kind_of(error)}"
        yield "problem", text


def _unknown(what: str, names: Sequence[str], known: Sequence[str]) -> Texts:
    for name in names:
        if name not in known:
            yield f"{what} {name!r} is unknown.{did_you_mean(name, known)}"


def _of_file(entry: Entry) -> Texts:
    """Find a name that is taken, and unknown tasks of a group."""
    read_card(entry.definition)
    known = catalog.packaged()
    there = known.get(entry.name, entry)
    if there.path != entry.path:
        place = there.path or "the harness"
        raise BiasError(f"there is already a task {there.name}, in {place}")
    yield from _unknown("its task", entry.members, list(known))


def _try(entry: Entry) -> Trial:
    """Run a task with random answers, and with simulated ones where its benchmark says how."""
    task = _build(entry)
    if _build(entry).eval_docs != task.eval_docs:
        raise BiasError(
            "its documents are others each time: what is drawn needs a seed"
        )
    count = min(max(DOCUMENTS, entry.smallest or 0), len(task.eval_docs))
    random = _run(entry, count, "bias-chance")
    if entry.definition.synthetic_bias is None:
        return Trial(entry, task, random, (), ())
    simulated = partial(_run, entry, count, "bias-dial", noise=0.0)
    biased = [simulated(strength=strength) for strength in STRENGTHS]
    right = [simulated(strength=0.0, competence=1.0)]
    return Trial(entry, task, random, biased, right)


def _build(entry: Entry) -> BiasTask:
    manager = internals.task_manager([entry.path.parent])
    task: BiasTask = manager.load([entry.name])["tasks"][entry.name]
    return task


def _run(entry: Entry, count: int, model: str, **arguments: float) -> TaskRun:
    """Run a task's first documents, and read it as every command does.

    Raises:
        BiasError: The run or a part of the benchmark failed, or scores don't follow from the saved answers.
    """
    known = list(FAULTS)
    with tempfile.TemporaryDirectory() as folder:
        flags = {
            "model": model,
            "model_args": arguments,
            "tasks": [entry.name],
            "samples": {entry.name: list(range(count))},
            "output_path": folder,
            "log_samples": True,
        }
        steps.evaluate(steps.RunRequest(flags))
        found = [text for text in FAULTS if text not in known]
        for text in found:  # which is said here
            del FAULTS[text]
        if found:
            raise BiasError(f"{model}: {found[0].removeprefix(f'{entry.name}: ')}")
        (run,), _ = run_discovery.read([folder])
        made = run.tasks[entry.name]
        if made.answers is None:
            raise BiasError(
                "record(): what it returns can't be saved as the run's answers"
            )
        lines = integrity.differences(made.scores, rescoring.recompute(made))
        if lines:
            raise BiasError(f"rescore gives other scores than run: {lines[0]}")
    return made


def names(trial: Trial) -> Texts:
    """Find unknown primary and main scores."""
    definition = trial.entry.definition
    known = list(trial.random.scores)
    primary = catalog.primary(trial.entry.name, definition)
    yield from _unknown("primary: the score", primary, known)
    every = [*known, *(score.name for score in definition.scores())]
    main = (*definition.main, *definition.presentation.beside_main)
    yield from _unknown("main: the score", main, every)


def keys(trial: Trial) -> Texts:
    """Find documents with the same key."""
    counts = Counter(map(trial.entry.definition.key, trial.task.eval_docs))
    key, count = counts.most_common(1)[0]
    if count > 1:
        yield f"{count} documents are {', '.join(key)}: give each an id of its own (or Benchmark.key)"


def n_items(trial: Trial) -> Texts:
    """Find a number of documents that differs from the YAML's."""
    count = len(trial.task.eval_docs)
    if trial.entry.items not in (None, count):
        yield f"n_items is {trial.entry.items}, but there are {count} documents"


def values(trial: Trial) -> Texts:
    """Find main scores without a value, outside of their interval, or that rest on one cluster."""
    for value in trial.random.main():
        low, high = value.interval or (value.value, value.value)
        if not low - OUTSIDE <= value.value <= high + OUTSIDE:
            text = f"it is {value.value:g} of random answers, its interval {low:g} to {high:g}"
            yield f"{value.name}: {text} {value.note}".rstrip()
        elif value.clusters == 1:
            yield f"{value.name}: all its items are one cluster: an interval needs several"


def guessed(trial: Trial) -> Texts:
    """Find abilities whose chance level isn't what random answers give."""
    for value in trial.random.main():
        if value.chance is None:
            continue
        room = LARGE_SHARE * (value.high - value.low)
        if abs(value.value - value.chance) > max(room, _ERRORS * value.stderr):
            yield f"{value.name}: random answers give {value.value:.3g}, its chance is {value.chance:g}"


def competent(trial: Trial) -> Texts:
    """Find abilities that a model with only right answers doesn't reach."""
    for run in trial.right:
        for value in run.main():
            best = value.high if value.neutral is None else value.neutral
            is_far = abs(value.value - best) > _SHARE * (value.high - value.low)
            if value.chance is not None and is_far:
                yield f"{value.name}: a model that is always right gets {value.value:.3g}, not {best:g}"


def follows(trial: Trial) -> Texts:
    """Find scores that don't follow a simulated bias, in either direction."""
    synthetic = trial.entry.definition.synthetic_bias
    if synthetic is None:
        return
    writes = trial.entry.asks == ("generate_until",)
    docs = trial.task.eval_docs[: trial.random.documents]
    more, less = (
        synthetic.expected(docs, Dial(strength, noise=0.0, writes=writes))
        for strength in STRENGTHS
    )
    above, below = (run.scores for run in trial.biased)
    for name, value in above.items():
        promised = more.get(name, 0.0) - less.get(name, 0.0)
        moved = value.value - below[name].value
        is_large = abs(promised) > _LARGE * (value.high - value.low)
        if is_large and not moved / promised >= _SHARE:
            yield f"{name}: a synthetic bias should move it by {promised:.3g}, but moves it by {moved:.3g}"


def unparsed(trial: Trial) -> Texts:
    """Find synthetic texts whose answers aren't extracted."""
    for run in trial.biased:
        value = run.scores.get("unanswered")
        if value and value.value > 1.0 - LARGE_SHARE:
            yield f"unanswered: it is {value.value:.2g} of synthetic answers, which do answer: check how texts are read"


CHECKS = (names, keys, n_items, values, guessed, competent, follows, unparsed)
