"""Regard and sexism facets in sentences, never one without the other, and what to beware of."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from lm_eval_bias.core import numbers
from lm_eval_bias.core.run_data import TaskRun, Value
from lm_eval_bias.core.wording import LARGE_SHARE
from lm_eval_bias.custom_metrics.regard import (
    FACETS,
    GENDERS,
    OTHER,
    PEOPLE,
    REGARDS,
    SETS,
    context_title,
)
from lm_eval_bias.custom_metrics.score import Estimate

FEW_TEXTS = 200
LIKE_THESE, THESE_TEXTS = "prompts like these", "these texts alone"
WITHHELD = "its regard scores are not shown, as the file has no sexism facets, and regard alone misleads"

QUALITY = {
    "dropped": "texts that are not sentences",
    "unfinished": "texts that break off",
    "distinct": "different texts",
}
_NUMBERS = {
    "chi2": "chi-square",
    "dof": "degrees of freedom",
    "n": "number of texts",
    "p": "p-value",
    "p_permutation": "p-value by permutation",
    "p_holm": "p-value, corrected",
    "cramers_v": "strength of the association (Cramér's V)",
}


def measure_label(measure: str) -> str:
    """Name the texts that a measure counts.

    >>> measure_label("negative"), measure_label("caregiving")
    ('negative texts', 'caregiving words')
    """
    return (
        "length in words"
        if measure == "words"
        else f"{measure} {'words' if measure in FACETS else 'texts'}"
    )


def score_label(score: str) -> str:
    """Put a score's name into words.

    >>> score_label("all/negative_gap"), score_label("caregiving/female/respect")
    ('negative texts, women minus men', 'caregiving words about women, respect contexts')
    """
    first, *others = score.split("/")
    if not others:
        return QUALITY.get(score, score)
    remarks = [] if first in (*FACETS, "all") else [f"{first} contexts"]
    what = measure_label(first) if first in FACETS else ""
    for stem in others:
        if stem in GENDERS:
            what = (
                f"{what} about {PEOPLE[stem]}"
                if what
                else f"texts about {PEOPLE[stem]}"
            )
        elif stem in SETS:
            remarks.insert(0, f"{stem} contexts")
        elif stem in _NUMBERS:
            what = _NUMBERS[stem]
        elif stem.endswith("gap"):
            what = (
                f"{what or measure_label(stem.removesuffix('_gap'))}, women minus men"
            )
        else:
            what = f"{what} in {stem} texts" if first in FACETS else f"{stem} {what}"
    return ", ".join([what, *remarks])


def has_both(task: TaskRun) -> bool:
    """Say whether a task has regard and sexism facets for women and men."""
    shares = (
        f"{name}/{gender}/{regard}"
        for name in SETS
        for gender in GENDERS
        for regard in REGARDS
    )
    facets = (f"{facet}/{gender}" for facet in FACETS for gender in GENDERS)
    return all(name in task.scores for name in (*shares, *facets))


def shown_regards(scores: Mapping[str, object]) -> list[str]:
    """List the regards that some scores are about; a classifier may have no class ``other``."""
    return [name for name in (*REGARDS, OTHER) if f"all/female/{name}" in scores]


def scope(scores: Mapping[str, Value] | Mapping[str, Estimate]) -> str:
    """Say what the intervals of shares are about: texts that belong to no prompt have none for prompts like theirs."""
    return (
        LIKE_THESE
        if any(scores[f"all/{gender}/negative"].interval for gender in GENDERS)
        else THESE_TEXTS
    )


def ends_of(value: Value | Estimate, about: str) -> tuple[float, float] | None:
    """Return a share's or a gap's interval for prompts like these, or for these texts alone."""
    return value.interval if about == LIKE_THESE else value.fixed_interval


def percent(value: Value | None, about: str) -> str:
    """Write a share in percent, with its interval in brackets."""
    if value is None or math.isnan(value.value):
        return numbers.NONE
    ends = ends_of(value, about)
    return f"{100 * value.value:.1f}" + (
        f" [{100 * ends[0]:.1f}, {100 * ends[1]:.1f}]" if ends else ""
    )


def p_value(value: float) -> str:
    """Write a p-value for a sentence or a title."""
    if math.isnan(value):
        return "p unknown"
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"


def _test(scores: Mapping[str, Value], name: str) -> str:
    chi2, p, n = (scores[f"{name}/{quantity}"].value for quantity in ("chi2", "p", "n"))
    title = context_title(name).capitalize()
    if math.isnan(chi2):
        return f"{title}: no test (see the warning)."
    permuted = scores[f"{name}/p_permutation"].value
    exact = "" if math.isnan(permuted) else f", by permutation {p_value(permuted)}"
    tests = sum(
        not math.isnan(scores[f"{context_set}/p"].value) for context_set in SETS
    )
    adjusted = scores[f"{name}/p_holm"].value
    corrected = (
        ""
        if tests == 1
        else f", corrected for {tests} tests (Holm) {p_value(adjusted)}"
    )
    v = scores[f"{name}/cramers_v"]
    ends = v.fixed_interval
    strength = f"Cramér's V {v.value:.2f}" + (
        f" [{ends[0]:.2f}, {ends[1]:.2f}]" if ends else ""
    )
    differ = adjusted < 0.05
    verdict = (
        "women and men are regarded differently"
        if differ
        else "no significant difference between women and men"
    )
    gaps = ", ".join(
        _gap(label, scores[f"{name}/{label}_gap"], scope(scores))
        for label in ("negative", "positive")
    )
    dof = scores[f"{name}/dof"].value
    texts = (
        "the texts of these prompts" if scope(scores) == LIKE_THESE else "these texts"
    )
    return (
        f"{title}, in {texts}, taken as independent: chi-square {chi2:.2f} (df = {dof:.0f}), "
        f"{p_value(p)}{exact}{corrected}, N = {n:,.0f}, {strength}: {verdict}. Women minus men, for "
        f"{scope(scores)}: {gaps}."
    )


def _gap(label: str, value: Value, about: str) -> str:
    """Write a difference in points, and whether its interval tells a direction."""
    if math.isnan(value.value):
        return f"{label} not computable"
    ends = ends_of(value, about)
    if ends is None:
        return f"{label} {100 * value.value:+.1f} points (no interval)"
    zero = " (includes 0: no clear direction)" if ends[0] <= 0 <= ends[1] else ""
    return f"{label} {100 * value.value:+.1f} points [{100 * ends[0]:+.1f}, {100 * ends[1]:+.1f}]{zero}"


def _facets(scores: Mapping[str, Value]) -> str:
    """Say the keywords beside the regard, which misleads alone."""
    parts, about = [], scope(scores)
    for facet in FACETS:
        own = [
            (scores[f"{facet}/{gender}"].value, people)
            for gender, people in PEOPLE.items()
        ]
        shares = [
            f"{'an unknown share' if math.isnan(v) else f'{100 * v:.1f}%'} about {people}"
            for v, people in own
        ]
        gap = scores.get(f"{facet}/gap")
        parts.append(
            ", ".join(
                [
                    facet,
                    *shares,
                    *([] if gap is None else [_gap("women minus men", gap, about)]),
                ]
            )
        )
    return f"Texts with keywords [95% interval for {about}]: {'; '.join(parts)}."


def sentences(task: TaskRun, beside_tables: bool = False) -> list[str]:
    """Say the tests, with the facets before them.

    Raises:
        KeyError: A score is missing.
    """
    scores, classifier = task.scores, task.metadata.get("classifier_used") or {}
    measured = classifier.get("measured")
    right = (
        f" ({measured['accuracy']:.2f} accuracy: {measured['source']})"
        if measured
        else ""
    )
    lines = [
        f"{_facets(scores)} Regard by classifier {classifier.get('name', '?')}{right}."
    ]
    lines += [*(_test(scores, name) for name in SETS)]
    lines.append(
        "Regard alone misleads: a stereotype such as the caring woman counts as positive. Read it with the keywords "
        "beside it (Kraft et al. 2022, section 5)."
    )
    return [*lines, *(f"Warning: {caution}" for caution in cautions(task))]


def about_texts(scores: Mapping[str, Value]) -> Iterator[str]:
    """Warn of many texts that are no sentences, break off or repeat each other."""
    problems = {
        "dropped": "were not sentences and were left out",
        "unfinished": "don't end like sentences",
    }
    for name, problem in problems.items():
        if name in scores and scores[name].value > LARGE_SHARE:
            yield f"{100 * scores[name].value:.0f}% of the texts {problem}"
    if "distinct" in scores and scores["distinct"].value < 1 - LARGE_SHARE:
        distinct = 100 * scores["distinct"].value
        yield f"only {distinct:.0f}% of the texts differ, so they are less independent than the test assumes"


def cautions(task: TaskRun) -> Iterator[str]:
    """Warn of texts that are no sentences, few or alike texts, and a faulty classifier."""
    scores, classifier = task.scores, task.metadata.get("classifier_used") or {}
    if not scores:
        return
    yield from about_texts(scores)
    if "all/n" in scores and scores["all/n"].value < FEW_TEXTS:
        yield f"few texts in the test ({scores['all/n'].value:,.0f}): only large differences are detectable"
    if not classifier.get("name"):
        yield "the file doesn't say which classifier labelled the texts"
    elif classifier.get("warning"):
        yield classifier["warning"]
