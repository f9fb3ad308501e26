"""Which scores go together over models: rank correlations across languages, forms of asking, tasks and benchmarks."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from lm_eval_bias import catalog, registry
from lm_eval_bias.analysis import conventions
from lm_eval_bias.analysis.differences import adjust
from lm_eval_bias.analysis.published_scores import Published
from lm_eval_bias.errors import BiasError
from lm_eval_bias.runs import printable_runs
from lm_eval_bias.runs.run_data import Run, TaskRun

if TYPE_CHECKING:
    from lm_eval_bias.custom_metrics.rank_correlations import RankCorrelation
    from lm_eval_bias.custom_metrics.score import Score

# how two scores are related, in the order of listings
RELATIONS = {
    "languages": "one score in two languages",
    "forms": "one score in two forms of asking",
    "tasks": "one score of two tasks",
    "scores": "two scores of one benchmark",
    "benchmarks": "two benchmarks",
}


@dataclass(frozen=True)
class Variable:
    """One score of one task, over models.

    Attributes:
        task: The task.
        group: What is asked, whatever the form.
        family: The benchmark's name.
        language: ISO 639-1 code.
        score: The score's name.
        paper: Whose it is; empty for runs.
        way: Which of several ways of running the task; empty where there is one.
        of_bias: Whether it has a neutral value and no better end: what is correlated between benchmarks.
        values: By model.
        errors: Standard errors by model, where these are known.
    """

    task: str
    group: str
    family: str
    language: str
    score: str
    paper: str
    way: str
    of_bias: bool
    values: dict[str, float] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """For people."""
        return f"{self.task} {self.score}" + (f" ({self.source})" if self.source else "")

    @property
    def source(self) -> str:
        """Paper or way."""
        return self.paper or self.way

    @property
    def noise(self) -> float:
        """The mean squared standard error as a share of the variance between models; ``nan`` where it isn't known."""
        if len(self.errors) < 2 or len(self.errors) < len(self.values):
            return math.nan
        mean = sum(self.values.values()) / len(self.values)
        variance = sum((value - mean) ** 2 for value in self.values.values()) / (len(self.values) - 1)
        return sum(e**2 for e in self.errors.values()) / len(self.errors) / variance if variance else math.nan


@dataclass(frozen=True)
class Correlation:
    """Two scores over the models that have both.

    Attributes:
        first: One score.
        second: The other.
        relation: One of :data:`RELATIONS`.
        models: Names of the models.
        spearman: Spearman's correlation.
        kendall: Kendall's.
        adjusted: ``spearman.p`` corrected for all tests.
    """

    first: Variable
    second: Variable
    relation: str
    models: Sequence[str]
    spearman: RankCorrelation
    kendall: RankCorrelation
    adjusted: float = math.nan


def _score_definitions(benchmark: str) -> Mapping[str, Score]:
    return {score.name: score for score in registry.get(benchmark).every_score()}


def _of_bias(score: Score | None) -> bool:
    return score is not None and score.neutral is not None and score.higher_is_better is None


def _members(runs: Sequence[Run]) -> dict[str, dict[tuple[str, ...], list[tuple[Run, TaskRun]]]]:
    """All tasks of known benchmarks, by name and by what they were made by."""
    members: dict[str, dict[tuple[str, ...], list[tuple[Run, TaskRun]]]] = defaultdict(lambda: defaultdict(list))
    for run in printable_runs.presentable(printable_runs.runs(runs)):
        for task in run.tasks.values():
            if task.benchmark in registry.by_name():
                members[task.base][conventions.key(run, task)].append((run, task))
    return members


def of_runs(runs: Sequence[Run], names: Sequence[str] | None = None) -> list[Variable]:
    """The main scores of all tasks that were run; a task that was run in several ways has several.

    Args:
        runs: The runs; those of one name are one model's.
        names: Scores other than the main ones.
    """
    variables = []
    for task, ways in _members(runs).items():
        for number, way in enumerate(ways.values(), start=1):
            benchmark = registry.get(way[0][1].benchmark)
            definitions = _score_definitions(benchmark.name)
            forms = benchmark.forms(way[0][1])
            family = registry.family(benchmark.name) or benchmark
            own_way = f"way {number} of {len(ways)}" if len(ways) > 1 else ""
            for name in names or benchmark.main or [n for n, score in definitions.items() if score.headline]:
                variable = Variable(
                    task, forms[0].group if forms else task, family.name, way[0][1].language, name, "", own_way,
                    _of_bias(definitions.get(name)),
                )  # fmt: skip
                for run, own in way:
                    value = own.scores.get(name)
                    if value is not None and math.isfinite(value.value):
                        variable.values[run.name] = value.value
                        if math.isfinite(value.stderr):
                            variable.errors[run.name] = value.stderr
                variables.append(variable)
    return [variable for variable in variables if variable.values]


def remarks(runs: Sequence[Run], tasks: Sequence[str] = ()) -> list[str]:
    """What has to be known of the runs: tasks that were run in several ways, models that stand there twice.

    Args:
        runs: The runs.
        tasks: The tasks that are looked at; empty for all.
    """
    lines = [
        f"{task}, way {number} of {len(own)}: {conventions.describe(*way[0])}; documents and prompts "
        f"{conventions.asked(way[0][1])[:12]}; {', '.join(run.name for run, _ in way)}"
        for task, own in _members(runs).items()
        if len(own) > 1 and (not tasks or task in tasks)
        for number, way in enumerate(own.values(), start=1)
    ]
    again = [f"{run.name} counts as a model of its own, though it {run.differs}" for run in runs if run.differs]
    return lines + [line.replace("though it ", "though it differs from ", 1) for line in again]


def of_papers(rows: Sequence[Published], names: Sequence[str] | None = None) -> list[Variable]:
    """The main scores in published rows, by paper."""
    variables: dict[tuple[str, str, str], Variable] = {}
    for row in rows:
        entry = catalog.entries().get(row.task)
        if entry is None:
            raise BiasError(f"published scores of {row.task}: no such task")
        benchmark = registry.get(entry.benchmark)
        family, definitions = registry.family(entry.benchmark) or benchmark, _score_definitions(benchmark.name)
        for name in names or benchmark.main:
            cell = row.cells.get(name)
            if cell is not None and math.isfinite(cell.value):
                known = definitions.get(name)
                if known is not None and not known.low <= cell.value <= known.high:
                    raise BiasError(
                        f"published scores: {name} of {row.model} in {row.task} is {cell.value:g}, which is outside "
                        f"{known.low:g} to {known.high:g}"
                    )
                variable = variables.setdefault(
                    (row.task, name, row.paper),
                    Variable(
                        row.task, row.task, family.name, entry.language, name, row.paper, "",
                        _of_bias(known),
                    ),
                )  # fmt: skip
                variable.values[printable_runs.one_line(row.model)] = cell.value
    return list(variables.values())


def _relation(a: Variable, b: Variable, named: bool) -> str:
    """How two scores are related; empty where they aren't correlated.

    Args:
        a: One.
        b: The other.
        named: Whether the scores were named: then all of one benchmark's, and of any kind between benchmarks.
    """
    if a.family != b.family:
        return "benchmarks" if named or (a.of_bias and b.of_bias) else ""
    family = registry.by_name()[a.family]
    if a.task == b.task:
        return "scores" if named and (a.paper, a.way) == (b.paper, b.way) else ""
    contained, counterparts = family.contained, dict[str, str]()
    for member in (family, *family.variants):
        counterparts |= member.counterparts
    same_score = counterparts.get(a.score, a.score) == counterparts.get(b.score, b.score)
    if a.language == b.language and (a.task in contained) != (b.task in contained):
        return ""  # the items and answers of one are among the other's
    if not same_score:
        return "scores" if named else ""
    if a.language != b.language:
        names = [family.in_any_language(variable.task, variable.language) for variable in (a, b)]
        return "languages" if names[0] and names[0] == names[1] else ""
    return "forms" if a.group == b.group else "tasks"


def _pairs(variables: Sequence[Variable], named: bool) -> Iterator[tuple[Variable, Variable, str]]:
    for a, b in itertools.combinations(variables, 2):
        relation = _relation(a, b, named)
        if relation and a.values.keys() & b.values.keys():
            yield a, b, relation


def find(variables: Sequence[Variable], named: bool = False, correction: str = "holm") -> list[Correlation]:
    """The correlations of all scores that are related, over the models that have both.

    Args:
        variables: The scores.
        named: Whether they were named, so that all pairs are looked at.
        correction: See :func:`.differences.adjust`.

    Raises:
        BiasError: No two of them are related, or no model has both.
    """
    from lm_eval_bias.custom_metrics.rank_correlations import KINDS, rank_correlation

    found = []
    for first, second, relation in _pairs(variables, named):
        models = [model for model in first.values if model in second.values]
        x, y = ([own.values[model] for model in models] for own in (first, second))
        spearman, kendall = (rank_correlation(x, y, kind, "models") for kind in KINDS)
        found.append(Correlation(first, second, relation, models, spearman, kendall))
    if not found:
        tasks = sorted({variable.task for variable in variables})
        raise BiasError(
            "no two scores to correlate: no model was run on two tasks that can be correlated "
            f"({', '.join(tasks) or 'no task with scores'})"
        )
    found.sort(key=lambda one: list(RELATIONS).index(one.relation))
    adjusted = adjust([one.spearman.p for one in found], correction)
    return [replace(one, adjusted=p) for one, p in zip(found, adjusted, strict=True)]
