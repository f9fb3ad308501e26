"""A task's scores in plain sentences, each with its uncertainty.

What is particular to a benchmark is written by :meth:`lm_eval_bias.Benchmark.sentences`.
"""

from __future__ import annotations

from collections.abc import Sequence

from lm_eval_bias.core import numbers
from lm_eval_bias.core.benchmark import Benchmark, UnknownBenchmark
from lm_eval_bias.core.errors import fault, kind_of
from lm_eval_bias.core.run_data import Run, TaskRun
from lm_eval_bias.core.wording import sentence, with_interval
from lm_eval_bias.custom_metrics.score import joined

LEGEND = "[ ] is a 95% interval"


def plain_lines(task: TaskRun) -> list[str]:
    """Write a line per main score, for benchmarks that have no sentences of their own."""
    lines = []
    for value in task.main():
        span = numbers.score_range(value)
        reads = joined(f"{span}, {numbers.target_text(value)}", numbers.reads_as(value))
        lines.append(f"{value.name} {with_interval(value)} ({reads}).")
    return lines


def of_task(task: TaskRun, beside_tables: bool = True) -> list[str]:
    """Say what a task's scores mean, each with its uncertainty, or why they can't be put into words.

    Args:
        task: The task.
        beside_tables: Whether the output has tables beside the words.
    """
    benchmark: Benchmark = task.definition
    if isinstance(benchmark, UnknownBenchmark):
        return [
            f"Not described in words: this version doesn't know the benchmark {task.benchmark!r}."
        ]
    if withheld := task.withheld:
        return [sentence(withheld)]
    try:
        lines = benchmark.presentation.sentences(task, beside_tables)
    except (KeyError, AttributeError, TypeError, ValueError) as error:
        return [
            f"Not described in words: the file lacks a score or an option of this version ({kind_of(error)})."
        ]
    except Exception as error:  # other people's code can fail in any way
        fault(f"the benchmark {benchmark.name}: sentences failed ({kind_of(error)})")
        lines = ()
    return list(lines) or plain_lines(task)


def after_caveats(run: Run, task: TaskRun, beside_tables: bool = True) -> list[str]:
    """Say what must be known before a task's scores are believed, then what they say."""
    caveat = task.caveat()
    return [*([sentence(caveat)] if caveat else []), *of_task(task, beside_tables)]


def describe(run: Run, tasks: Sequence[TaskRun], beside_tables: bool = False) -> str:
    """Say what the scores of a run's tasks mean, task by task; empty if there is none.

    Args:
        run: The run.
        tasks: Those of its tasks that are wanted.
        beside_tables: Whether the output has tables beside the words.
    """
    blocks = (
        [f"{task.task}:", *after_caveats(run, task, beside_tables)] for task in tasks
    )
    return "\n".join("\n  ".join(block) for block in blocks)
