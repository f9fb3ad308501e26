"""``doctor --benchmark``: a search for mistakes of a benchmark, with random and planted answers, without a model.

Every mistake is one line that begins with its place: file, task, document or score.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from lm_eval_bias.core import Facts, catalog
from lm_eval_bias.core.benchmark import (
    REQUIRED,
    folder_of,
    options_for,
)
from lm_eval_bias.core.errors import BiasError, kind_of
from lm_eval_bias.core.planting import BiasPlan, Dial
from lm_eval_bias.core.run_data import TaskRun, Value
from lm_eval_bias.core.wording import LARGE_SHARE
from lm_eval_bias.custom_metrics.score import ImpossibleEstimate, Record, Score
from lm_eval_bias.data.sources import fetch
from lm_eval_bias.evaluation import trial_answers
from lm_eval_bias.evaluation.benchmark_files import BenchmarkFiles
from lm_eval_bias.harness import internals, linking
from lm_eval_bias.harness.score_aggregation import in_table
from lm_eval_bias.models.chance import ChanceLM
from lm_eval_bias.models.dial import DialLM
from lm_eval_bias.runs import answer_files, breakdowns, rescoring
from lm_eval_bias.runs.soundness import is_close

if TYPE_CHECKING:
    from lm_eval_bias.harness.task import BiasTask


DOCUMENTS = 120  # of a task that are answered
STRENGTH = 0.4  # of the bias that is planted, either way
_SHARE = 0.25  # of the planted difference that must come back from so few documents
_LARGE = 0.2  # the share of its range by which a score has to move for that
_ADVICE = "plant a bias to have it checked (Benchmark.planting)"


class Examination(BenchmarkFiles):
    """Findings about one benchmark: its mistakes, and what couldn't be checked."""

    def __init__(self, name: str) -> None:
        """Examine the benchmark of that name, with its variants."""
        super().__init__(name)
        self.attempt("its YAMLs", "", self.read_files)
        self.attempt(catalog.SUITES_FILE, "", self.read_suites)
        for member in self.members.values():
            self.attempt(member.name, "", self.read_parts, member)
        for entry in self.entries.values():
            if entry.kind == "task":
                self.attempt(str(entry.path), "", self._task, entry)
        for member in self.members.values():
            self.attempt(member.name, "", self.check_names, member)

    def _built(self, entry: catalog.Entry) -> BiasTask | None:
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

    def _ask_for(self, task: BiasTask, limit: int | None) -> None:
        """Make a task's requests for its first documents."""
        build = partial(task.build_all_requests, rank=0, world_size=1, limit=limit)
        self.attempt(task.config.task, "asking its documents", build)

    def _task(self, entry: catalog.Entry) -> None:
        """Check a task as far as it can be built and run."""
        task = self._built(entry)
        if task is None:
            return
        self._documents(entry, task)
        self.check_parts(task)
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

    def _documents(self, entry: catalog.Entry, task: BiasTask) -> None:
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

    def _answered(self, task: BiasTask, what: str, model: ChanceLM) -> dict[str, Value]:
        """Check the scores of a model's answers to a task; return them, or nothing where one fails."""
        place = f"{task.config.task}: {what}"
        given = self.attempt(place, "the requests", trial_answers.ask, task, model)
        self.given = given or {}
        records = self.attempt(
            place, "record()", trial_answers.records, task, self.given
        )
        values = {}
        for score in task.scores if records else ():
            value = self._scored(task, score, records or [], what)
            if value is not None:
                values[score.name] = value
        return values if len(values) == len(task.scores) else {}

    def _scored(
        self, task: BiasTask, score: Score, records: Sequence[Record], what: str
    ) -> Value | None:
        """Compute a score of some records; note what is wrong with it."""
        place = task.config.task, score.name
        parts: list[float] = []
        try:
            for part in map(score.contribution, records):
                parts += [] if part is None else [part]
            value = Value.of(score, trial_answers.estimated(score, records))
            if score.name in task.total.functions and place not in self.values:
                for text in trial_answers.doubts(score, records, value):
                    self.of_score(*place, text)
        except ImpossibleEstimate as error:
            self.add(task.config.task, f"{error} (of {what})")
            return None
        except Exception as error:  # other people's code can fail in any way
            text = f"the score of {what} failed ({kind_of(error)})"
            outside = [part for part in parts if not score.low <= part <= score.high]
            if outside:
                text += f": a document adds {outside[0]:g}, outside of its range of {score.low:g} to {score.high:g}"
            self.of_score(*place, text)
            return None
        self.values[place].append(value)
        self.parts[place] += parts
        return value

    def _without_numbers(self, task: BiasTask) -> None:
        """Check that main scores have no value where the model gives no numbers."""
        what = "answers without numbers"
        values = self._answered(task, what, trial_answers.NumberlessLM())
        for score in in_table(task.scores, task.benchmark.main):
            value = values.get(score.name, Value(score.name, math.nan)).value
            if not math.isnan(value):
                text = f"it is {value:g} of {what}: record() must keep nan"
                self.of_score(task.config.task, score.name, text)

    def _rescored(self, task: BiasTask, entry: catalog.Entry) -> None:
        """Check that ``rescore`` gives what the harness's aggregation does, and breaks it down by all facets."""
        for place, answers in self.given.items():
            task.process_results(task.eval_docs[place], answers)
        estimates = task.total.estimates()
        logged = list(trial_answers.logged(task, self.given, entry.filter))
        writes = entry.asks == ("generate_until",)
        for as_logged in (True, False) if writes else (True,):
            reading = rescoring.AnswerReading(as_logged=as_logged)
            records = list(reading.records(iter(logged)))
            (again,) = rescoring.scored(iter(records), reading).values()
            problem = next(filter(None, map(answer_files.why_not_kept, records)), "")
            if problem:
                self.add(f"{entry.name}: record()", problem)
            elif repr(records) != repr(list(reading.records(iter(logged)))):
                text = "the same answers give another record each time: what is drawn needs a seed"
                self.add(f"{entry.name}: record()", text)
                return
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
                breakdowns.by_facets(records, [(facet,)])

    def _presented(
        self, entry: catalog.Entry, task: BiasTask, values: Mapping[str, Value]
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
        absent = {
            name: replace(value, value=math.nan, stderr=math.nan, interval=None)
            for name, value in values.items()
        }
        for of_task in (shown, replace(shown, scores=absent)):
            for part, make in trial_answers.parts_of_page(of_task).items():
                self.attempt(f"{entry.name}: presentation.{part}", "", make)

    def _planted(
        self,
        task: BiasTask,
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
            is_large = abs(promised) > _LARGE * (score.high - score.low)
            if is_large and given * promised < _SHARE * promised**2:
                self.of_score(
                    name,
                    score.name,
                    f"a planted bias should move it by {promised:.3g}, but moves it by {given:.3g}",
                )

    def _read(self, task: BiasTask, what: str, model: ChanceLM) -> dict[str, float]:
        """Return the values of answers that say something: not nearly all may count as unanswered."""
        values = self._answered(task, what, model)
        found = {name: value.value for name, value in values.items()}
        share = found.get("unanswered", 0.0)
        if share > 1 - LARGE_SHARE:
            text = f"it is {share:.2g} of {what}, which do answer: check how texts are read"
            self.of_score(task.config.task, "unanswered", text)
        return found

    def _opposite(self, task: BiasTask, docs: Sequence[Facts]) -> None:
        """Check by opposite answers which way scores point, where no bias is planted."""
        name = task.config.task
        main = in_table(task.scores, task.benchmark.main)
        favours = next((score.favours for score in main if score.favours), ())
        found = {}
        if not task.benchmark.asking(docs[0]).questions:
            sides = trial_answers.opposites(task, docs, favours)
            for side, choose in sides.items():
                model = trial_answers.ChoosingLM(choose)
                what = f"answers that take {side!r} of all"
                found[side] = self._read(task, what, model)
        if not found or not all(found.values()):
            text = f"which way its scores point wasn't checked: {_ADVICE}"
            self.notes.append(f"{name}: {text}")
            return
        for score in main:
            if score.neutral is not None and score.higher_is_better is None:
                values = {side: of_one[score.name] for side, of_one in found.items()}
                self._points(name, score, values)

    def _points(self, task: str, score: Score, values: Mapping[str, float]) -> None:
        """Hold a score's values of opposite answers against its words for either side; note them without any."""
        sides = (f"{v:g} where all answers take {side!r}" for side, v in values.items())
        told = ", ".join(sides)
        named = trial_answers.sides_in(score.favours or (), list(values))
        if not named:
            text = f"{score.name} is {told}: is this the way it points? {_ADVICE}"
            self.notes.append(f"{task}: {text}")
        elif values[named[0]] < values[named[1]]:
            text = f"it is {told}, and its favours say the contrary: turn one of them round"
            self.of_score(task, score.name, text)

    def _main_scores(self, task: BiasTask, asked: int) -> None:
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
