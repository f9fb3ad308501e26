"""Items of sample logs as lines of Every Eval Ever's instance-level format."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from typing import Any

from lm_eval_bias import registry
from lm_eval_bias.custom_metrics.score import Record
from lm_eval_bias.exports.directed_scores import Directed, is_main
from lm_eval_bias.runs import contributions, sample_logs
from lm_eval_bias.runs.run_data import Run, TaskRun
from lm_eval_bias.runs.sample_logs import Sample

_NO_RIGHT_ANSWER = "an item of this score has no right answer; is_correct is false because it needs a value"


def lines(sent: Sequence[Directed], run: Run, model: str, evaluation: str) -> tuple[list[str], list[str]]:
    """A line per item and main score that is the mean of its items' parts; and the names of those that aren't.

    A correlation, a ratio or ICAT has no part that would be an item's own.

    Raises:
        BiasError: A damaged sample log.
    """
    texts: list[str] = []
    without: list[str] = []
    for name, task in run.tasks.items():
        own = [one for one in sent if one.task is task and is_main(task, one.value.name)]
        if not own or task.samples is None or task.benchmark not in registry.by_name():
            continue
        rows, benchmark = list(sample_logs.with_requests(task.samples)), registry.get(task.benchmark)
        records = [benchmark.record(doc, answers) for (_, doc, answers), _ in rows]
        parts = {one.value.name: _parts(one, records) for one in own}
        without += [f"{name} {score}" for score, numbers in parts.items() if numbers is None]
        for place, (sample, requests) in enumerate(rows):
            item = {"evaluation_id": evaluation, "model_id": model, **_item(task, sample, requests)}
            for one in own:
                numbers = parts[one.value.name]
                if numbers is not None and math.isfinite(numbers[place]):
                    # texts of models hold anything: escaped, they survive any reader
                    texts.append(json.dumps(_line(one, numbers[place], item), allow_nan=False) + "\n")
    return texts, without


def _parts(one: Directed, records: Sequence[Record]) -> list[float] | None:
    """What each record adds to a score, ``nan`` for nothing; ``None`` unless their mean is the score."""
    by_name = {score.name: score for score in registry.get(one.task.benchmark).scores(records)}
    score = by_name.get(one.value.name)
    if score is None:
        return None
    parts = contributions.own_parts(score, records)
    if not contributions.is_mean(parts, one.value.value):
        return None
    by_place = dict(parts)
    return [by_place.get(place, math.nan) for place in range(len(records))]


def _text(answer: Any) -> str:
    return answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)


def _item(task: TaskRun, sample: Sample, requests: list[list[Any]]) -> dict[str, Any]:
    """What all lines about an item say."""
    benchmark = registry.get(task.benchmark)
    prompt, choices = contributions.prompts(requests)
    raw = prompt or "\n".join(choices)
    return {
        "schema_version": "0.3.0",
        "evaluation_name": task.task,
        "sample_id": "/".join(benchmark.key(sample.doc)),
        "sample_hash": hashlib.sha256(raw.encode("utf-8", "backslashreplace")).hexdigest(),
        "interaction_type": "single_turn",
        "input": {"raw": raw, "reference": [], "choices": choices if len(choices) > 1 else None},
        "output": {"raw": [_text(answer) for answer in sample.answers]},
        "messages": None,
        "answer_attribution": [],
    }


def _line(one: Directed, part: float, item: dict[str, Any]) -> dict[str, Any]:
    """An item's part in a score."""
    has_answer = one.value.higher_is_better is not None
    metadata = {
        "score_is": f"the item's part of {one.value.name}, which is their mean"
        + (", with its sign: the result is the mean's distance from the neutral value" if one.is_distance else ""),
        **({} if has_answer else {"is_correct": _NO_RIGHT_ANSWER}),
    }
    best = one.value.high if one.value.higher_is_better else one.value.low
    return {
        **item,
        "evaluation_result_id": f"{one.task.task}/{one.name}",
        "evaluation": {"score": part, "is_correct": has_answer and part == best},
        "metadata": metadata,
    }
