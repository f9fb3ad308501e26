"""A task's scores in plain sentences, each with its uncertainty.

What is particular to a benchmark is written by :meth:`lm_eval_bias.Benchmark.sentences`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from lm_eval_bias.core import catalog, numbers, registry
from lm_eval_bias.core.errors import fault, kind_of
from lm_eval_bias.core.run_data import TaskRun
from lm_eval_bias.core.wording import sentence, with_interval
from lm_eval_bias.runs import harness_results

LEGEND = "[ ] is a 95% interval"


def plain_lines(task: TaskRun, names: Sequence[str] = ()) -> list[str]:
    """A line per score, for benchmarks that have no sentences of their own.

    Args:
        task: The task.
        names: Its main scores; all of its scores if empty.
    """
    lines = []
    for name in names or task.scores:
        if name in task.scores:
            value = task.scores[name]
            span = numbers.score_range(value)
            reads = f"; {value.direction}" if value.direction else ""
            lines.append(f"{name} {with_interval(value)} ({span}, {numbers.aim(value)}{reads}).")
    return lines


def of_task(task: TaskRun, beside_tables: bool = True) -> list[str]:
    """What a task's scores say, each with its uncertainty; what can't be put into words is said.

    Args:
        task: The task.
        beside_tables: Whether the output has tables beside the words.
    """
    benchmark = registry.by_name().get(task.benchmark)
    if benchmark is None:
        return [f"Not described in words: this version doesn't know the benchmark {task.benchmark!r}."]
    if withheld := registry.withheld(task.benchmark, task):
        return [sentence(withheld)]
    try:
        lines = benchmark.sentences(task, beside_tables=beside_tables) or plain_lines(task, benchmark.main)
    except KeyError as error:
        return [f"Not described in words: the file lacks the score {error}."]
    except (AttributeError, TypeError, ValueError) as error:
        return [f"Not described in words: its metadata differs from what this version writes ({error})."]
    except Exception as error:  # other people's code can fail in any way
        fault(f"the benchmark {benchmark.name}: sentences failed ({kind_of(error)})")
        lines = plain_lines(task, benchmark.main)
    return list(lines)


def of_results(results: Mapping[str, Mapping[str, Any]], configs: Mapping[str, Mapping[str, Any]]) -> list[TaskRun]:
    """The tasks of ours in a run that was just made.

    Args:
        results: The ``results`` of a harness run: scores per task.
        configs: Its ``configs``, whose ``metric_list`` describes the scores.
    """
    tasks = []
    for name, entries in results.items():
        entry = catalog.entries().get(name)
        config = configs.get(name, {})
        metadata = config.get("metadata") or {}
        own = entry if entry and entry.kind == "task" and entry.path else None  # not the harness's own, with its errors
        benchmark = metadata.get("benchmark") or (own.benchmark if own else None)
        if benchmark in registry.by_name():
            meanings = {metric["metric"]: metric for metric in config.get("metric_list") or []}
            scores = {
                score: harness_results.value_of(score, *pair, meanings.get(score, {}))
                for score, pair in harness_results.numbers(entries).items()
            }
            documents = int(entries.get("sample_len") or 0)
            usual = catalog.usual_repeats(name)
            tasks.append(TaskRun(name, benchmark, "", "", documents, 0, metadata, scores, usual_repeats=usual))
    return tasks


def describe(tasks: Sequence[TaskRun], beside_tables: bool = False) -> str:
    """What the scores of tasks say, task by task; empty if there is none.

    Args:
        tasks: Of one run.
        beside_tables: Whether the output has tables beside the words.
    """
    lines = ([f"{task.task}:", *(f"  {line}" for line in of_task(task, beside_tables))] for task in tasks)
    return "\n".join(itertools.chain.from_iterable(lines))
