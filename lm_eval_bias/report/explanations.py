"""One score of a run in full, for the terminal: what it means, how it came about, what would change it."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator
from typing import Any

from lm_eval_bias import registry
from lm_eval_bias.report import caveats, numbers
from lm_eval_bias.report.sentences import sentence
from lm_eval_bias.runs import contributions, printable_runs
from lm_eval_bias.runs.contributions import Contributions, Item
from lm_eval_bias.runs.run_data import Run, TaskRun, Value

_WIDTH = 100
_SHORT = 240  # characters of a prompt, whose middle is left out
_WORST = 3


def chosen(task: TaskRun) -> str:
    """The main score that is the most clearly off its neutral value; the first where none has one.

    Args:
        task: A task with scores.
    """
    benchmark = registry.by_name().get(task.benchmark)
    main = [name for name in (benchmark.main if benchmark else ()) if name in task.scores] or list(task.scores)
    return max(main, key=lambda name: _distance(task.scores[name]))


def _distance(value: Value) -> float:
    """How far a value is off its neutral value, in halves of its interval; -1 where nobody can tell."""
    if value.neutral is None or value.interval is None or value.higher_is_better is not None:
        return -1.0
    half = (value.interval[1] - value.interval[0]) / 2
    return abs(value.value - value.neutral) / half if half > 0 else -1.0


def text(run: Run, task: TaskRun, name: str, examples: int) -> str:
    """Everything about a score.

    Args:
        run: The run.
        task: One of its tasks.
        name: One of the task's scores.
        examples: How many items are shown, where the run has a sample log.

    Raises:
        BiasError: A damaged sample log.
    """
    value = task.scores[name]
    found = None
    if task.samples is not None and examples:
        found = contributions.strongest(task.samples, value, examples)
    blocks = [
        [f"{name} of {task.task}, {run.name}"],
        _block("What it means", _meaning(value)),
        _block("In this run", _here(run, task, value)),
        _block("How it was computed", _origin(task, value, found)),
        _block("Its worst groups", _groups(task, value)),
        _items(task, found),
        _block("What would change the verdict", _verdict(value)),
        _block("What it can't support", _limits(task)),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _block(title: str, lines: Iterator[str]) -> list[str]:
    wrapped = [
        textwrap.fill(printable_runs.one_line(line), _WIDTH, initial_indent="  ", subsequent_indent="  ")
        for line in lines
    ]
    return [title, *wrapped] if wrapped else []


def _meaning(value: Value) -> Iterator[str]:
    unit = f" ({value.unit})" if value.unit else ""
    neutral = "no neutral value" if value.neutral is None else f"neutral at {numbers.bound(value.neutral)}"
    yield f"{sentence(value.summary or value.name)} From {numbers.score_range(value)}{unit}; {neutral}."
    if value.direction:
        yield sentence(value.direction)
    if value.source:
        yield f"Source: {value.source}."


def _here(run: Run, task: TaskRun, value: Value) -> Iterator[str]:
    if math.isnan(value.value):
        yield f"Not computable: {value.note or 'the file gives no reason'}."
        return
    yield (
        f"{numbers.cell(value)}, with its 95% interval in brackets."
        if value.interval
        else (f"{numbers.cell(value)}, without an interval{': ' + value.note if value.note else ''}.")
    )
    if value.interval and value.note:
        yield f"Beware: {value.note}."
    if before := caveats.of(run, task):
        yield f"Read first: {before}."


def _origin(task: TaskRun, value: Value, found: Contributions | None) -> Iterator[str]:
    if found is not None and found.documents:
        which = "" if found.documents == task.documents else f" of {task.documents:,}"
        mean = ", as the mean of their values" if found.are_averaged else ""
        yield f"From {found.documents:,}{which} scored items{mean}."
        if not found.are_averaged:
            yield (
                "The score is not a plain mean of the items' values. An item that contributes more than the score "
                "pulls it up, one that contributes less pulls it down."
            )
    else:
        yield f"From {task.documents:,} scored items."
    benchmark = registry.by_name().get(task.benchmark)
    if benchmark is not None and benchmark.card is not None:
        yield benchmark.card.uncertainty
    if not math.isnan(value.stderr):
        degrees = "degree" if value.dof == 1 else "degrees"
        freedom = "" if math.isinf(value.dof) else f" with {value.dof:.3g} {degrees} of freedom"
        yield f"Standard error {numbers.significant(value.stderr)}{freedom}."


def _groups(task: TaskRun, value: Value) -> Iterator[str]:
    """The same score over parts of the items, those furthest from neutral first."""
    if (neutral := value.neutral) is None:
        return
    kind = value.name.rpartition("/")[2]
    parts = [
        other
        for other in task.scores.values()
        if other.name != value.name and other.name.rpartition("/")[2] == kind and not math.isnan(other.value)
        and other.name.startswith(value.name.rpartition("/")[0]) and other.neutral == neutral
    ]  # fmt: skip
    for other in sorted(parts, key=lambda part: -abs(part.value - neutral))[:_WORST]:
        yield f"{other.name}: {numbers.cell(other)}"


def _items(task: TaskRun, found: Contributions | None) -> list[str]:
    if found is None:
        return ["Items", "  None to show: the run has no sample log (--log_samples)."] if task.samples is None else []
    if not found.items:
        return ["Items", "  None to show: no single item contributes to this score by itself."]
    lines = [f"The items that move it most (texts may offend), {len(found.items)} of {found.documents:,}"]
    for item in found.items:
        lines += _item(item)
    return lines


def _item(item: Item) -> list[str]:
    prompt, added = contributions.prompts(item.requests)
    lines = [f"  {printable_runs.one_line(item.name)}: contributes {numbers.significant(item.part)}"]
    if prompt:
        lines.append(f"    {_shortened(prompt)}")
    if len(added) == len(item.answers):
        answered = sorted(zip(added, item.answers, strict=True), key=lambda pair: -_number(pair[1]))
        lines += [f"      {_shortened(text)}  {_answer(answer)}".rstrip() for text, answer in answered[:_WORST]]
        if len(answered) > _WORST:
            lines.append(f"      and {len(answered) - _WORST} more")
    return lines


def _number(answer: Any) -> float:
    first = answer[0] if isinstance(answer, (tuple, list)) and answer else answer
    return float(first) if isinstance(first, (int, float)) else 0.0


def _answer(answer: Any) -> str:
    """A log-likelihood or probability, a text, or the first of several texts with its label."""
    if isinstance(answer, (tuple, list)):
        first = answer[0] if answer else ""
        if isinstance(first, (int, float)):
            return f"→ {first:.4g}"
        parts = list(first) if isinstance(first, (tuple, list)) else [first]
        label = f" ({parts[1]})" if len(parts) > 1 else ""
        return f"→ {_shortened(str(parts[0] if parts else ''))}{label}, the first of {len(answer)}"
    return f"→ {_shortened(str(answer))}"


def _shortened(text: str) -> str:
    line = printable_runs.one_line(text.strip())
    return line if len(line) <= _SHORT else f"{line[: _SHORT // 2]} … {line[-_SHORT // 2 :]}"


def _verdict(value: Value) -> Iterator[str]:
    if value.interval is None or value.neutral is None or math.isnan(value.value):
        if value.neutral is None:
            yield "It has no neutral value: only a comparison with another model or condition shows whether it is high."
        return
    low, high = value.interval
    off, half = abs(value.value - value.neutral), (high - low) / 2
    if value.higher_is_better is not None:
        yield f"{numbers.bound(value.neutral)} is best. For a verdict, compare it with a bound or another model."
    elif low <= value.neutral <= high:
        yield (
            f"The interval includes {numbers.bound(value.neutral)}: there is no clear direction. With this value, a "
            "clear one would take "
            + (f"an interval {half / off:.1f} times narrower, from about {(half / off) ** 2:.0f} times the evidence."
               if off > 0 else "another value.")
        )  # fmt: skip
    else:
        end = low if value.value > value.neutral else high
        yield (
            f"The whole interval is {'above' if value.value > value.neutral else 'below'} "
            f"{numbers.bound(value.neutral)}; its nearer end is {numbers.significant(abs(end - value.neutral))} away. "
            f"An interval {off / half:.1f} times wider would reach it."
        )


def _limits(task: TaskRun) -> Iterator[str]:
    benchmark = registry.by_name().get(task.benchmark)
    if benchmark is None or benchmark.card is None:
        return
    yield benchmark.card.cannot
    for caution in benchmark.cautions(task):
        yield sentence(caution)
