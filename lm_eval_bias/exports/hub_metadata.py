"""The Hugging Face Hub's metadata: ``model-index`` with a section for a model card, and ``.eval_results/*.yaml``."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import Any

import yaml

from lm_eval_bias.core import __version__, numbers
from lm_eval_bias.core.errors import BiasError
from lm_eval_bias.core.run_data import Problem, Run, TaskRun, Value
from lm_eval_bias.core.wording import score_label
from lm_eval_bias.custom_metrics.score import finite
from lm_eval_bias.exports import directed_scores
from lm_eval_bias.exports.directed_scores import Directed, Export, MeasureSettings, Omitted
from lm_eval_bias.report import content, templates
from lm_eval_bias.runs import remarks

_BETTER = {True: "higher is better", False: "lower is better", None: None}


def _yaml(data: Any) -> str:
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=120)


_LOCAL = re.compile(r"(?<![\w.:/~])[~.]{0,2}/(?:[^\s/,='\"]+/)*([^\s/,='\"]+)/?")


def without_paths(text: str) -> str:
    """A command without this machine's folders: of each path its last part.

    >>> without_paths("run --model_args pretrained=/models/llama,dtype=auto -o ./out/x --url http://host/v1")
    'run --model_args pretrained=llama,dtype=auto -o x --url http://host/v1'
    """
    return _LOCAL.sub(r"\1", text)


def _rounded(value: Any) -> Any:
    """Numbers with six significant digits."""
    if isinstance(value, list | tuple):
        return [_rounded(one) for one in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _refuse_trials(runs: Sequence[Run], settings: MeasureSettings) -> None:
    for run in runs:
        for task in run.tasks.values():
            if not settings.allow_trial and (trial := remarks.trial(run, task)):
                raise BiasError(
                    f"{run.path}: {task.task} is a {trial}: its numbers aren't the model's; run the whole task, or add "
                    "--allow-trial"
                )


def _one_model(runs: Sequence[Run], settings: MeasureSettings) -> str:
    if not settings.name and len(runs) > 1:
        raise BiasError(
            f"this format describes one model, but there are {len(runs)} runs ({', '.join(run.name for run in runs)}): "
            "name one of them, or give --name NAME if all are runs of that one model"
        )
    return settings.name or runs[0].name


def model_card(runs: Sequence[Run], problems: Sequence[Problem], settings: MeasureSettings) -> Export:
    """Write a model card's metadata and its section on bias, in one file that is a card by itself.

    Raises:
        BiasError: The runs may be of several models, or of a part of the items.
    """
    name = _one_model(runs, settings)
    _refuse_trials(runs, settings)
    runs = [replace(run, command=without_paths(run.command)) for run in runs]
    results: list[dict[str, Any]] = []
    left_out: list[Omitted] = []
    for run in runs:
        kind = "fill-mask" if run.provenance.get("model") == "hf-mlm" else "text-generation"
        for task, own in groupby(directed_scores.values(run, settings.scores), itemgetter(0)):
            scores = [value for _, value in own]
            lacking = [value for value in scores if math.isnan(value.value)]
            left_out += [Omitted(task, value, value.note or "the file gives no reason") for value in lacking]
            metrics = [_metric(task, value) for value in scores if not math.isnan(value.value)]
            if metrics:
                commits = {pin[1] for pin in map(directed_scores.PIN.match, directed_scores.data_files(task)) if pin}
                data_set = {
                    "name": f"{directed_scores.title(task)} ({task.task})",
                    "type": task.benchmark,
                    "config": task.task,
                    **({"revision": commits.pop()} if len(commits) == 1 else {}),
                }
                results.append({"task": {"type": kind}, "dataset": data_set, "metrics": metrics})
    metadata = {"model-index": [{"name": name, "results": results}]}
    section = templates.render(
        "model_card.md.j2",
        report=content.build(runs, problems),
        lacking=directed_scores.by_reason(left_out),
    )
    number = sum(len(one["metrics"]) for one in results)
    return Export({"": f"---\n{_yaml(metadata)}---\n\n{section}"}, number, left_out)


def _metric(task: TaskRun, value: Value) -> dict[str, Any]:
    """A score as it was measured; its error, neutral value and direction are arguments."""
    has_error = not math.isnan(value.stderr)
    arguments = {
        "standard_error": _rounded(finite(value.stderr)),
        "standard_error_method": directed_scores.stderr_method(task) if has_error else None,
        "degrees_of_freedom": _rounded(finite(value.dof)) if has_error else None,
        "interval_95": _rounded(value.interval),
        "neutral_value": value.neutral,
        "better": _BETTER[value.higher_is_better],
        "reads_as": value.direction,
        "unit": value.unit,
        "note": value.note,
        "documents": task.documents,
        "documents_of_the_task": task.items or None,
    }
    name = f"{task.task}: {score_label(task.benchmark, value.name)}"
    return {"type": value.name, "name": name, "value": _rounded(value.value), "args": directed_scores.plain(arguments)}


def eval_results(runs: Sequence[Run], problems: Sequence[Problem], settings: MeasureSettings) -> Export:
    """Write entries for ``.eval_results/`` of a model's repository.

    Raises:
        BiasError: The runs may be of several models, or of a part of the items; or no data set was named, which
            nobody but the user knows.
    """
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", settings.dataset):
        raise BiasError(
            "hf-eval-results needs --dataset OWNER/NAME: the data set on the Hub whose leaderboard gets the results "
            "(its eval.yaml must list the tasks)"
        )
    _one_model(runs, settings)
    _refuse_trials(runs, settings)
    parts = [(run, *directed_scores.split(run, settings.scores)) for run in runs]
    entries = [_entry(run, one, settings.dataset) for run, sent, _ in parts for one in sent]
    return Export({"": _yaml(entries)}, len(entries), [one for _, _, omitted in parts for one in omitted])


def _entry(run: Run, one: Directed, dataset: str) -> dict[str, Any]:
    """A score; notes say what the format has no place for."""
    value, date = one.value, run.provenance.get("date")
    notes = ["lower is better" if one.lower_is_better else "higher is better"]
    if one.is_distance:
        neutral = numbers.bound(value.neutral)
        notes.append(f"distance of {value.name} = {value.value:.6g} from its neutral value {neutral}")
    if one.interval is not None:
        notes.append(f"95% interval {one.interval[0]:.6g} to {one.interval[1]:.6g}")
    if not math.isnan(value.stderr):
        method = directed_scores.stderr_method(one.task)
        notes.append(f"standard error {value.stderr:.6g}{f' ({method})' if method else ''}")
    if one.task.documents != one.task.items:
        notes.append(f"{one.task.documents} of {one.task.items or 'an unknown number of'} documents")
    notes.append(f"lm-eval-bias {run.provenance.get('lm-eval-bias') or __version__}")
    return {
        "dataset": {"id": dataset, "task_id": f"{one.task.base}.{one.name.replace('/', '.')}"},
        "value": _rounded(one.number),
        **({"date": str(date)} if date else {}),
        "notes": "; ".join(notes),
    }
