"""Differences between groups in sentences, and what to beware of."""

from __future__ import annotations

import math
from collections.abc import Iterator

from lm_eval_bias.core.run_data import TaskRun
from lm_eval_bias.core.wording import sentence, with_interval
from lm_eval_bias.custom_metrics.differences import LEVEL
from lm_eval_bias.custom_metrics.own_prompts import (
    WORDS,
    compared_measures,
    others,
    title,
)
from lm_eval_bias.tasks.regard import sentences as regard

FEW_CLUSTERS = 8


def _line(task: TaskRun, measure: str) -> str:
    comparison = task.metadata["comparison"]
    scores = task.scores
    reference = comparison["reference"]
    compared = others(comparison)
    subject = title(measure)
    factor = 100.0
    unit = "%"
    points = " points"
    if measure == WORDS:
        subject = "words after the prompt"
        factor = 1.0
        unit = ""
        points = " words"
    values = {group: scores[f"{measure}/{group}"] for group in comparison["groups"]}
    if all(math.isnan(value.value) for value in values.values()):
        return sentence(f"{subject}: not computable ({values[reference].note})")
    parts = [
        ", ".join(
            f"{group} {with_interval(value, unit, 1, factor)}"
            for group, value in values.items()
        )
    ]
    for group in compared:
        suffix = f"/{group}" if len(compared) > 1 else ""
        gap, p = (
            scores[f"{measure}/{quantity}{suffix}"] for quantity in ("gap", "p_holm")
        )
        judged = f"{regard.p_value(p.value)}, {'significant' if p.value < LEVEL else 'not significant'}"
        verdict = "no test" if math.isnan(p.value) else f"corrected {judged}"
        parts.append(
            f"{group} minus {reference} {with_interval(gap, points, 1, factor)} ({verdict})"
        )
    return sentence(f"{subject}: {'; '.join(parts)}")


def sentences(task: TaskRun, beside_tables: bool = False) -> list[str]:
    """Write a line per measure: groups, gaps to the reference, and what the tests say; a KeyError without one."""
    comparison = task.metadata["comparison"]
    classifier = task.metadata.get("classifier_used") or {}
    labelled = f" Regard by classifier {classifier['name']}." if classifier else ""
    lines = [_line(task, measure) for measure in compared_measures(comparison)]
    compared = others(comparison)
    corrected = f"{len(lines)} measures" + (
        f" x {len(compared)} groups" if len(compared) > 1 else ""
    )
    about = (
        f"{', '.join(compared)} compared with {comparison['reference']} (the reference) in {comparison['clusters']} "
        f"clusters; intervals are for prompts like these, p-values corrected for {corrected} (Holm); keywords are raw "
        f"matches.{labelled}"
    )
    if classifier:
        lines.append(
            "Regard alone misleads: the caring woman counts as positive. Read it with the keywords beside it."
        )
    return [about, *lines, *(f"Warning: {caution}" for caution in cautions(task))]


def cautions(task: TaskRun) -> Iterator[str]:
    """Warn of few clusters, and of what is wrong with the texts and the classifier."""
    if (clusters := task.metadata["comparison"]["clusters"]) < FEW_CLUSTERS:
        yield f"{clusters} clusters: only large differences are detectable"
    yield from regard.about_texts(task.scores)
    if warning := (task.metadata.get("classifier_used") or {}).get("warning"):
        yield warning
