"""Models from runs: one row a model, and of its runs the one that counts for each task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lm_eval_bias.core import comparability
from lm_eval_bias.core.comparability import Fact, shown
from lm_eval_bias.core.run_data import Run, TaskRun
from lm_eval_bias.runs import measurement
from lm_eval_bias.runs.harness_results import presentable

_LONGEST = 40  # characters of a fact that tells two models of one name apart


@dataclass
class BoardModel:
    """A model, with everything that was run of it.

    Attributes:
        name: What runs call it.
        runs: Its runs, in the order in which they were read.
        tasks: By task the run that counts, and its result: of runs without changed options that with most documents,
            of these the newest.
        variant: In what it differs from the first model of its name; empty for that one.
    """

    name: str
    runs: list[Run]
    tasks: Mapping[str, tuple[Run, TaskRun]] = field(default_factory=dict)
    variant: str = ""

    @property
    def label(self) -> str:
        """Its name, with what tells it from others of this name."""
        return f"{self.name} ({self.variant})" if self.variant else self.name

    @property
    def prompt(self) -> str:
        """Whether prompts used a chat template, here or at a chat server."""
        records = [record for run in self.runs for record in run.records]
        chats = [r.prompt.template or "chat" in (r.model.kind or "") for r in records]
        return "chat template" if any(chats) else "no chat template"

    @property
    def parameters(self) -> int | None:
        """Their number; ``None`` where no file tells it."""
        return next(
            (n for run in self.runs if (n := run.record.model.parameters)), None
        )

    @property
    def date(self) -> str:
        """Day of the newest run that counts; empty if none is known."""
        days = [run.record.date or "" for run, _ in self.tasks.values()]
        return max(days, default="")

    def others(self, task: str) -> int:
        """Count the runs of a task that don't count."""
        return sum(task in run.tasks for run in self.runs) - 1


def _drawn() -> list[Fact]:
    """List the facts by which runs with generated texts are ranked separately, seeds aside."""
    return [
        fact
        for fact in comparability.facts().values()
        if fact.ranks and fact.when == "generated"
    ]


def _differences(run: Run, other: Run) -> Iterator[tuple[Fact, object, object]]:
    """Yield the facts that make two runs different models."""
    identity = [fact for fact in comparability.facts().values() if fact.board]
    for fact, here, there in comparability.differing(
        run.record, other.record, identity
    ):
        # weights that one of them doesn't prove are taken for the same
        if fact.joins != "known" or (here and there):
            yield fact, here, there
    written = [
        fact
        for fact in _drawn()
        for name in run.tasks.keys() & other.tasks
        if measurement.takes_part(fact, run.tasks[name])
    ]
    yield from comparability.differing(run.record, other.record, dict.fromkeys(written))


def _words(run: Run, first: Run) -> str:
    """Describe how a model differs from the first of its name."""
    parts = []
    for fact, here, there in _differences(run, first):
        if here and not there:
            parts.append(f"with {fact.label}")
        elif there and not here:
            parts.append(f"without {fact.label}")
        else:
            parts.append(f"{fact.label} {shown(here)[:_LONGEST]}")
    return ", ".join(parts)


def _counts_more(run: Run, task: TaskRun) -> tuple[bool, float, str, str]:
    """Return the sort key of runs for a task: the highest one counts."""
    changed = [o for o in measurement.changed_options(task) if o.name != "items"]
    return not changed, task.documents, run.record.date or "", run.path.name


def models(runs: Sequence[Run]) -> list[BoardModel]:
    """Group runs by model, in the order in which they were read.

    Args:
        runs: A file each.

    Returns:
        Models whose labels distinguish them.
    """
    found: list[BoardModel] = []
    for run in presentable(runs):
        namesakes = [model for model in found if model.name == run.name]
        for model in namesakes:
            if not any(next(_differences(run, r), None) for r in model.runs):
                model.runs.append(run)
                break
        else:
            variant = _words(run, namesakes[0].runs[0]) if namesakes else ""
            found.append(BoardModel(run.name, [run], variant=variant))
    labels: dict[str, int] = {}
    for model in found:
        labels[model.label] = number = labels.get(model.label, 0) + 1
        if number > 1:
            model.variant = f"{model.variant}, {number}".removeprefix(", ")
        model.tasks = _counting(model.runs)
    return found


def _counting(runs: Sequence[Run]) -> dict[str, tuple[Run, TaskRun]]:
    """Return the run that counts, by task."""
    best: dict[str, tuple[Run, TaskRun]] = {}
    for run in runs:
        for name, task in run.tasks.items():
            if name not in best or _counts_more(run, task) > _counts_more(*best[name]):
                best[name] = (run, task)
    return best
