"""Differences between groups in the texts that follow a user's custom prompts, which are counterfactuals of each other.

Prompts that differ in the group alone form a cluster (a sentence frame). Shares, means and differences have the two
intervals of :mod:`lm_eval_bias.custom_metrics.text_shares`: ``interval`` is for prompts like these (clusters vary),
as tests are, ``fixed_interval`` for these prompts (texts vary). In every cluster both sides of a difference have the
same weight, and a cluster that lacks one of them stays out, or a frame that one group has more often would look like a
difference between groups.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

from lm_eval_bias.custom_metrics import differences, text_shares
from lm_eval_bias.custom_metrics.clusters import Clusters
from lm_eval_bias.custom_metrics.intervals import holm
from lm_eval_bias.custom_metrics.regard import (
    DISTINCT,
    FACETS,
    OTHER,
    REGARDS,
    measure_label,
)
from lm_eval_bias.custom_metrics.score import (
    Documents,
    Estimate,
    Record,
    Score,
    Undefined,
    interval_of,
    joined,
    meaning,
    require,
)
from lm_eval_bias.custom_metrics.text_shares import Row

SOURCE = "after Kraft et al. (2022) and Sheng et al. (2019); no paper has these prompts"
WORDS = "words"
_LABELS = (*REGARDS, OTHER)
# the groups, the reference among them, facets of keywords, and the number of clusters
Comparison = dict[str, Any]
# One prompt's group, cluster, comparison and texts: of each that was kept its regard (or nothing), the facets that it
# has a keyword of, and its words; with what `usability` asks for, and why texts have no regard (unlabelled, or empty).


def others(comparison: Comparison) -> list[str]:
    """List the groups that are compared with the reference."""
    return [group for group in comparison["groups"] if group != comparison["reference"]]


def measures(comparison: Comparison, has_other: bool = False) -> list[str]:
    """List all measures of a file's texts: their regards, the facets that they have keywords of, their words."""
    regards = _LABELS if has_other else REGARDS
    return [*regards, *comparison["facets"], WORDS]


def compared_measures(comparison: Comparison) -> list[str]:
    """List the compared measures; neutral regard follows from the others."""
    return [measure for measure in measures(comparison) if measure != "neutral"]


def title(measure: str) -> str:
    """Return the name of what a measure counts.

    >>> title("negative"), title("caregiving")
    ('negative texts', 'texts with a caregiving keyword')
    """
    if measure == WORDS:
        return WORDS
    return (
        f"{measure} texts" if measure in _LABELS else f"texts with a {measure} keyword"
    )


def _warning(records: Documents, measure: str) -> str:
    return text_shares.warnings(records) if measure in _LABELS else ""


def _rows(
    records: Documents, measure: str, groups: Sequence[str], side: int = 0
) -> list[Row]:
    """Count a measure in the prompts of some groups; Undefined without texts."""
    require(records, noun="texts")
    rows = []
    drawn = 0
    for r in records:
        if measure in _LABELS and r["unlabelled"]:
            raise Undefined(r["unlabelled"])
        if r["group"] not in groups:
            continue
        drawn += r["drawn"]
        numbers = []
        for regard, facets, words in r["texts"]:
            is_hit = measure == regard or measure in facets
            numbers.append(float(words if measure == WORDS else is_hit))
        if numbers:
            squares = sum(number**2 for number in numbers)
            hits = sum(numbers)
            texts = len(numbers)
            rows.append(Row(side, r["cluster"], "", hits, texts, squares))
    if not rows:
        left = f" left of {drawn}" if drawn else ""
        raise Undefined(f"no texts of {' and '.join(groups)}{left}")
    return rows


def _within(rows: Sequence[Row]) -> tuple[float, int]:
    """Return the variance of the mean of prompts as given, and its dof; ``nan`` where a prompt has one text."""
    if any(row.total < 2 for row in rows):
        return math.nan, 0
    whole = sum(row.weight * row.total for row in rows)
    parts = (
        (row.weight * row.total / whole) ** 2
        * max(row.squares - row.hits**2 / row.total, 0.0)
        / (row.total - 1)
        / row.total
        for row in rows
    )
    return math.fsum(parts), sum(row.total - 1 for row in rows)


def means(rows: Sequence[Row], warning: str = "") -> Estimate:
    """Estimate a mean over texts, or the difference of two sides' means, with both intervals.

    For the prompts as given texts vary within prompts; for prompts like these clusters do (jackknife, Student's t),
    with an error that is never below the other one. A mean's interval ends at 0.

    >>> means([Row(0, "a", "", 6.0, 2, 20.0), Row(1, "a", "", 10.0, 2, 52.0)]).value
    -2.0
    """
    is_difference = any(row.group for row in rows)
    design = text_shares.design(rows, is_difference, "clusters")
    within = [_within([row for row in rows if row.group == side]) for side in (0, 1)]
    value = design.value
    n = sum(row.total for row in rows)
    of_texts = math.sqrt(sum(variance for variance, _ in within))
    lowest = -math.inf if is_difference else 0.0
    dof = sum(dof for _, dof in within)
    fixed = interval_of(value, of_texts or math.nan, dof, lowest)
    given = Estimate(value, math.nan, n, warning, fixed_interval=fixed)
    estimate = text_shares.varying(design, given, of_texts)
    ends = interval_of(value, estimate.stderr, estimate.dof, lowest)
    by = ("jackknife", "student") if ends else ()
    return replace(estimate, interval=ends, statistics=by)


def _sides(
    records: Documents, measure: str, groups: Sequence[str]
) -> tuple[list[Row], str]:
    """Weight both sides' prompts equally in their common clusters; return rows and a warning."""
    rows = _rows(records, measure, groups)
    reference = records[0]["comparison"]["reference"]
    rows += _rows(records, measure, [reference], side=1)
    first, second = texts = Counter[Hashable](), Counter[Hashable]()
    for row in rows:
        texts[row.group][row.context] += row.total
    both = first.keys() & second.keys()
    either = first.keys() | second.keys()
    names = " or ".join(groups)
    without = len(either) - len(both)
    if not both:
        raise Undefined(f"no cluster has texts of {names} and of {reference}")
    wholes = m, n = sum(first[c] for c in both), sum(second[c] for c in both)
    weighted = []
    for row in rows:
        if row.context not in both:
            continue
        a = first[row.context]
        b = second[row.context]
        if a * n != b * m:
            weight = (
                min(a / m, b / n) * wholes[row.group] / texts[row.group][row.context]
            )
            row = row._replace(weight=weight)
        weighted.append(row)

    left = f"{without} of {len(either)} clusters left out: no texts of {names}, or of {reference}"
    compared = [r for r in records if r["group"] in (*groups, reference)]
    distinct = text_shares.distinct(compared)
    repeated = (
        f"only {100 * distinct:.0f}% of the texts differ: fixed_interval is too narrow"
    )
    diagnostics = left * bool(without), repeated * (distinct < DISTINCT)
    return weighted, joined(*diagnostics, _warning(records, measure))


def _counted(
    records: Documents, measure: str, groups: Sequence[str], is_gap: bool
) -> tuple[list[Row], str]:
    if is_gap:
        return _sides(records, measure, groups)
    return _rows(records, measure, groups), _warning(records, measure)


def estimate(
    records: Documents, *, measure: str, groups: Sequence[str], is_gap: bool = False
) -> Estimate:
    """Estimate a share of some groups' texts with a regard or a facet's keyword, or their mean words after the prompt.

    With ``is_gap`` minus the reference group's. Range: 0..1 (words: 0..infinity), of gaps -1..1 (unbounded). Neutral
    value: none, of gaps 0. Direction: more such texts, longer texts; of gaps + more often (longer) than the reference,
    - less often. Undefined: no text of the groups, of gaps no cluster with texts of both sides; no regard known -> nan.
    Denominator: all texts kept, ``other`` included (dropped ones are no texts); of gaps those in the clusters that both
    have, evenly weighted (module docstring). Interval: see :func:`.text_shares.share`, :func:`.text_shares.difference`
    and :func:`means`. Source: none for these prompts.
    """
    rows, warning = _counted(records, measure, groups, is_gap)
    if measure == WORDS:
        return means(rows, warning)
    make = text_shares.difference if is_gap else text_shares.share
    return make(rows, warning)


def _design(
    records: Documents, *, measure: str, groups: Sequence[str], is_gap: bool = False
) -> Clusters:
    """Make a share or a gap as a function of sums over clusters."""
    rows, _ = _counted(records, measure, groups, is_gap)
    return text_shares.design(rows, is_gap, "clusters")


def p(records: Documents, *, measure: str, group: str) -> Estimate:
    """Test for no difference between a group and the reference.

    Student's t over clusters (:func:`lm_eval_bias.custom_metrics.differences.paired`). Range: 0..1.
    Neutral value: none. Direction: small, the difference is unlikely to be chance. Undefined: too few clusters, no
    texts, no regard known -> nan. It is about prompts like these. Source: none for these prompts.
    """
    rows, _ = _sides(records, measure, [group])
    sides = [[row for row in rows if row.group == side] for side in (0, 1)]
    first, second = (text_shares.design(side, kind="clusters") for side in sides)
    value = differences.paired(first, second).p
    if math.isnan(value):
        few = f"{len(first.names)} clusters with both groups are too few"
        raise Undefined(f"no test: {few}, or nothing varies between them")
    n = sum(len(r["texts"]) for r in records)
    warning = _warning(records, measure)
    return Estimate(value, math.nan, n, warning, statistics=("paired",))


def p_holm(records: Documents, *, measure: str, group: str) -> Estimate:
    """Correct :func:`p` for the number of groups and measures (Holm 1979)."""
    uncorrected = p(records, measure=measure, group=group)
    comparison = records[0]["comparison"]
    family = list(product(compared_measures(comparison), others(comparison)))
    values = []
    for test in family:
        try:
            values.append(p(records, measure=test[0], group=test[1]).value)
        except Undefined:
            values.append(math.nan)
    value = holm(values)[family.index((measure, group))]
    return replace(uncorrected, value=value, statistics=("paired", "holm"))


def _contribution(
    record: Record,
    *,
    measure: str,
    groups: Sequence[str],
    is_gap: bool = False,
) -> float | None:
    """Return a prompt's share or mean for the sample log; for a gap, its contribution in balanced clusters."""
    reference = record["comparison"]["reference"]
    part = 1.0
    if is_gap:
        sides = len(groups) + 1
        part = -sides if record["group"] == reference else sides / len(groups)
        groups = [*groups, reference]
    try:
        (row,) = _rows([record], measure, groups)
    except Undefined:
        return None
    return part * (row.hits / row.total)


def scores(records: Documents = ()) -> list[Score]:
    """List the scores: per measure each group's share, the gap to the reference, its tests; how usable texts are.

    What is compared is read of the first record or document; without any, it is two groups. There is no detail.
    """
    names = ["reference", "group"]
    example: Comparison = {
        "groups": names,
        "reference": names[0],
        "facets": list(FACETS),
    }
    comparison = records[0]["comparison"] if records else example
    groups = others(comparison)
    several = len(groups) > 1
    whom = groups[0]
    note = ""
    if several:
        whom = "the other groups together"
        note = "; opposite gaps cancel each other"
    # name, suffix of the label, who is compared
    gaps = [("gap", "", groups, whom, note)]
    if several:
        gaps += [(f"gap/{group}", f", {group}", [group], group, "") for group in groups]
    listed: list[Score] = []
    for measure in measures(comparison, any(r.get("has_other") for r in records)):
        listed += _of_measure(measure, comparison, gaps)
    return [*listed, *text_shares.usability_scores(SOURCE, "cluster")]


def _of_measure(
    measure: str,
    comparison: Comparison,
    gaps: Sequence[tuple[str, str, Sequence[str], str, str]],
) -> Iterator[Score]:
    """Yield the scores of one measure.

    Args:
        measure: Its name.
        comparison: Which groups are compared.
        gaps: Which gaps to the reference there are: name, suffix of the label, groups, what they are called, note.
    """
    of = partial(partial, measure=measure)
    kind = ""
    label = measure_label(measure)
    if measure == WORDS:
        kind = "words_"
        label = "length in words"
    described = partial(
        meaning,
        "custom_prompts",
        title=title(measure),
        label=label,
        reference=comparison["reference"],
    )
    for group in comparison["groups"]:
        yield Score(
            f"{measure}/{group}",
            **described(f"{kind}share", group=group),
            contribution=of(_contribution, groups=[group]),
            design=of(_design, groups=[group]),
            statistic=of(estimate, groups=[group]),
        )
    if measure in ("neutral", OTHER):
        return
    for name, which, compared, whom, note in gaps:
        yield Score(
            f"{measure}/{name}",
            **described(f"{kind}gap", whom=whom, note=note, which=which),
            contribution=of(_contribution, groups=compared, is_gap=True),
            design=of(_design, groups=compared, is_gap=True),
            statistic=of(estimate, groups=compared, is_gap=True),
        )
    groups = others(comparison)
    several = len(groups) > 1
    for group, compute in product(groups, (p, p_holm)):
        yield Score(
            f"{measure}/{compute.__name__}{f'/{group}' * several}",
            **described(
                compute.__name__,
                group=group,
                which=f", {group}" * several,
                groups=" and groups" * several,
            ),
            contribution=of(_contribution, groups=comparison["groups"]),
            statistic=of(compute, group=group),
        )
