"""A task's scores in plain sentences: label, value with interval, and verdict of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lm_eval_bias.core import numbers
from lm_eval_bias.core.benchmark import UnknownBenchmark
from lm_eval_bias.core.run_data import TaskRun, Value
from lm_eval_bias.core.wording import sentence, with_interval
from lm_eval_bias.custom_metrics.score import ScoreSpec, joined
from lm_eval_bias.runs import diagnostics

LEGEND = "[ ] is a 95% interval"


def of_score(value: Value) -> str:
    """Describe a score with its interval and its verdict.

    >>> gap = Value("gap", 0.4, interval=(0.3, 0.5), neutral=0.0, favours=("favours the old", "favours the young"))
    >>> of_score(gap)
    'Gap 0.400 [0.300, 0.500], favours the old.'
    """
    verdict = value.verdict
    says = joined(verdict.claim, verdict.reason)
    return sentence(f"{value.title} {with_interval(value)}{says and f', {says}'}")


def meanings(scores: Iterable[ScoreSpec]) -> str:
    """Say what each name of a score means."""
    said = (f"{one.name}: {one.title}, {numbers.target_text(one)}" for one in scores)
    return "; ".join(dict.fromkeys(said))


def of_task(task: TaskRun) -> list[str]:
    """Describe a task's main scores, or the reason why they can't be described."""
    if isinstance(task.definition, UnknownBenchmark):
        return [
            f"Not described in words: this version doesn't know the benchmark {task.benchmark!r}."
        ]
    if withheld := task.withheld:
        return [sentence(withheld)]
    return [of_score(value) for value in task.main()]


def after_diagnostics(task: TaskRun) -> list[str]:
    """Describe a task's warnings and then its main scores."""
    found = diagnostics.about_answers(task)
    warnings = [one.message for one in found if one.code == "of_benchmark"]
    lines = filter(None, (task.warning(), *warnings))
    return [*map(sentence, lines), *of_task(task)]


def describe(tasks: Sequence[TaskRun]) -> str:
    """Describe what the scores of some tasks mean, task by task; empty if there is none."""
    blocks = ([f"{task.task}:", *after_diagnostics(task)] for task in tasks)
    return "\n".join("\n  ".join(block) for block in blocks)
