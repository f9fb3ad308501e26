"""``doctor --benchmark``: a search for mistakes of a benchmark, with random and planted answers, without a model.

Every mistake is one line that begins with its place: file, task, document or score.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from lm_eval_bias.core import Facts, catalog, registry
from lm_eval_bias.core.benchmark import (
    REQUIRED,
    Benchmark,
    folder_of,
    harness_tasks,
    options_for,
    read_card,
)
from lm_eval_bias.core.errors import BiasError, did_you_mean, kind_of
from lm_eval_bias.core.planting import BiasPlan, Dial
from lm_eval_bias.core.run_data import TaskRun, Value
from lm_eval_bias.core.wording import LARGE_SHARE
from lm_eval_bias.custom_metrics.score import ImpossibleEstimate, Score
from lm_eval_bias.data.sources import fetch
from lm_eval_bias.evaluation import suites, trial_answers
from lm_eval_bias.harness import internals, linking
from lm_eval_bias.harness.score_aggregation import in_table
from lm_eval_bias.models.chance import ChanceLM
from lm_eval_bias.models.dial import DialLM
from lm_eval_bias.runs import breakdowns, rescoring
from lm_eval_bias.runs.soundness import is_close

DOCUMENTS = 120  # of a task that are answered
STRENGTH = 0.4  # of the bias that is planted, either way
LANGUAGE_CODE = re.compile(r"[a-z]{2,3}(-\w+)*")
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
        self.fields: defaultdict[str, dict[str, None]] = defaultdict(
            dict
        )  # of documents
        self.printed: defaultdict[str, dict[str, None]] = defaultdict(dict)  # in papers
        # of a task's score
        self.values: defaultdict[tuple[str, str], list[Value]] = defaultdict(list)
        self.parts: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
        self._read_files()
        self._read_suites()
        for member in self.members.values():
            self._read_parts(member)
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
            codes = entry.language.split(", ") if entry.language else ()
            if not all(map(LANGUAGE_CODE.fullmatch, codes)):
                text = f"its language is {entry.language!r}: write a code of ISO 639-1, such as en"
                self.add(str(entry.path), text)
        if not self.entries and not harness_tasks(self.family):
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

    def _read_suites(self) -> None:
        """Check the keys of the suites' file."""
        faults = self.attempt(catalog.SUITES_FILE, "", suites.unknown_keys, self.family)
        for text in faults or ():
            self.add(catalog.SUITES_FILE, text)

    def _read_parts(self, member: Benchmark) -> None:
        """Check the card, and the scores that papers print."""
        self.attempt(f"{member.name}: its card", "", read_card, member)
        place = f"{member.name}.presentation.published"
        rows = self.attempt(place, "", lambda: list(member.presentation.published()))
        tasks = {*catalog.entries(), *self.entries}
        for row in rows or ():
            self._are_known(place, "the task", [row.task], tasks)
            self.printed[row.task] |= dict.fromkeys(row.cells)

    def _names(self, member: Benchmark) -> None:
        """Check the names of scores, tasks and fields in a benchmark's tables."""
        name = member.name
        unspecific = self.attempt(name, "scores()", member.scores) or ()
        known = {score.name for score in unspecific}
        for task, scores in self.scores.items():
            if self.entries[task].benchmark == name:
                known |= scores.keys()
                place = f"{name}.presentation.published: {task}"
                self._are_known(place, "the score", self.printed[task], scores)
        if known:
            for names in (member.main, member.presentation.beside_main):
                self._are_known(f"{name}.main", "the score", names, known)
        fields = self.fields[name]
        for facet, field in member.facets.items():
            if isinstance(field, str) and fields:
                what = f"the facet {facet!r} names a field that no document has:"
                self._are_known(f"{name}.facets", what, [field], fields)
        tasks = {*self.entries, *harness_tasks(member)}
        file = catalog.SUITES_FILE
        listed = dict(catalog.suite_definitions(self.family))
        for names in listed.pop("primary", {}).values():
            self._are_known(f"{file}: primary", "the score", names, known)
        for suite, part in listed.items():
            self._are_known(
                f"{file}: {suite}", "the task", part.get("tasks") or (), tasks
            )

    def _built(self, entry: catalog.Entry) -> Any:
        """Build a task, and its requests for the first documents; ``None`` where that can't be done."""
        name = entry.name
        try:
            if options_for(entry.definition, REQUIRED):
                raise BiasError("it needs a file of the user's")
            if entry.data:
                fetch([entry.data])
        except BiasError as error:
            self.notes.append(f"{name}: not run ({error})")
            return None
        folders = {str(folder_of(self.family))}.intersection(linking.missing_folders())
        manager = internals.task_manager(sorted(folders))
        loaded = self.attempt(str(entry.path), "", manager.load, [name])
        if loaded is None:
            return None
        task = loaded["tasks"][name]
        self.scores[name] = {score.name: score for score in task.scores}
        self._ask_for(task, DOCUMENTS)
        return task

    def _ask_for(self, task: Any, limit: int | None) -> None:
        """Make a task's requests for its first documents."""
        build = partial(task.build_all_requests, rank=0, world_size=1, limit=limit)
        self.attempt(task.config.task, "asking its documents", build)

    def _task(self, entry: catalog.Entry) -> None:
        """Check a task as far as it can be built and run."""
        task = self._built(entry)
        if task is None:
            return
        self._documents(entry, task)
        self._parts_in_suites(task)
        docs = [
            task.eval_docs[i] for i in sorted({r.doc_id for r in task.instances or ()})
        ]
        values = docs and self._answered(task, "random answers", ChanceLM())
        if not values:
            return
        self.attempt(
            entry.name, "rescoring random answers", self._rescored, task, entry
        )
        self._presented(entry, task, values)
        planting = task.benchmark.planting
        writes = entry.asks == ("generate_until",)
        if writes:
            silent = trial_answers.ChoosingLM(lambda doc: "")
            self._answered(task, "empty answers", silent)
        elif not task.benchmark.asking(docs[0]).questions:
            self._without_numbers(task)
        if planting:
            self._planted(task, planting, docs, writes)
        else:
            self._opposite(task, docs)
        self._main_scores(task, len(docs))

    def _documents(self, entry: catalog.Entry, task: Any) -> None:
        """Check the documents: how many, their names, fields, choices and prompts."""
        docs = task.eval_docs
        path = str(entry.path)
        if entry.items not in (None, len(docs)):
            text = f"n_items is {entry.items}, but there are {len(docs)} documents"
            self.add(path, text)
        for doc in docs:
            self.fields[entry.benchmark] |= dict.fromkeys(doc)
        keys = Counter(map(task.benchmark.key, docs))
        key, count = keys.most_common(1)[0]
        if count > 1:
            text = f"{count} documents are {', '.join(key)}: give each an id of its own (or Benchmark.key)"
            self.add(entry.name, text)
        choices = [trial_answers.choices_of(task, doc) for doc in docs[:DOCUMENTS]]
        alike = sum(len(set(of_one)) < len(of_one) for of_one in choices)
        if alike > LARGE_SHARE * len(choices):
            text = f"{alike} of {len(choices)} documents have a choice twice: no answer tells such choices apart"
            self.add(entry.name, text)
        different = task.config.metadata["inputs"].get("different_prompts")
        if different == 1 < len(docs):
            self.add(
                path, "all documents ask the same: does doc_to_text name their field?"
            )

    def _parts_in_suites(self, task: Any) -> None:
        """Check the choice of a task's items in the suites' file of another package."""
        name = task.config.task
        definitions = catalog.suite_definitions(self.family)
        for suite in suites.NAMES:
            tasks = (definitions.get(suite) or {}).get("tasks") or {}
            if not tasks.get(name):
                continue
            place = f"{catalog.SUITES_FILE}: {suite}: {name}"
            arguments = (suite, name, tasks[name], task.eval_docs)
            chosen = self.attempt(place, "choose", suites.items_of_part, *arguments)
            if chosen is None:
                continue
            stated = tasks[name].get("items", len(chosen))
            if stated != len(chosen):
                self.add(place, f"items is {stated}, but choose returns {len(chosen)}")
            if len(set(chosen).intersection(range(len(task.eval_docs)))) < len(chosen):
                text = "choose returns places twice, or of documents that aren't there"
                self.add(place, text)

    def _answered(self, task: Any, what: str, model: Any) -> dict[str, Value]:
        """Check the scores of a model's answers to a task; return them, or nothing where one fails."""
        name = task.config.task
        place = f"{name}: {what}"
        self.given = self.attempt(place, "the requests", trial_answers.ask, task, model)
        records = self.attempt(
            place, "record()", trial_answers.records, task, self.given or {}
        )
        values = {}
        for score in task.scores if records else ():
            place = name, score.name
            parts: list[float] = []
            try:
                for part in map(score.contribution, records):
                    parts += [] if part is None else [part]
                value = Value.of(score, score.compute(records))
                if score.name in task.total.functions and place not in self.values:
                    for text in trial_answers.doubts(score, records, value):
                        self.of_score(*place, text)
            except ImpossibleEstimate as error:
                self.of_score(*place, f"{error} (of {what})")
            except Exception as error:  # other people's code can fail in any way
                text = f"the score of {what} failed ({kind_of(error)})"
                outside = [
                    part for part in parts if not score.low <= part <= score.high
                ]
                if outside:
                    text += f": a document adds {outside[0]:g}, outside of its range of {score.low:g} to {score.high:g}"
                self.of_score(*place, text)
            else:
                values[score.name] = value
                self.values[place].append(value)
                self.parts[place] += parts
        return values if len(values) == len(task.scores) else {}

    def _without_numbers(self, task: Any) -> None:
        """Check that main scores have no value where the model gives no numbers."""
        what = "answers without numbers"
        values = self._answered(task, what, trial_answers.NumberlessLM())
        for score in in_table(task.scores, task.benchmark.main):
            value = values.get(score.name, Value(score.name, math.nan)).value
            if not math.isnan(value):
                text = f"it is {value:g} of {what}: record() must keep nan"
                self.of_score(task.config.task, score.name, text)

    def _rescored(self, task: Any, entry: catalog.Entry) -> None:
        """Check that ``rescore`` gives what the harness's aggregation does, and breaks it down by all facets."""
        for place, answers in self.given.items():
            task.process_results(task.eval_docs[place], answers)
        estimates = task.total.estimates()
        logged = list(trial_answers.logged(task, self.given, entry.filter))
        for as_logged in (True, False):
            reading = rescoring.AnswerReading(as_logged=as_logged)
            (again,) = rescoring.of_samples(iter(logged), reading).values()
            for name in self.scores[entry.name]:
                absent = Value(name, math.nan)
                value = estimates[name].value
                rescored = again.scores.get(name, absent).value
                if not is_close(value, rescored):
                    text = f"run gives {value:.6g}, rescore {rescored:.6g}"
                    self.add(f"{entry.name}: {name}", text)
                    return  # others differ for the same reason
        for facet, of in task.benchmark.facets.items():
            if callable(of):
                breakdowns.by_facets(iter(logged), [(facet,)], reading)

    def _presented(
        self, entry: catalog.Entry, task: Any, values: Mapping[str, Value]
    ) -> None:
        """Check that everything people read of a task's scores can be made, with their values and without any."""
        count = len(self.given)
        shown = TaskRun(
            entry.name,
            task.benchmark,
            entry.language,
            "",
            count,
            count,
            task.config.metadata,
            values,
        )
        nothing = {"value": math.nan, "stderr": math.nan, "interval": None}
        absent = {name: replace(value, **nothing) for name, value in values.items()}
        for of_task in (shown, replace(shown, scores=absent)):
            for part, make in trial_answers.parts_of_page(of_task).items():
                self.attempt(f"{entry.name}: presentation.{part}", "", make)

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
            measured.append(self._read(task, "planted answers", model))
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

    def _read(self, task: Any, what: str, model: Any) -> dict[str, float]:
        """Return the values of answers that say something: not nearly all may count as unanswered."""
        values = self._answered(task, what, model)
        found = {name: value.value for name, value in values.items()}
        share = found.get("unanswered", 0.0)
        if share > 1 - LARGE_SHARE:
            text = f"it is {share:.2g} of {what}, which do answer: check how texts are read"
            self.of_score(task.config.task, "unanswered", text)
        return found

    def _opposite(self, task: Any, docs: Sequence[Facts]) -> None:
        """Check by opposite answers which way scores point, where no bias is planted."""
        name = task.config.task
        advice = "plant a bias to have it checked (Benchmark.planting)"
        sides = (
            {}
            if task.benchmark.asking(docs[0]).questions
            else trial_answers.opposites(task, docs)
        )
        found = {
            side: self._read(
                task,
                f"answers that take {side} of all",
                trial_answers.ChoosingLM(choose),
            )
            for side, choose in sides.items()
        }
        if not found or not all(found.values()):
            self.notes.append(
                f"{name}: which way its scores point wasn't checked: {advice}"
            )
            return
        for score in in_table(task.scores, task.benchmark.main):
            if score.neutral is None or score.higher_is_better is not None:
                continue
            values = {side: of_one[score.name] for side, of_one in found.items()}
            told = ", ".join(
                f"{value:g} where all answers take {side}"
                for side, value in values.items()
            )
            named = trial_answers.sides_in(score.favours or (), list(sides))
            if not named:
                self.notes.append(
                    f"{name}: {score.name} is {told}: is this the way it points? {advice}"
                )
            elif values[named[0]] < values[named[1]]:
                self.of_score(
                    name,
                    score.name,
                    f"it is {told}, and its favours say the contrary: turn one of them round",
                )

    def _main_scores(self, task: Any, asked: int) -> None:
        """Check that main scores have values in the scale of their range, and can be compared."""
        name = task.config.task
        main = in_table(task.scores, task.benchmark.main)
        is_part = asked < len(task.eval_docs)
        if is_part and not all(self._has_value(name, score) for score in main):
            enough = self.entries[name].smallest or 0
            self._ask_for(task, enough if enough > asked else None)
            self._answered(task, "random answers to more documents", ChanceLM())
        for score in main:
            values = self.values[name, score.name]
            if not self._has_value(name, score):
                text = f"it is nan of all answers that were tried ({values[-1].note})"
                self.of_score(name, score.name, text)
            seen = [value.value for value in values] + self.parts[name, score.name]
            if trial_answers.is_of_other_scale(score, seen):
                text = f"its values lie from -1 to 1, its range is {score.low:g} to {score.high:g}: multiply by 100?"
                self.of_score(name, score.name, text)
            if score.design is None and not score.derived:
                text = f"{name}: {score.name} has no design: compare leaves it out"
                self.notes.append(text)

    def _has_value(self, task: str, score: Score) -> bool:
        """Tell whether a score had a value of some answers."""
        values = self.values[task, score.name]
        return any(not math.isnan(value.value) for value in values)
