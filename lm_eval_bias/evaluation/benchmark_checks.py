"""``doctor --benchmark``: what is wrong with a benchmark, found with random and planted answers, without a model.

Every mistake is one line that begins with its place: file, task, document or score.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Any

from lm_eval_bias.core import catalog, registry
from lm_eval_bias.core.benchmark import REQUIRED, Benchmark, options_for
from lm_eval_bias.core.errors import BiasError, did_you_mean, kind_of
from lm_eval_bias.core.planting import Dial, Planting
from lm_eval_bias.core.run_data import Value
from lm_eval_bias.custom_metrics.score import Score
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
            raise BiasError(
                f"no benchmark named {name!r}.{did_you_mean(name, registry.by_name())}"
            )
        self.family = family
        self.members = {own.name: own for own in (family, *family.variants)}
        self.mistakes: dict[str, None] = {}
        self._of_scores: set[tuple[str, str]] = set()
        self.notes: list[str] = []
        self.entries: dict[str, catalog.Entry] = {}
        self.scores: dict[str, dict[str, Score]] = {}  # by task
        self._read_files()
        for entry in self.entries.values():
            if entry.kind == "task":
                self._task(entry)
        for own in self.members.values():
            self._names(own)

    def add(self, place: str, text: str) -> None:
        """Note a mistake once."""
        self.mistakes[f"{place}: {text}"] = None

    def of_score(self, task: str, score: str, text: str) -> None:
        """Note a mistake of a task's score; not again for its breakdowns."""
        if (task, text) not in self._of_scores:
            self._of_scores.add((task, text))
            self.add(f"{task}: {score}", text)

    def attempt(
        self, place: str, what: str, function: Callable[..., Any], *arguments: Any
    ) -> Any:
        """What a function of the benchmark, or the making of one of its tasks, returns; ``None`` where it fails."""
        try:
            return function(*arguments)
        except Exception as error:  # other people's code can fail in any way
            self.add(
                place, f"{what} failed ({kind_of(error)})" if what else kind_of(error)
            )
            return None

    def _read_files(self) -> None:
        for path in sorted(self.family.folder.glob("*.yaml")):
            try:
                entry = catalog.entry_of(path)
            except BiasError as error:
                self.mistakes[str(error)] = None
                continue
            there = catalog.packaged().get(entry.name)
            if there is not None and there.path != path:
                self.add(
                    str(path),
                    f"there is already a task {entry.name}, in {there.path or 'the harness'}",
                )
            elif entry.benchmark not in self.members:
                self.add(
                    str(path),
                    f"its benchmark is {entry.benchmark}: it must be one of {', '.join(self.members)}",
                )
            else:
                self.entries[entry.name] = entry
        for entry in self.entries.values():
            self._are_known(str(entry.path), "its task", entry.members, self.entries)
        if not self.entries:
            self.add(
                str(self.family.folder),
                "there is no task YAML beside the benchmark's module",
            )

    def _are_known(
        self, place: str, what: str, names: Iterable[str], known: Iterable[str]
    ) -> None:
        for name in names:
            if name not in known:
                self.add(
                    place, f"{what} {name!r} is unknown.{did_you_mean(name, known)}"
                )

    def _names(self, own: Benchmark) -> None:
        """Check the names of scores and tasks in a benchmark's tables."""
        known = {
            score.name for score in self.attempt(own.name, "scores()", own.scores) or ()
        }
        for task, scores in self.scores.items():
            if self.entries[task].benchmark == own.name:
                known |= scores.keys()
        if known:
            self._are_known(f"{own.name}.main", "the score", own.main, known)
        tasks = {*self.entries, *own.harness_tasks}
        for suite, part in suites.definitions(self.family).items():
            self._are_known(
                f"{suites.FILE}: {suite}", "the task", part.get("tasks", ()), tasks
            )

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
        manager = internals.task_manager(sorted(folders), {})
        task = self.attempt(
            str(entry.path), "", lambda: manager.load([name])["tasks"][name]
        )
        if task is None:
            return
        docs: Sequence[dict[str, Any]] = task.eval_docs
        if entry.items not in (None, len(docs)):
            self.add(
                str(entry.path),
                f"n_items is {entry.items}, but there are {len(docs)} documents",
            )
        self.scores[name] = {score.name: score for score in task.scores}
        build = partial(task.build_all_requests, rank=0, world_size=1, limit=DOCUMENTS)
        self.attempt(name, "asking its documents", build)
        asked = [
            docs[place]
            for place in sorted({one.doc_id for one in task.instances or ()})
        ]
        if (
            asked
            and self._answered(task, "random answers", ChanceLM())
            and own.planting
        ):
            self._planted(task, own.planting, asked, entry.asks == ("generate_until",))

    def _planted(
        self,
        task: Any,
        planting: Planting,
        docs: Sequence[Mapping[str, Any]],
        writes: bool,
    ) -> None:
        """Check that scores follow a bias that is planted, one way and the other."""
        name, expected, found = str(task.config.task), [], []
        for strength in (STRENGTH, -STRENGTH):
            found.append(
                self._answered(task, "planted answers", DialLM(strength, noise=0.0))
            )
            dial = Dial(strength, noise=0.0, writes=writes)
            expected.append(
                self.attempt(name, "planting.expected()", planting.expected, docs, dial)
                or {}
            )
        for score in self.scores[name].values():
            if not all(score.name in side for side in (*expected, *found)):
                continue
            promised = expected[0][score.name] - expected[1][score.name]
            given = found[0][score.name] - found[1][score.name]
            if (
                abs(promised) > 0.1 * (score.high - score.low)
                and given * promised < _SHARE * promised**2
            ):
                text = f"a planted bias should move it by {promised:.3g}, but moves it by {given:.3g}"
                self.of_score(name, score.name, text)

    def _answered(self, task: Any, what: str, model: Any) -> dict[str, float]:
        """Check the scores of a model's answers to a task; the values, empty where one fails."""
        own, name = task.benchmark, str(task.config.task)
        answers = (
            self.attempt(f"{name}: {what}", "the requests", _answers, task, model) or {}
        )
        pairs = [(task.eval_docs[place], given) for place, given in answers.items()]
        records = self.attempt(
            f"{name}: {what}", "record()", lambda: [own.record(*pair) for pair in pairs]
        )
        values: dict[str, float] = {}
        for score in task.scores if records else ():
            try:
                [score.contribution(record) for record in records]
                value = Value.of(score, score.compute(records))
            except Exception as error:  # other people's code can fail in any way
                self.of_score(
                    name, score.name, f"the score of {what} failed ({kind_of(error)})"
                )
                continue
            values[score.name] = value.value
            highest = max(score.high, score.largest or score.high) + ROUNDING
            if value.value < score.low - ROUNDING or value.value > highest:
                span = f"outside of its range of {score.low:g} to {score.high:g}"
                self.of_score(
                    name, score.name, f"it is {value.value:g}, {span} (of {what})"
                )
        return values if len(values) == len(task.scores) else {}


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
        answers.setdefault(one.doc_id, []).append(
            next(iter(one.filtered_resps.values()))
        )
    return answers
