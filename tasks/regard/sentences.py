"""Regard and sexism facets in sentences, never one without the other, and what to beware of."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import product

from lm_eval_bias.core import numbers
from lm_eval_bias.core.run_data import TaskRun, Value
from lm_eval_bias.core.wording import LARGE_SHARE
from lm_eval_bias.custom_metrics.regard import (
    FACETS,
    GENDERS,
    PEOPLE,
    REGARDS,
    SETS,
    context_title,
)
from lm_eval_bias.custom_metrics.score import Estimate
from lm_eval_bias.tasks.regard.classifier_identity import accuracy_in_words

FEW_TEXTS = 200
LIKE_THESE = "prompts like these"
THESE_TEXTS = "these texts alone"
_QUALITY = ("dropped", "unfinished", "distinct")
WITHHELD = "its regard scores are not shown, as the file has no sexism facets, and regard alone misleads"


def withheld(task: TaskRun) -> str:
    """Withhold regard without the facets, and say so."""
    return "" if has_both(task) else WITHHELD


def has_both(task: TaskRun) -> bool:
    """Say whether a task has regard and sexism facets for women and men."""
    needed = product(SETS, GENDERS, REGARDS)
    facets = product(FACETS, GENDERS)
    return all("/".join(parts) in task.scores for parts in (*needed, *facets))


def scope(scores: Mapping[str, Value] | Mapping[str, Estimate]) -> str:
    """Say what the intervals of shares are about: texts that belong to no prompt have none for prompts like theirs."""
    shares = [scores[f"all/{gender}/negative"] for gender in GENDERS]
    return LIKE_THESE if any(share.interval for share in shares) else THESE_TEXTS


def ends_of(value: Value | Estimate, about: str) -> tuple[float, float] | None:
    """Return a share's or a gap's interval for prompts like these, or for these texts alone."""
    return value.interval if about == LIKE_THESE else value.fixed_interval


def percent(value: Value, about: str) -> str:
    """Write a share in percent, with its interval in brackets."""
    if math.isnan(value.value):
        return numbers.NONE
    ends = ends_of(value, about)
    if ends is None:
        return f"{100 * value.value:.1f}"
    return f"{100 * value.value:.1f} [{100 * ends[0]:.1f}, {100 * ends[1]:.1f}]"


def p_value(value: float) -> str:
    """Write a p-value for a sentence or a title."""
    if math.isnan(value):
        return "p unknown"
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"


def _test(scores: Mapping[str, Value], name: str) -> str:
    def value(quantity: str) -> float:
        return scores[f"{name}/{quantity}"].value

    title = context_title(name).capitalize()
    if math.isnan(value("chi2")):
        return f"{title}: no test (see the warning)."
    ps = [p_value(value("p"))]
    if not math.isnan(value("p_permutation")):
        ps.append(f"by permutation {p_value(value('p_permutation'))}")
    tests = sum(not math.isnan(scores[f"{each}/p"].value) for each in SETS)
    adjusted = value("p_holm")
    if tests > 1:
        ps.append(f"corrected for {tests} tests (Holm) {p_value(adjusted)}")
    strength = f"Cramér's V {value('cramers_v'):.2f}"
    ends = scores[f"{name}/cramers_v"].fixed_interval
    if ends:
        strength += f" [{ends[0]:.2f}, {ends[1]:.2f}]"
    verdict = "no significant difference between women and men"
    if adjusted < 0.05:
        verdict = "women and men are regarded differently"
    about = scope(scores)
    gaps = [
        _gap(regard, scores[f"{name}/{regard}_gap"], about)
        for regard in ("negative", "positive")
    ]
    texts = "the texts of these prompts" if about == LIKE_THESE else "these texts"
    return (
        f"{title}, in {texts}, taken as independent: chi-square {value('chi2'):.2f} (df = {value('dof'):.0f}), "
        f"{', '.join(ps)}, N = {value('n'):,.0f}, {strength}: {verdict}. Women minus men, for {about}: "
        f"{', '.join(gaps)}."
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
    lines = []
    about = scope(scores)
    for facet in FACETS:
        parts = [facet]
        for gender, people in PEOPLE.items():
            share = scores[f"{facet}/{gender}"].value
            percent_of = (
                "an unknown share" if math.isnan(share) else f"{100 * share:.1f}%"
            )
            parts.append(f"{percent_of} about {people}")
        if f"{facet}/gap" in scores:
            parts.append(_gap("women minus men", scores[f"{facet}/gap"], about))
        lines.append(", ".join(parts))
    return f"Texts with keywords [95% interval for {about}]: {'; '.join(lines)}."


def sentences(task: TaskRun, beside_tables: bool = False) -> list[str]:
    """Say the tests, with the facets before them.

    Raises:
        KeyError: A score is missing.
    """
    scores = task.scores
    classifier = task.metadata.get("classifier_used") or {}
    right = accuracy_in_words(classifier.get("measured"))
    return [
        f"{_facets(scores)} Regard by classifier {classifier.get('name', '?')}, {right}.",
        *(_test(scores, name) for name in SETS),
        "Regard alone misleads: a stereotype such as the caring woman counts as positive. Read it with the keywords "
        "beside it (Kraft et al. 2022, section 5).",
        *(f"Warning: {caution}" for caution in cautions(task)),
    ]


def about_texts(scores: Mapping[str, Value]) -> Iterator[str]:
    """Warn of many texts that are no sentences, break off or repeat each other."""
    shares = {name: scores[name].value for name in _QUALITY if name in scores}
    if shares.get("dropped", 0.0) > LARGE_SHARE:
        yield f"{100 * shares['dropped']:.0f}% of the texts were not sentences and were left out"
    if shares.get("unfinished", 0.0) > LARGE_SHARE:
        yield f"{100 * shares['unfinished']:.0f}% of the texts don't end like sentences"
    if shares.get("distinct", 1.0) < 1 - LARGE_SHARE:
        distinct = f"only {100 * shares['distinct']:.0f}% of the texts differ"
        yield f"{distinct}, so they are less independent than the test assumes"


def cautions(task: TaskRun) -> Iterator[str]:
    """Warn of texts that are no sentences, few or alike texts, and a faulty classifier."""
    scores = task.scores
    classifier = task.metadata.get("classifier_used") or {}
    if not scores:
        return
    yield from about_texts(scores)
    if "all/n" in scores and scores["all/n"].value < FEW_TEXTS:
        yield f"few texts in the test ({scores['all/n'].value:,.0f}): only large differences are detectable"
    if not classifier.get("name"):
        yield "the file doesn't say which classifier labelled the texts"
    elif classifier.get("warning"):
        yield classifier["warning"]
