"""A task's scores in plain sentences, each with its uncertainty: what all benchmarks' sentences are made of.

What is particular to a benchmark is written by :meth:`lm_eval_bias.Benchmark.sentences`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from lm_eval_bias.core import catalog, registry
from lm_eval_bias.core.errors import ask, fault, kind_of
from lm_eval_bias.core.run_data import TaskRun, Value
from lm_eval_bias.custom_metrics.score import t_factor
from lm_eval_bias.report import numbers
from lm_eval_bias.runs import harness_results

LEGEND = "± or [ ] is a 95% interval"
# a share of texts or items that is worth a word
LARGE_SHARE = 0.1


def margin(value: Value) -> float:
    """Half of a score's 95% interval from its standard error; ``nan`` without one."""
    return t_factor(value.dof) * value.stderr


def with_margin(value: Value, unit: str = "", digits: int = 2, factor: float = 1.0) -> str:
    """A score with its 95% interval: ``56.7 ± 1.8%``, or ``0.38 [0, 1]`` where the interval isn't symmetric.

    An interval that would leave the score's range is cut to it, and so isn't symmetric.

    Args:
        value: The score.
        unit: What stands behind it.
        digits: After the point.
        factor: By which it is multiplied, 100 for percents of a share.
    """
    if math.isnan(value.value):
        return "not computable"
    text = _fixed(factor * value.value, digits)
    if value.interval is None:
        return f"{text}{unit}"
    cut = any(end in (value.low, value.high) for end in value.interval)
    below, above = (f"{factor * abs(end - value.value):.{digits}f}" for end in value.interval)
    if below == above and not cut:
        return f"{text} ± {below}{unit}"
    ends = (
        numbers.bound(factor * end) if end in (value.low, value.high) else _fixed(factor * end, digits)
        for end in value.interval
    )
    return f"{text}{unit} [{', '.join(ends)}]"


def _fixed(number: float, digits: int) -> str:
    """A number with that many digits after the point, and no minus in front of 0.

    >>> _fixed(-0.002, 2), _fixed(-0.52, 2)
    ('0.00', '-0.52')
    """
    return f"{round(number, digits) + 0.0:.{digits}f}"


def direction(value: Value, above: str, below: str, neutral: float = 0.0) -> str:
    """Which side of the neutral value a score is on, as far as its interval tells."""
    if math.isnan(value.value):
        return "no verdict without a value"
    if value.interval is None:
        return "no verdict without a standard error"
    if value.interval[0] <= neutral <= value.interval[1]:
        return f"the interval includes {neutral:g}, so there is no clear direction"
    return above if value.value > neutral else below


def sentence(text: str) -> str:
    """A text with a capital letter in front and a full stop behind, where it ends with no mark.

    >>> sentence("half of the texts are alike"), sentence("Is it?")
    ('Half of the texts are alike.', 'Is it?')
    """
    return f"{text[:1].upper()}{text[1:]}" + ("" if text.endswith((".", "?", "!")) else ".")


def answered(task: TaskRun, unanswered: str) -> float:
    """The share of the items that have an answer, by the score that is the share of the others; 1 where none is."""
    share = task.scores.get(unanswered)
    return 1.0 if share is None or math.isnan(share.value) else 1.0 - share.value


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
            neutral = "no neutral value" if value.neutral is None else f"neutral {numbers.bound(value.neutral)}"
            reads = f"; {value.direction}" if value.direction else ""
            lines.append(f"{name} {with_margin(value)} ({span}, {neutral}{reads}).")
    return lines


def of_task(task: TaskRun) -> list[str]:
    """What a task's scores say beside tables, each with its uncertainty; what can't be put into words is said."""
    benchmark = registry.by_name().get(task.benchmark)
    if benchmark is None:
        return [f"Not described in words: this version doesn't know the benchmark {task.benchmark!r}."]
    if withheld := registry.withheld(task.benchmark, task):
        return [sentence(withheld)]
    try:
        lines = benchmark.sentences(task, beside_tables=True) or plain_lines(task, benchmark.main)
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
    return "\n".join(block(task, beside_tables) for task in tasks)


def block(task: TaskRun, beside_tables: bool = False) -> str:
    """A task's name, and below it what its scores say."""
    benchmark = registry.get(task.benchmark)
    own = ask([], benchmark, benchmark.sentences, task, beside_tables=beside_tables)
    lines = own or plain_lines(task, benchmark.main)
    return "\n".join([f"{task.task}:", *(f"  {line}" for line in lines)])
