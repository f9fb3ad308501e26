"""Differences between groups in sentences, and what to beware of."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import cast

from lm_eval_bias.custom_metrics.own_prompts import Comparison, Measure, compared_measures, others
from lm_eval_bias.custom_metrics.resampling import LEVEL
from lm_eval_bias.errors import BiasError
from lm_eval_bias.report import numbers
from lm_eval_bias.report.sentences import LARGE_SHARE
from lm_eval_bias.runs.run_data import TaskRun, Value
from lm_eval_bias.tasks.regard.sentences import QUALITY, left_out, measure_label, p_value

FEW_CLUSTERS = 8
MISLEADS = (
    "Regard alone misleads: a stereotype such as the caring woman counts as positive. Read it with the keywords beside "
    "it (Kraft et al. 2022, section 5)."
)

_QUANTITIES = {
    "gap": "difference between groups",
    "p": "p-value",
    "p_holm": "p-value, corrected",
    "p_all": "p-value of all groups",
    "p_all_holm": "p-value of all groups, corrected",
}


def score_label(score: str) -> str:
    """What people call a score.

    >>> score_label("negative/gap"), score_label("words/gap/nurses"), score_label("caregiving/men")
    ('negative texts, difference between groups', 'length in words, difference between groups, nurses', \
'caregiving words, men')
    """
    measure, _, rest = score.partition("/")
    if not rest:
        return QUALITY.get(score, score)
    quantity, _, group = rest.partition("/")
    return ", ".join(filter(None, (measure_label(measure), _QUANTITIES.get(quantity, quantity), group)))


def comparison_of(task: TaskRun) -> Comparison:
    """What was compared, as the run's file says it.

    Raises:
        BiasError: It doesn't.
    """
    raw = task.metadata.get("comparison")
    if isinstance(raw, Mapping):
        lists = [raw.get(name) for name in ("groups", "facets", "remarks")]
        texts = all(isinstance(own, list) and all(isinstance(text, str) for text in own) for own in lists)
        if texts and raw.get("reference") in raw["groups"] and isinstance(raw.get("clusters"), int):
            return cast(Comparison, dict(raw))
    raise BiasError("the file doesn't say which groups were compared")


def shown(value: Value | None, is_length: bool, signed: bool = False) -> str:
    """A share in percent (a number of words) with its interval; that of these prompts alone where there is no other."""
    if value is None or math.isnan(value.value):
        return numbers.NONE
    factor, sign = (1.0 if is_length else 100.0), "+" if signed else ""

    def text(number: float) -> str:
        return f"{round(factor * number, 1) + 0.0:{sign}.1f}"

    ends = value.interval or value.fixed_interval
    if ends is None:
        return f"{text(value.value)} (no interval)"
    return f"{text(value.value)} [{text(ends[0])}, {text(ends[1])}{'' if value.interval else ', these prompts alone'}]"


def score_name(measure: Measure, quantity: str, group: str, comparison: Comparison) -> str:
    """The name of a gap to the reference, or of its test."""
    return f"{measure.name}/{quantity}" + (f"/{group}" if len(others(comparison)) > 1 else "")


def _pair(scores: Mapping[str, Value], measure: Measure, group: str, comparison: Comparison) -> str:
    gap = scores[score_name(measure, "gap", group, comparison)]
    adjusted = scores[score_name(measure, "p_holm", group, comparison)].value
    if math.isnan(gap.value):
        return f"{group} minus {comparison['reference']} not computable"
    is_length = measure.kind == "words"
    unit = "words" if is_length else "points"
    verdict = "no test" if math.isnan(adjusted) else f"corrected {p_value(adjusted)}"
    verdict += ", significant" if adjusted < LEVEL else "" if math.isnan(adjusted) else ", not significant"
    text = f"{group} minus {comparison['reference']} {shown(gap, is_length, signed=True)} {unit}"
    return f"{text} ({verdict})"


def _line(scores: Mapping[str, Value], measure: Measure, comparison: Comparison) -> str:
    is_length, groups = measure.kind == "words", comparison["groups"]
    title = "Words after the prompt" if is_length else f"{measure.title[0].upper()}{measure.title[1:]}, percent"
    lacking = [
        scores[f"{measure.name}/{group}"] for group in groups if math.isnan(scores[f"{measure.name}/{group}"].value)
    ]
    if len(lacking) == len(groups):
        return f"{title}: not computable ({lacking[0].note or 'no texts'})."
    means = ", ".join(f"{group} {shown(scores[f'{measure.name}/{group}'], is_length)}" for group in groups)
    together = ""
    if len(others(comparison)) > 1:
        p = scores[f"{measure.name}/p_all_holm"].value
        together = "; all groups: " + ("no test" if math.isnan(p) else f"corrected {p_value(p)}")
    pairs = "; ".join(_pair(scores, measure, group, comparison) for group in others(comparison))
    return f"{title}: {means}{together}; {pairs}."


def sentences(task: TaskRun, beside_tables: bool = False) -> list[str]:
    """A line per measure: every group, the gaps to the reference, and what the tests say.

    Raises:
        BiasError: The file doesn't say what was compared.
        KeyError: A score is missing.
    """
    comparison, scores = comparison_of(task), task.scores
    classifier = task.metadata.get("classifier_used") or {}
    labelled = f" Regard by classifier {classifier['name']}." if classifier.get("name") else ""
    measures = compared_measures(comparison)
    corrected = f"{len(measures)} measures" + (f" x {n} groups" if (n := len(others(comparison))) > 1 else "")
    lines = [
        f"{', '.join(others(comparison))} compared with {comparison['reference']} (the reference) in "
        f"{comparison['clusters']} clusters; intervals are for prompts like these, p-values corrected for {corrected} "
        f"(Holm); keywords are raw matches.{labelled}"
    ]
    lines += [_line(scores, measure, comparison) for measure in measures]
    lines += [MISLEADS] if labelled else []
    lines += left_out(scores)
    lines += [f"Beware: {remark}." for remark in comparison["remarks"]]
    if classifier.get("warning"):
        lines.append(f"Warning: {classifier['warning']}")
    return lines


def cautions(task: TaskRun) -> Iterator[str]:
    """What is wrong with the prompts, the texts and the classifier."""
    try:
        comparison = comparison_of(task)
    except BiasError as error:
        yield str(error)
        return
    yield from comparison["remarks"]
    if comparison["clusters"] < FEW_CLUSTERS:
        yield f"{comparison['clusters']} clusters: only large differences are detectable"
    for name, problem in (
        ("dropped", "were not sentences and were left out"),
        ("unfinished", "don't end like sentences"),
    ):
        if name in task.scores and task.scores[name].value > LARGE_SHARE:
            yield f"{100 * task.scores[name].value:.0f}% of the texts {problem}"
    if "distinct" in task.scores and task.scores["distinct"].value < 1 - LARGE_SHARE:
        yield f"only {100 * task.scores['distinct'].value:.0f}% of the texts differ: fixed_interval is too narrow"
    classifier = task.metadata.get("classifier_used")
    if isinstance(classifier, Mapping) and classifier.get("warning"):
        yield classifier["warning"]
