"""What ``doctor --benchmark`` finds in a benchmark's files and tables, before anything is answered."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from lm_eval_bias.core import catalog, registry
from lm_eval_bias.core.benchmark import Benchmark, folder_of, harness_tasks, read_card
from lm_eval_bias.core.errors import BiasError, did_you_mean, kind_of
from lm_eval_bias.core.run_data import Value
from lm_eval_bias.custom_metrics.score import Score
from lm_eval_bias.evaluation import suites

if TYPE_CHECKING:
    from lm_eval_bias.harness.task import BiasTask


LANGUAGE_CODE = re.compile(r"[a-z]{2,3}(-\w+)*")
T = TypeVar("T")


class BenchmarkFiles:
    """The files and tables of a benchmark, with the mistakes in them, and what couldn't be checked."""

    def __init__(self, name: str) -> None:
        """Find the benchmark of that name, with its variants."""
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

    def add(self, place: str, text: str) -> None:
        """Note a mistake once."""
        self.mistakes[f"{place}: {text}"] = None

    def of_score(self, task: str, score: str, text: str) -> None:
        """Note a mistake of a task's score once, not again for its breakdowns."""
        if (task, text) not in self._of_scores:
            self._of_scores.add((task, text))
            self.add(f"{task}: {score}", text)

    def attempt(
        self, place: str, what: str, function: Callable[..., T], *arguments: object
    ) -> T | None:
        """Call a function of the benchmark; note a mistake and return ``None`` where it fails."""
        try:
            return function(*arguments)
        except Exception as error:  # other people's code can fail in any way
            problem = kind_of(error)
            self.add(place, f"{what} failed ({problem})" if what else problem)
            return None

    def read_files(self) -> None:
        """Read the YAMLs; check their names, benchmarks and languages."""
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

    def read_suites(self) -> None:
        """Check the keys of the suites' file."""
        faults = self.attempt(catalog.SUITES_FILE, "", suites.unknown_keys, self.family)
        for text in faults or ():
            self.add(catalog.SUITES_FILE, text)

    def read_parts(self, member: Benchmark) -> None:
        """Check the card, and the scores that papers print."""
        if member is self.family:  # its variants have the same
            self.attempt(f"{member.name}: its card", "", read_card, member)
        place = f"{member.name}.presentation.published"
        rows = self.attempt(place, "", lambda: list(member.presentation.published()))
        tasks = {*catalog.entries(), *self.entries}
        for row in rows or ():
            self._are_known(place, "the task", [row.task], tasks)
            self.printed[row.task] |= dict.fromkeys(row.cells)

    def check_names(self, member: Benchmark) -> None:
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

    def check_parts(self, task: BiasTask) -> None:
        """Check the choice of a task's items in the suites' file of another package."""
        name = task.config.task
        definitions = catalog.suite_definitions(self.family)
        for suite in suites.NAMES:
            fields = ((definitions.get(suite) or {}).get("tasks") or {}).get(name)
            if fields:
                place = f"{catalog.SUITES_FILE}: {suite}: {name}"
                part = self.attempt(place, "", partial(suites.Sampling, **fields))
                if part:
                    self.attempt(place, "", part.choose, task.eval_docs)
