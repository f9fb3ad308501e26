"""``doctor --benchmark``: a search for mistakes of a benchmark, with random and planted answers, without a model.

Every mistake is one line that begins with its place: file, task, document or score.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

from lm_eval_bias.core import Facts, catalog, registry
from lm_eval_bias.core.benchmark import (
    REQUIRED,
    Benchmark,
    folder_of,
    harness_tasks,
    options_for,
)
from lm_eval_bias.core.errors import BiasError, did_you_mean, kind_of
from lm_eval_bias.core.numbers import grouped
from lm_eval_bias.core.planting import BiasPlan, Dial
from lm_eval_bias.core.run_data import Value
from lm_eval_bias.custom_metrics.score import Score
from lm_eval_bias.data.sources import fetch
from lm_eval_bias.harness import internals, linking
from lm_eval_bias.models.chance import ChanceLM
from lm_eval_bias.models.dial import DialLM
from lm_eval_bias.runs import sample_logs
from lm_eval_bias.runs.soundness import ROUNDING, is_close

AnswersByDocument = dict[int, list[Any]]  # of a task, by document
DOCUMENTS = 120  # of a task that are answered
STRENGTH = 0.4  # of the bias that is planted, either way
_SHARE = 0.25  # of the planted difference that must come back from so few documents


class Examination:
    """Findings about one benchmark: its mistakes, and what couldn't be checked."""

    def __init__(self, name: str) -> None:
        """Examine the benchmark of that name, with its variants."""
        family = registry.family(name)
        if family is None:
            raise BiasError(
                f"no benchmark named {name!r}.{did_you_mean(name, registry.by_name())}"
            )
        self.family = family
        self.members = {member.name: member for member in (family, *family.variants)}
        self.mistakes: dict[str, None] = {}
        self._of_scores: set[tuple[str, str]] = set()
        self.notes: list[str] = []
        self.entries: dict[str, catalog.Entry] = {}
        self.scores: dict[str, dict[str, Score]] = {}  # by task
        self._read_files()
        for entry in self.entries.values():
            if entry.kind == "task":
                self._task(entry)
        for member in self.members.values():
            self._names(member)

    def add(self, place: str, text: str) -> None:
        """Note a mistake once."""
        self.mistakes[f"{place}: {text}"] = None

    def of_score(self, task: str, score: str, text: str) -> None:
        """Note a mistake of a task's score once, not again for its breakdowns."""
        if (task, text) not in self._of_scores:
            self._of_scores.add((task, text))
            self.add(f"{task}: {score}", text)

    def attempt(
        self, place: str, what: str, function: Callable[..., Any], *arguments: Any
    ) -> Any:
        """Call a function of the benchmark; note a mistake and return ``None`` where it fails."""
        try:
            return function(*arguments)
        except Exception as error:  # other people's code can fail in any way
            problem = kind_of(error)
            self.add(place, f"{what} failed ({problem})" if what else problem)
            return None

    def _read_files(self) -> None:
        for path in sorted(folder_of(self.family).glob("*.yaml")):
            try:
                entry = catalog.entry_of(path)
            except BiasError as error:
                self.mistakes[str(error)] = None
                continue
            there = catalog.packaged().get(entry.name)
            if there is not None and there.path != path:
                where = there.path or "the harness"
                self.add(str(path), f"there is already a task {entry.name}, in {where}")
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
                str(folder_of(self.family)),
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

    def _names(self, member: Benchmark) -> None:
        """Check the names of scores and tasks in a benchmark's tables."""
        unspecific = self.attempt(member.name, "scores()", member.scores) or ()
        known = {score.name for score in unspecific}
        for task, scores in self.scores.items():
            if self.entries[task].benchmark == member.name:
                known |= scores.keys()
        if known:
            for names in (member.main, member.presentation.beside_main):
                self._are_known(f"{member.name}.main", "the score", names, known)
        tasks = {*self.entries, *harness_tasks(member)}
        file = catalog.SUITES_FILE
        listed = catalog.suite_definitions(self.family)
        for names in listed.pop("primary", {}).values():
            self._are_known(f"{file}: primary", "the score", names, known)
        for suite, part in listed.items():
            self._are_known(
                f"{file}: {suite}", "the task", part.get("tasks", ()), tasks
            )

    def _task(self, entry: catalog.Entry) -> None:
        """Check a task as far as it can be built and run."""
        benchmark = self.members[entry.benchmark]
        name = entry.name
        try:
            if options_for(benchmark, REQUIRED):
                raise BiasError("it needs a file of the user's")
            if entry.data:
                fetch([entry.data])
        except BiasError as error:
            self.notes.append(f"{name}: not run ({error})")
            return
        folders = {str(folder_of(self.family))}.intersection(linking.missing_folders())
        manager = internals.task_manager(sorted(folders))
        loaded = self.attempt(str(entry.path), "", manager.load, [name])
        if loaded is None:
            return
        task = loaded["tasks"][name]
        docs = task.eval_docs
        if entry.items not in (None, len(docs)):
            self.add(
                str(entry.path),
                f"n_items is {entry.items}, but there are {len(docs)} documents",
            )
        self.scores[name] = {score.name: score for score in task.scores}
        build = partial(task.build_all_requests, rank=0, world_size=1, limit=DOCUMENTS)
        self.attempt(name, "asking its documents", build)
        places = {request.doc_id for request in task.instances or ()}
        if not places or not self._answered(task, "random answers", ChanceLM()):
            return
        self.attempt(name, "rescoring random answers", self._rescored, task)
        if benchmark.planting:
            asked = [docs[place] for place in sorted(places)]
            writes = entry.asks == ("generate_until",)
            self._planted(task, benchmark.planting, asked, writes)

    def _planted(
        self,
        task: Any,
        planting: BiasPlan,
        docs: Sequence[Facts],
        writes: bool,
    ) -> None:
        """Check that scores follow a bias that is planted in either direction."""
        name = task.config.task
        expected = []
        measured = []
        for strength in (STRENGTH, -STRENGTH):
            model = DialLM(strength, noise=0.0)
            measured.append(self._answered(task, "planted answers", model))
            dial = Dial(strength, noise=0.0, writes=writes)
            values = self.attempt(
                name, "planting.expected()", planting.expected, docs, dial
            )
            expected.append(values or {})
        for score in self.scores[name].values():
            if not all(score.name in side for side in (*expected, *measured)):
                continue
            promised = expected[0][score.name] - expected[1][score.name]
            given = measured[0][score.name] - measured[1][score.name]
            is_large = abs(promised) > 0.1 * (score.high - score.low)
            if is_large and given * promised < _SHARE * promised**2:
                self.of_score(
                    name,
                    score.name,
                    f"a planted bias should move it by {promised:.3g}, but moves it by {given:.3g}",
                )

    def _answered(self, task: Any, what: str, model: Any) -> dict[str, float]:
        """Check the scores of a model's answers to a task; return the values, or nothing where one fails."""
        name = task.config.task
        place = f"{name}: {what}"
        answers = self.attempt(place, "the requests", _answers, task, model)
        records = self.attempt(place, "record()", _records, task, answers or {})
        values = {}
        for score in task.scores if records else ():
            try:
                for record in records:
                    score.contribution(record)
                value = Value.of(score, score.compute(records))
            except Exception as error:  # other people's code can fail in any way
                self.of_score(
                    name, score.name, f"the score of {what} failed ({kind_of(error)})"
                )
                continue
            values[score.name] = value.value
            highest = max(score.high, score.largest or score.high) + ROUNDING
            if value.value < score.low - ROUNDING or value.value > highest:
                self.of_score(
                    name,
                    score.name,
                    f"it is {value.value:g}, "
                    f"outside of its range of {score.low:g} to {score.high:g} "
                    f"(of {what})",
                )
        return values if len(values) == len(task.scores) else {}

    def _rescored(self, task: Any) -> None:
        """Check that the harness's aggregation gives what rescoring the sample log would."""
        records = []
        for place, given in _given(task).items():
            doc = task.eval_docs[place]
            task.process_results(doc, given)
            doc, saved = internals.as_logged(doc, given)
            read = list(map(sample_logs.read_answer, saved))
            records.append(task.benchmark.record(doc, read))
        rescored = {
            score.name: score.compute(records).value
            for score in task.benchmark.scores(records)
        }
        estimates = task.total.estimates()
        for name in self.scores[task.config.task]:
            value = estimates[name].value
            again = rescored.get(name, math.nan)
            if not is_close(value, again):
                self.add(
                    f"{task.config.task}: {name}",
                    f"run gives {value:.6g}, rescore {again:.6g}",
                )
                return  # others differ for the same reason


def _answers(task: Any, model: Any) -> AnswersByDocument:
    """Answer a task's requests by a model; return the filtered answers by document."""
    asked_of = []
    for request in task.instances:
        request.resps, request.filtered_resps = [], {}
        asked_of += [(request.request_type, request)] * request.repeats
    for kind, asked in grouped(asked_of).items():
        for request, answer in zip(asked, getattr(model, kind)(asked), strict=True):
            request.resps.append(answer)
    task.apply_filters()
    return _given(task)


def _given(task: Any) -> AnswersByDocument:
    """Return the filtered answers to a task's requests by document."""
    requests = sorted(task.instances, key=attrgetter("doc_id", "idx"))
    return grouped(
        (request.doc_id, *request.filtered_resps.values()) for request in requests
    )


def _records(task: Any, answers: AnswersByDocument) -> list[Any]:
    """Make the records of answered documents."""
    docs = task.eval_docs
    return [
        task.benchmark.record(docs[place], given) for place, given in answers.items()
    ]
