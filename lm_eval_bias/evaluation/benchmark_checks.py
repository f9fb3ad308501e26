"""``doctor --benchmark``: what is wrong with a benchmark, found with random and planted answers, without a model.

Every mistake is one line that begins with its place: file, task, document or score.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

from lm_eval_bias.core import catalog, registry
from lm_eval_bias.core.benchmark import REQUIRED, Benchmark, options_for
from lm_eval_bias.core.errors import BiasError, did_you_mean, kind_of
from lm_eval_bias.core.page_parts import ReportTask
from lm_eval_bias.core.planting import Dial, Planting
from lm_eval_bias.core.run_data import Published, Run, TaskRun, Value
from lm_eval_bias.custom_metrics.score import Estimate, Score
from lm_eval_bias.data.sources import fetch
from lm_eval_bias.evaluation import suites
from lm_eval_bias.harness import internals, linking
from lm_eval_bias.models.chance import ChanceLM
from lm_eval_bias.models.dial import DialLM
from lm_eval_bias.runs.soundness import ROUNDING

DOCUMENTS = 120  # of a task that are answered
STRENGTH = 0.4  # of the bias that is planted, either way
_SHARE = 0.25  # of the planted difference that must come back from so few documents


class Examination:
    """What is found out about one benchmark: its mistakes, and what couldn't be checked."""

    def __init__(self, name: str) -> None:
        """Examine the benchmark of that name, with its variants."""
        family = registry.family(name)
        if family is None:
            raise BiasError(f"no benchmark named {name!r}.{did_you_mean(name, registry.by_name())}")
        self.family = family
        self.members = {own.name: own for own in (family, *family.variants)}
        self.mistakes: dict[str, None] = {}
        self._of_scores: set[tuple[str, str]] = set()
        self.notes: list[str] = []
        self.entries: dict[str, catalog.Entry] = {}
        self.scores: dict[str, dict[str, Score]] = {}  # by task
        self.planted: dict[str, None] = {}  # scores that a planting speaks of
        self._read_files()
        for entry in (one for one in self.entries.values() if one.kind == "task" and one.path):
            self._task(entry)
        for own in self.members.values():
            self._names(own)
        every = {name for own in self.scores.values() for name in own}
        self._are_known("planting.expected", "the score", self.planted, every)
        for row in self.attempt(family.name, "published()", lambda: list(family.published())) or ():
            self._published(row)

    def add(self, place: str, text: str) -> None:
        """Note a mistake once."""
        self.mistakes[f"{place}: {text}"] = None

    def of_score(self, task: str, score: str, text: str) -> None:
        """Note a mistake of a task's score; not again for its breakdowns."""
        if (task, text) not in self._of_scores:
            self._of_scores.add((task, text))
            self.add(f"{task}: {score}", text)

    def attempt(self, place: str, what: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """What a function of the benchmark, or the making of one of its tasks, returns; ``None`` where it fails."""
        try:
            return function(*arguments)
        except Exception as error:  # other people's code can fail in any way
            self.add(place, f"{what} failed ({kind_of(error)})" if what else kind_of(error))
            return None

    def _read_files(self) -> None:
        for path in sorted(self.family.folder.glob("*.yaml")):
            try:
                entry = catalog.entry_of(path)
            except BiasError as error:
                self.mistakes[str(error)] = None
                continue
            there = self.entries.get(entry.name) or catalog.packaged().get(entry.name)
            if there is not None and there.path != path:
                self.add(str(path), f"there is already a task {entry.name}, in {there.path or 'the harness'}")
            elif entry.benchmark not in self.members:
                self.add(str(path), f"its benchmark is {entry.benchmark}: it must be one of {', '.join(self.members)}")
            else:
                self.entries[entry.name] = entry
        described = {name for own in self.members.values() for name in own.harness_tasks}
        self.entries |= {name: catalog.packaged()[name] for name in described & set(catalog.packaged())}
        for entry in self.entries.values():
            self._are_known(str(entry.path), "its task", entry.members, self.entries)
        if not self.entries:
            self.add(str(self.family.folder), "there is no task YAML beside the benchmark's module")

    def _are_known(self, place: str, what: str, names: Iterable[str], known: Iterable[str]) -> None:
        for name in names:
            if name not in known:
                self.add(place, f"{what} {name!r} is unknown.{did_you_mean(name, known)}")

    def _names(self, own: Benchmark) -> None:
        """Check the names in a benchmark's tables, and what belongs to them."""
        tasks = [name for name, entry in self.entries.items() if entry.benchmark == own.name]
        scores = {score.name: score for score in self.attempt(own.name, "scores()", own.scores) or ()}
        for task in tasks:
            scores |= self.scores.get(task, {})
        knowledge, chance = own.knowledge or ("", math.nan)
        named = {"main": own.main, "knowledge": [knowledge], "unanswered": [own.unanswered]}
        for table, names in named.items() if tasks else ():
            self._are_known(f"{own.name}.{table}", "the score", filter(None, names), scores)
        for suite, part in suites.definitions(self.family).items():
            self._are_known(f"{suites.FILE}: {suite}", "the task", part.get("tasks", ()), self.entries)
        if knowledge in scores and not scores[knowledge].low <= chance <= scores[knowledge].high:
            self.add(f"{own.name}.knowledge", f"{chance} is outside of the range of {knowledge}")

    def _published(self, row: Published) -> None:
        place, known = f"published: {row.task}, {row.model}", self.scores.get(row.task) or {}
        self._are_known(place, "the task", [row.task], self.entries)
        self._are_known(place, "the score", row.cells if known else (), known)
        for name in (name for name in row.cells if name in known):
            value, score = row.cells[name].value, known[name]
            if value < score.low or value > score.high:
                self.add(place, f"{name} is {value:g}, outside of {score.low:g} to {score.high:g}")

    def _task(self, entry: catalog.Entry) -> None:
        """Check a task as far as it can be built and run."""
        own, name = self.members[entry.benchmark], entry.name
        try:
            if options_for(own, REQUIRED):
                raise BiasError("it needs a file of the user's")
            if entry.data:
                fetch([entry.data])
        except BiasError as error:
            self.notes.append(f"{name}: not run ({error})")
            return
        folders = {str(self.family.folder)}.intersection(linking.missing_folders())
        manager = internals.task_manager(sorted(folders), {}, include_defaults=False)
        task = self.attempt(str(entry.path), "", lambda: manager.load([name])["tasks"][name])
        if task is None:
            return
        docs: Sequence[dict[str, Any]] = task.eval_docs
        if entry.items not in (None, len(docs)):
            self.add(str(entry.path), f"n_items is {entry.items}, but there are {len(docs)} documents")
        keys: dict[tuple[str, ...], int] = {}
        for place, doc in enumerate(docs):
            if (first := keys.setdefault(own.key(doc), place)) != place:
                self.add(name, f"documents {first} and {place} have the same id: {', '.join(own.key(doc))}")
                break
        self.scores[name] = {score.name: score for score in task.scores}
        build = partial(task.build_all_requests, rank=0, world_size=1, limit=DOCUMENTS)
        self.attempt(name, "asking its documents", build)
        asked = [docs[place] for place in sorted({one.doc_id for one in task.instances or ()})]
        written = self.attempt(name, "writing its documents as JSON", lambda: json.loads(json.dumps(asked))) or []
        pairs = zip(asked, written, strict=False)
        for field in dict.fromkeys(key for doc, other in pairs for key in doc if doc[key] != other.get(key)):
            self.add(name, f"the field {field!r} of its documents isn't the same once it was written as JSON")
        if asked and (values := self._answered(task, "random answers", ChanceLM())):
            if planting := self.attempt(name, "planting", lambda: own.planting):
                self._planted(task, planting, asked, entry.asks == ("generate_until",))
            self._pages(own, entry, docs[0], values)

    def _planted(self, task: Any, planting: Planting, docs: Sequence[Mapping[str, Any]], writes: bool) -> None:
        """Check that scores follow a bias that is planted, one way and the other."""
        name, expected, found = str(task.config.task), [], []
        for strength in (STRENGTH, -STRENGTH):
            found.append(self._answered(task, "planted answers", DialLM(strength, noise=0.0)))
            dial = Dial(strength, noise=0.0, writes=writes)
            expected.append(self.attempt(name, "planting.expected()", planting.expected, docs, dial) or {})
        self.planted |= dict.fromkeys(expected[0])
        for score in (score for score in expected[0] if all(score in side for side in (*expected, *found))):
            promised = expected[0][score] - expected[1][score]
            given = found[0][score].value - found[1][score].value
            span = self.scores[name][score].high - self.scores[name][score].low
            if abs(promised) > 0.1 * span and given * promised < _SHARE * promised**2:
                text = f"a planted bias should move it by {promised:.3g}, but moves it by {given:.3g}"
                self.of_score(name, score, text)

    def _answered(self, task: Any, what: str, model: Any) -> dict[str, Value]:
        """Check the scores of a model's answers to a task; the values, empty where there are none."""
        own, name = task.benchmark, str(task.config.task)
        answers = self.attempt(f"{name}: {what}", "the requests", _answers, task, model) or {}
        docs, given = [task.eval_docs[place] for place in answers], list(answers.values())
        estimates = self._estimates(task, what, docs, given)
        values: dict[str, Value] = {}
        for score in (score for score in task.scores if score.name in estimates):
            value = values[score.name] = Value.of(score, estimates[score.name])
            highest = max(score.high, score.high if score.largest is None else score.largest)
            if value.value < score.low - ROUNDING or value.value > highest + ROUNDING:
                span = f"outside of its range of {score.low:g} to {score.high:g}"
                self.of_score(name, score.name, f"it is {value.value:g}, {span} (of {what})")
        if len(values) < len(task.scores):
            return {}
        if all(isinstance(one, tuple) and len(one) == 2 for ones in given for one in ones):  # log-likelihoods
            silent = [[(math.nan, False)] * len(ones) for ones in given]
            unknown = self._estimates(task, "nan as an answer", docs, silent)
            for score in (score for score in own.main if score in unknown):
                if not math.isnan(number := unknown[score].value):
                    self.of_score(name, score, f"it is {number:g} where the model gave nan: it must be nan")
        return values

    def _estimates(self, task: Any, what: str, docs: list[Any], answers: list[Any]) -> dict[str, Estimate]:
        """A task's scores of some answers, but for those that fail."""
        name, estimates = str(task.config.task), {}
        pairs = zip(docs, answers, strict=True)
        made = self.attempt(f"{name}: {what}", "record()", lambda: [task.benchmark.record(*pair) for pair in pairs])
        for score in task.scores if made else ():
            try:
                [score.contribution(record) for record in made or ()]
                estimates[score.name] = score.compute(made or [])
            except Exception as error:  # other people's code can fail in any way
                self.of_score(name, score.name, f"the score of {what} failed ({kind_of(error)})")
        return estimates

    def _pages(self, own: Benchmark, entry: catalog.Entry, doc: Mapping[str, Any], values: Mapping[str, Value]) -> None:
        """Check what readers of pages get."""
        metadata = {**entry.metadata, "lm_eval_bias": ""}
        task = TaskRun(entry.name, own.name, entry.language, "", DOCUMENTS, entry.items or 0, metadata, values)
        shown = ReportTask(Run("a model", Path("results.json"), {}, "", {}), task, entry.name, 0, "r1t1")
        self.attempt(entry.name, "cautions()", lambda: list(own.cautions(task)))
        self.attempt(entry.name, "figures()", self.family.figures, [shown])
        for name, argument in {"sentences": task, "withheld": task, "facets": doc}.items():
            self.attempt(entry.name, f"{name}()", getattr(own, name), argument)


def _answers(task: Any, model: Any) -> dict[int, list[Any]]:
    """A model's answers to a task's requests, by document."""
    by_kind = attrgetter("request_type")
    for one in task.instances:
        one.resps, one.filtered_resps = [], {}
    for kind, instances in groupby(sorted(task.instances, key=by_kind), key=by_kind):
        asked = [one for one in instances for _ in range(one.repeats)]
        for one, answer in zip(asked, getattr(model, kind)(asked), strict=True):
            one.resps.append(answer)
    task.apply_filters()
    answers: dict[int, list[Any]] = {}
    for one in sorted(task.instances, key=attrgetter("doc_id", "idx")):
        answers.setdefault(one.doc_id, []).append(next(iter(one.filtered_resps.values())))
    return answers
