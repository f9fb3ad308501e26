"""What has to be read before a task's numbers: few items or samples, or a model that answers by guessing."""

from __future__ import annotations

from lm_eval_bias.core import numbers, registry
from lm_eval_bias.core.run_data import Run, TaskRun
from lm_eval_bias.core.wording import answered
from lm_eval_bias.harness import servers
from lm_eval_bias.runs import settings

_RANDOM = {"bias-chance", servers.DUMMY}  # model types that answer at random


def trial(task: TaskRun) -> str:
    """Whether a task was run on a part of its items or samples, and on how large a one; empty where it wasn't."""
    samples = "{} of {} samples per prompt".format(*task.fewer_samples) if task.fewer_samples else ""
    parts = [part for part in (settings.part(task), samples) if part]
    return ", ".join(["trial run", *parts]) if parts else ""


def _guessing(run: Run, task: TaskRun) -> str:
    """Whether a model does no better than guessing in what it answered, as far as its interval tells."""
    if (model := run.provenance.get("model")) in _RANDOM:
        return f"chance level: {model} answers at random"
    benchmark = registry.by_name().get(task.benchmark)
    name, chance = benchmark.knowledge if benchmark is not None and benchmark.knowledge else ("", 0.0)
    value = task.scores.get(name)
    share = answered(task, benchmark.unanswered) if benchmark is not None else 1.0
    if value is None or not (value.interval[0] if value.interval else value.value) <= chance * share or not share:
        return ""
    of_answers = f" of the {100 * share:.0f}% that were answered" if share < 1 else ""
    return f"chance level: {name} {numbers.cell(value)}, by guessing{of_answers} {numbers.number(chance, value.unit)}"


def kinds(run: Run, task: TaskRun) -> list[str]:
    """What stands in front of a task's numbers, in two words each."""
    return ["trial run"] * bool(trial(task)) + ["chance level"] * bool(_guessing(run, task))


def of(run: Run, task: TaskRun) -> str:
    """What stands in front of a task's numbers; empty where nothing has to."""
    return "; ".join(filter(None, (trial(task), _guessing(run, task))))
