"""A run's headline scores in plain sentences, each with its uncertainty."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from lm_eval_bias import catalog
from lm_eval_bias.custom_metrics import regard
from lm_eval_bias.custom_metrics.score import t_factor
from lm_eval_bias.custom_metrics.stereoset import BIAS_TYPES


class Cells(dict[str, tuple[float, float]]):
    """Value and margin (half a 95% interval) per score, with what else the writers read.

    Attributes:
        intervals: 95% intervals that are not symmetrical, by score.
        metadata: The task's metadata.
    """

    intervals: dict[str, list[float]]
    metadata: Mapping[str, Any]


LOW_COVERAGE = 0.1
LOW_LMS = 60.0
LARGE_SHARE = 0.1


def cells(scores: Mapping[str, Any], config: Mapping[str, Any]) -> Cells:
    """Value and margin (half a 95% interval) per score, from a task's entry in the harness's results (any filter).

    Args:
        scores: The task's ``results``.
        config: The task's ``configs``, whose ``metric_list`` carries degrees of freedom and intervals.
    """
    degrees = {entry["metric"]: entry.get("dof") for entry in config.get("metric_list", [])}
    found = Cells()
    found.metadata = config.get("metadata") or {}
    found.intervals = {e["metric"]: e["interval"] for e in config.get("metric_list", []) if e.get("interval")}
    for key, value in scores.items():
        name, comma, label = key.partition(",")
        if comma and isinstance(value, (int, float)) and not name.endswith("_stderr"):
            error = scores.get(f"{name}_stderr,{label}", math.nan)
            dof = degrees.get(name)
            factor = t_factor(math.inf if dof is None else dof)
            found[name] = (float(value), factor * float(error) if isinstance(error, (int, float)) else math.nan)
    return found


def _said(cell: tuple[float, float], unit: str = "", digits: int = 2) -> str:
    value, margin = cell
    if math.isnan(value):
        return "not computable"
    plus = "" if math.isnan(margin) else f" ± {margin:.{digits}f}"
    return f"{value:.{digits}f}{plus}{unit}"


def _direction(cell: tuple[float, float], above: str, below: str, neutral: float = 0.0) -> str:
    value, margin = cell
    if math.isnan(value) or math.isnan(margin):
        return "no statement without a standard error"
    if abs(value - neutral) <= margin:
        return f"the interval includes {neutral:g}, no direction can be told"
    return above if value > neutral else below


def _occugender(found: Cells) -> list[str]:
    lines = []
    for group in ("female", "male"):
        shares = ", ".join(
            f"{word} {_said(found[f'{group}_dominated_{letter}'], '%', 1)}"
            for letter, word in (("F", "women"), ("M", "men"), ("D", "neutral words"))
        )
        lines.append(f"{group.title()}-dominated items: {shares} of the probability on gender words.")
    follows = "the model follows the labour market's majority"
    opposes = "the model goes against the labour market's majority"
    lines.append(
        f"Stereotype gap {_said(found['stereotype_gap'])}: {_direction(found['stereotype_gap'], follows, opposes)}."
    )
    coverage = found["coverage"]
    little = coverage[0] < LOW_COVERAGE
    warning = ": so little that the shares describe a small part of what the model would say" if little else ""
    lines.append(
        f"The word lists catch {_said((100 * coverage[0], 100 * coverage[1]), '%', 1)} of its probability{warning}."
    )
    return lines


def _gg_bbq(found: Cells) -> list[str]:
    lines = []
    for context, words in (
        ("amb", 'Where the text leaves the answer open, the model rightly says "keine Antwort" for a share of'),
        ("disamb", "Where the text gives the answer, the model finds it for a share of"),
    ):
        bias = found[f"diff_bias_{context}"]
        way = _direction(bias, "answers go along stereotypes", "answers go against stereotypes")
        lines.append(f"{words} {_said(found[f'acc_{context}'])}; diff-bias {_said(bias)}: {way}.")
    return lines


def _gg_bbq_prompts(found: Cells) -> list[str]:
    return [
        f"{label}: {_said(found[f'{stem}/mean'])} on average, from wording to wording it moves by "
        f"{_said(found[f'{stem}/range'])} (largest minus smallest)."
        for stem, label in (
            ("acc_amb", "Accuracy without the needed information"),
            ("acc_disamb", "Accuracy with it"),
            ("diff_bias_amb", "diff-bias without it"),
            ("diff_bias_disamb", "diff-bias with it"),
        )
    ]


def _side(cell: tuple[float, float]) -> str:
    """Which side of 50 a stereotype score is on, if its interval tells."""
    return _direction(cell, "towards stereotypes", "towards anti-stereotypes", neutral=50.0)


def _told(cell: tuple[float, float]) -> str:
    """A percentage, unless its interval covers the whole range."""
    return "not told by so few groups" if cell[1] >= 50.0 else _said(cell, "", 1)


def _stereoset(found: Cells) -> list[str]:
    lines = []
    names = {"": "All items", "intra/": "Within sentences", "inter/": "Between sentences"}
    for prefix, name in names.items():
        if f"{prefix}ss" in found:
            lms = found[f"{prefix}lms"]
            lines.append(
                f"{name}: prefers a meaningful candidate in {_said(lms, '%', 1)} of comparisons, the stereotype to the "
                f"anti-stereotype in {_said(found[f'{prefix}ss'], '%', 1)} of items: {_side(found[f'{prefix}ss'])}."
            )
    lms = found["lms"]
    if lms[0] - 50.0 <= max(lms[1], LOW_LMS - 50.0):
        lines.append("So low an LMS is near chance (50): the stereotype score then says little about the model.")
    types = [f"{kind} {_told(found[f'{kind}/ss'])}" for kind in BIAS_TYPES if f"{kind}/ss" in found]
    if types:
        lines.append(f"SS by bias type: {', '.join(types)}.")
    return lines


def _stereoset_variants(found: Cells) -> list[str]:
    return [
        f"{name.removesuffix('/ss')}: LMS {_said(found[name.replace('/ss', '/lms')], '', 1)}, SS {_said(cell, '', 1)}: "
        f"{_side(cell)}."
        for name, cell in found.items()
        if name.endswith("/ss") and name.count("/") == 1
    ]


def _percent(found: Cells, name: str) -> str:
    value = found.get(name, (math.nan, math.nan))[0]
    if math.isnan(value):
        return "–"
    ends = found.intervals.get(name)
    return f"{100 * value:.1f}" + (f" [{100 * ends[0]:.1f}, {100 * ends[1]:.1f}]" if ends else "")


def _p(value: float) -> str:
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"


def _regard_rows(found: Cells) -> str:
    """Regard and facets side by side, by gender, contexts and regard."""
    from tabulate import tabulate

    regards = [name for name in (*regard.REGARDS, regard.OTHER) if f"all/female/{name}" in found]
    rows = []
    for name in regard.SETS:
        for gender in regard.GENDERS:
            facets = [f"{facet}/{gender}" + ("" if name == "all" else f"/{name}") for facet in regard.FACETS]
            cells = [f"{name}/{gender}/{label}" for label in regards] + facets
            rows.append([name, regard.PEOPLE[gender], *(_percent(found, cell) for cell in cells)])
    for label in regards:
        for gender in regard.GENDERS:
            shares = [_percent(found, f"{facet}/{gender}/{label}") for facet in regard.FACETS]
            rows.append([f"all, {label}", regard.PEOPLE[gender], *[""] * len(regards), *shares])
    headers = ["contexts", "about", *regards, *regard.FACETS]
    return tabulate(rows, headers=headers, tablefmt="simple", disable_numparse=True)


def _regard_test(found: Cells, name: str) -> str:
    chi2, p, n = (found[f"{name}/{which}"][0] for which in ("chi2", "p", "n"))
    where = {"all": "All contexts"}.get(name, f"{name.title()} contexts")
    if math.isnan(chi2):
        return f"{where}: no test (see the warning)."
    permuted = found[f"{name}/p_permutation"][0]
    exact = "" if math.isnan(permuted) else f", by permutation {_p(permuted)}"
    tests = sum(not math.isnan(found[f"{other}/p"][0]) for other in regard.SETS)
    corrected = "" if tests == 1 else f", corrected for {tests} tests (Holm) {_p(found[f'{name}/p_holm'][0])}"
    v, adjusted = found[f"{name}/cramers_v"][0], found[f"{name}/p_holm"][0]
    ends = found.intervals.get(f"{name}/cramers_v")
    strength = f"Cramér's V {v:.2f}" + (f" [{ends[0]:.2f}, {ends[1]:.2f}]" if ends else "")
    verdict = "no difference between women and men can be told"
    if adjusted < 0.05:
        gaps = [
            f"{label} {100 * found[f'{name}/{label}_gap'][0]:+.1f} points" for label in ("negative", "positive")
        ]  # women minus men
        verdict = f"women and men are regarded differently (women minus men: {', '.join(gaps)})"
    dof = found[f"{name}/dof"][0]
    return (
        f"{where}: chi-square {chi2:.2f} ({dof:.0f} degrees of freedom), {_p(p)}{exact}{corrected}, N = {n:,.0f}, "
        f"{strength}: {verdict}."
    )


def _regard(found: Cells) -> list[str]:
    used = found.metadata.get("classifier_used") or {}
    by = used.get("name", "?")
    lines = [f"Percent of texts [95% interval]; regard by classifier {by}, keywords are raw matches:"]
    return [*lines, *_regard_rows(found).splitlines(), *_regard_words(found)]


def _regard_words(found: Cells) -> list[str]:
    """What is said below the table of shares."""
    used = found.metadata.get("classifier_used") or {}
    lines = [_regard_test(found, name) for name in regard.SETS]
    lines.append(
        "Regard alone misleads: a stereotype such as the caring woman counts as positive. Read it with the keywords "
        "beside it (Kraft et al. 2022, section 5)."
    )
    dropped, unfinished, distinct = (found[name][0] for name in ("dropped", "unfinished", "distinct"))
    if dropped > LARGE_SHARE or unfinished > LARGE_SHARE:
        lines.append(
            f"{100 * dropped:.0f}% of the texts were no sentences and left out, {100 * unfinished:.0f}% of the rest "
            "don't end as sentences do."
        )
    if distinct < 1 - LARGE_SHARE:
        lines.append(
            f"Only {100 * distinct:.0f}% of the texts differ from each other: they are less independent than the test "
            "takes them to be."
        )
    if used.get("warning"):
        lines.append(f"Warning: {used['warning']}")
    return lines


_WRITERS: dict[str, Callable[[Cells], list[str]]] = {
    "occugender": _occugender,
    "gg_bbq": _gg_bbq,
    "gg_bbq_prompts": _gg_bbq_prompts,
    "stereoset": _stereoset,
    "stereoset_variants": _stereoset_variants,
    "regard": _regard,
}


def of_task(benchmark: str, found: Cells) -> list[str]:
    """What a task's scores say, for output that has its own tables.

    Raises:
        KeyError: A score that is spoken of is missing.
    """
    write = _regard_words if benchmark == "regard" else _WRITERS[benchmark]
    return write(found)


def describe(results: Mapping[str, Mapping[str, Any]], configs: Mapping[str, Mapping[str, Any]]) -> str:
    """What the scores of our tasks say; empty if none of them is ours.

    Args:
        results: The ``results`` of a harness run: scores per task.
        configs: Its ``configs``.
    """
    own = catalog.entries()
    blocks = []
    for task, scores in results.items():
        entry = own.get(task)
        if entry is None or entry.kind != "task" or entry.benchmark not in _WRITERS:
            continue
        lines = _WRITERS[entry.benchmark](cells(scores, configs.get(task, {})))
        blocks.append("\n".join([f"{task}:", *(f"  {line}" for line in lines)]))
    return "\n".join(blocks)
