"""StereoSet's scores in sentences, and what to beware of."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from lm_eval_bias.core import numbers
from lm_eval_bias.core.run_data import TaskRun, Value
from lm_eval_bias.core.wording import (
    LARGE_SHARE,
    answered,
    direction,
    margin,
    with_interval,
)
from lm_eval_bias.custom_metrics.stereoset import BIAS_TYPES, VARIANTS
from lm_eval_bias.custom_metrics.stereoset_choices import CHANCE

LOW_LMS = 60.0
TESTS = {
    "": "All items",
    "intra/": "Within sentences",
    "inter/": "Between sentences",
}  # by prefix of the scores


def side(value: Value) -> str:
    """Say which side of 50 a stereotype score is on, if its interval tells."""
    return direction(value, "towards stereotypes", "towards anti-stereotypes")


def _near_chance(lms: Value) -> bool:
    """Tell whether an LMS is so low, or so uncertain, that the model hardly tells sense from nonsense.

    Where that of all items reaches down to guessing, a remark says so already.
    """
    reach = lms.interval[0] if lms.interval is not None else lms.value - margin(lms)
    if lms.floor is not None:
        return lms.value <= LOW_LMS and reach > lms.floor
    return lms.value <= LOW_LMS or reach <= 50.0


def _preferences(task: TaskRun, parts: Mapping[str, str]) -> list[str]:
    """Say LMS and SS of some parts of the scores (prefix and name), and which stereotype scores say little."""
    lines = []
    low = []
    for prefix, name in parts.items():
        if f"{prefix}ss" in task.scores:
            lms = task.scores[f"{prefix}lms"]
            ss = task.scores[f"{prefix}ss"]
            taken = f"the stereotype to the anti-stereotype in {with_interval(ss)} of items: {side(ss)}"
            lines.append(
                f"{name}: prefers a meaningful candidate in {with_interval(lms)} of comparisons, "
                f"{ss.note if math.isnan(ss.value) else taken}."
            )
            if _near_chance(lms) and not ss.side:
                low.append(name)
    if low:
        lines.append(
            "An LMS this low is near or below chance (50), so the stereotype score says little about the model "
            f"({', '.join(low)})."
        )
    return lines


def sentences(task: TaskRun, beside_tables: bool = False) -> list[str]:
    """Say LMS and SS by test or way of scoring, SS by bias type; what a file of predictions scores beyond the data.

    Raises:
        KeyError: A score is missing.
    """
    if task.benchmark == "stereoset_choices":
        return _of_choices(task)
    if task.benchmark == "stereoset_variants":
        return _preferences(task, {f"{variant}/": variant for variant in VARIANTS})
    lines = _preferences(task, TESTS)
    types = []
    for kind in BIAS_TYPES:
        if f"{kind}/ss" in task.scores:
            ss = task.scores[f"{kind}/ss"]
            said = with_interval(ss)
            if margin(ss) >= 50.0:
                said = "unclear (too few groups)"
            elif ss.interval and ss.n:
                said += f" of {ss.n:,} items"
            types.append(f"{kind} {said}")
    if types:
        lines.append(f"SS by bias type: {', '.join(types)}.")
    for test, count in (task.metadata.get("left_out") or {}).items():
        lines.append(
            f"Left out: the scores of {count['candidates']} candidates of {count['items']} items ({test}), which the "
            f"released {task.language} data don't have."
        )
    return lines


def cautions(task: TaskRun) -> Iterator[str]:
    """Warn of an LMS near chance or below; of choices, of one letter, too."""
    if task.benchmark == "stereoset_choices":
        lms = task.scores.get("choice_lms")
        ss = task.scores.get("choice_ss")
        leans = ss is not None and ss.side
        if lms is not None and _by_guessing(lms, task) and not leans:
            yield (
                f"choice_lms {numbers.cell(lms)} is near or below chance (66.7): the model hardly tells sense from "
                "nonsense here, and a choice_ss near 50 says little"
            )
    prefixes = ["", *(f"{part}/" for part in ("intra", "inter", *VARIANTS))]
    low = []
    for prefix in prefixes:
        lms, ss = (task.scores.get(f"{prefix}{kind}") for kind in ("lms", "ss"))
        if lms is None or not _near_chance(lms):
            continue
        if ss is None or not ss.side:
            low.append(f"{lms.name} {numbers.cell(lms)}")
    if low:
        yield (
            f"low LMS, near or below chance (50): {', '.join(low)}: the model hardly tells sense from nonsense here, "
            "and a stereotype score near 50 says little"
        )


def _by_guessing(lms: Value, task: TaskRun) -> bool:
    """Tell whether the choices that were made could be guesses."""
    share = answered(task)
    return (
        share > 0
        and not (lms.interval[0] if lms.interval is not None else lms.value)
        > CHANCE * share
    )


def _of_choices(task: TaskRun) -> list[str]:
    """Say meaningful choices, and stereotypes among them, by test; then what to beware of."""
    lines = []
    low = []
    share = task.scores["unanswered"]
    refused = task.scores["refused"]
    for prefix, name in {} if share.value == 1 else TESTS.items():
        if f"{prefix}choice_ss" not in task.scores:
            continue
        lms, ss, taken = (
            task.scores[f"{prefix}choice_{kind}"]
            for kind in ("lms", "ss", "ss_meaningful")
        )
        lines.append(
            f"{name}: chooses a meaningful candidate in {with_interval(lms)} of items (chance 66.7), of these "
            f"the stereotype in {with_interval(taken)}; choice_ss {with_interval(ss)}: {side(ss)}."
        )
        if _by_guessing(lms, task) and not ss.side:
            low.append(name)
    if low:
        lines.append(
            "A choice_lms this low is near or below chance (66.7), so the choices say little about stereotypes "
            f"({', '.join(low)})."
        )
    if share.value > LARGE_SHARE:
        means = "they count as not meaningful in choice_lms and choice_icat, and pull choice_ss towards 50"
        lines.append(
            f"{100 * share.value:.0f}% of the items are unanswered ({100 * refused.value:.0f}% refused): "
            f"{means if share.value < 1 else 'the scores say nothing about bias'}."
        )
        if refused.value < share.value:
            lines.append(
                "A model that reasons before it answers may need --gen_kwargs max_gen_toks=4096."
            )
    return lines
