"""StereoSet's scores in sentences, and what to beware of."""

from __future__ import annotations

from collections.abc import Iterator

from lm_eval_bias.custom_metrics.stereoset import BIAS_TYPES
from lm_eval_bias.report import numbers
from lm_eval_bias.report.sentences import direction, margin, with_margin
from lm_eval_bias.runs.run_data import TaskRun, Value

LOW_LMS = 60.0


def _side(value: Value) -> str:
    """Which side of 50 a stereotype score is on, if its interval tells."""
    return direction(value, "towards stereotypes", "towards anti-stereotypes", neutral=50.0)


def sentences(task: TaskRun, beside_tables: bool = False) -> list[str]:
    """LMS and SS by test, SS by bias type.

    Raises:
        KeyError: A score is missing.
    """
    scores = task.scores
    lines = []
    for prefix, name in {"": "All items", "intra/": "Within sentences", "inter/": "Between sentences"}.items():
        if f"{prefix}ss" in scores:
            lms, ss = scores[f"{prefix}lms"], scores[f"{prefix}ss"]
            lines.append(
                f"{name}: prefers a meaningful candidate in {with_margin(lms, '%', 1)} of comparisons, the stereotype "
                f"to the anti-stereotype in {with_margin(ss, '%', 1)} of items: {_side(ss)}."
            )
    lms = scores["lms"]
    if lms.value - 50.0 <= max(margin(lms), LOW_LMS - 50.0):
        lines.append("So low an LMS is near chance (50): the stereotype score then says little about the model.")
    types = []
    for kind in BIAS_TYPES:
        if f"{kind}/ss" in scores:
            ss = scores[f"{kind}/ss"]
            types.append(f"{kind} {'not told by so few groups' if margin(ss) >= 50.0 else with_margin(ss, '', 1)}")
    if types:
        lines.append(f"SS by bias type: {', '.join(types)}.")
    return lines


def of_variants(task: TaskRun, beside_tables: bool = False) -> list[str]:
    """LMS and SS by way of scoring.

    Raises:
        KeyError: A score is missing.
    """
    return [
        f"{name.removesuffix('/ss')}: LMS {with_margin(task.scores[name.replace('/ss', '/lms')], '', 1)}, "
        f"SS {with_margin(ss, '', 1)}: {_side(ss)}."
        for name, ss in task.scores.items()
        if name.endswith("/ss") and name.count("/") == 1
    ]


def cautions(task: TaskRun) -> Iterator[str]:
    """An LMS near chance."""
    low = []
    for name, lms in task.scores.items():
        part, _, kind = name.rpartition("/")
        if kind == "lms" and part in ("", "intra", "inter", "gen"):
            reach = lms.interval[0] if lms.interval is not None else lms.value
            if lms.value <= LOW_LMS or reach <= 50.0:
                low.append(f"{name} {numbers.cell(lms)}")
    if low:
        yield (
            f"low LMS, near chance (50): {', '.join(low)}: the model hardly tells sense from nonsense here, and a "
            "stereotype score near 50 says little"
        )
