"""Differences between groups in the texts that follow a user's own prompts, which are counterfactuals of each other.

Prompts that differ in the group alone form a cluster (a sentence frame). Shares, means and differences have the two
intervals of :mod:`lm_eval_bias.custom_metrics.text_shares`: ``interval`` is for prompts like these (clusters vary),
as tests are, ``fixed_interval`` for these prompts (texts vary). In every cluster both sides of a difference have the
same weight, and a cluster that lacks one of them stays out, or a frame that one group has more often would look like a
difference between groups.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any, NamedTuple

from lm_eval_bias.custom_metrics import differences, text_shares
from lm_eval_bias.custom_metrics.clusters import Clusters
from lm_eval_bias.custom_metrics.intervals import holm
from lm_eval_bias.custom_metrics.regard import DISTINCT, FACETS, OTHER, REGARDS
from lm_eval_bias.custom_metrics.score import (
    Estimate,
    Record,
    Score,
    Undefined,
    joined,
    t_factor,
)
from lm_eval_bias.custom_metrics.text_shares import Row

SOURCE = "after Kraft et al. (2022) and Sheng et al. (2019); no paper has these prompts"
WORDS = "words"
Comparison = dict[
    str, Any
]  # the groups, the reference among them, facets of keywords, and the number of clusters
# One prompt's group, cluster, comparison and texts: of each that was kept its regard (or nothing), the facets that it
# has a keyword of, and its words; with what `usability` asks for, and why texts have no regard (unlabelled, or empty).
PromptRecord = dict[str, Any]
Records = Sequence[PromptRecord]


class Sample(NamedTuple):
    """The numbers of a prompt's texts, of which there is at least one: their sum, and that of their squares."""

    context: str
    texts: int
    total: float
    squares: float
    weight: float = 1.0  # what each text counts


def others(comparison: Comparison) -> list[str]:
    """List the groups that are compared with the reference."""
    return [group for group in comparison["groups"] if group != comparison["reference"]]


class Measure(NamedTuple):
    """A count over texts: of a regard, of a facet's keywords, or of words."""

    name: str
    kind: str  # regard, facet or words

    @property
    def title(self) -> str:
        """The texts that are counted."""
        return {
            "regard": f"{self.name} texts",
            "facet": f"texts with a {self.name} keyword",
        }.get(self.kind, "words")


def measures(comparison: Comparison, has_other: bool = False) -> list[Measure]:
    """List all measures of a file's texts."""
    regards = [
        Measure(name, "regard") for name in (*REGARDS, *([OTHER] if has_other else []))
    ]
    return [
        *regards,
        *(Measure(name, "facet") for name in comparison["facets"]),
        Measure(WORDS, WORDS),
    ]


def compared_measures(comparison: Comparison) -> list[Measure]:
    """List the measures that groups are compared by; of regard only the ends, from which the middle follows."""
    return [measure for measure in measures(comparison) if measure.name != "neutral"]


def _caveat(records: Records, measure: Measure) -> str:
    return (
        "; ".join(sorted({r["caveat"] for r in records if r["caveat"]}))
        if measure.kind == "regard"
        else ""
    )


def _samples(records: Records, measure: Measure, groups: Sequence[str]) -> list[Sample]:
    """Count over the prompts of some groups that have texts; raise Undefined where there are none."""
    if not records:
        raise Undefined("no texts")
    if measure.kind == "regard" and (
        reason := next((r["unlabelled"] for r in records if r["unlabelled"]), "")
    ):
        raise Undefined(reason)
    found, name, drawn = [], measure.name, 0
    for r in records:
        if r["group"] in groups:
            kinds = [
                {"regard": name == regard, "facet": name in facets, WORDS: n}
                for regard, facets, n in r["texts"]
            ]
            numbers = [float(kind[measure.kind]) for kind in kinds]
            found += (
                [
                    Sample(
                        r["cluster"],
                        len(numbers),
                        sum(numbers),
                        sum(n**2 for n in numbers),
                    )
                ]
                if numbers
                else []
            )
            drawn += r["drawn"]
    if not found:
        raise Undefined(
            f"no texts of {' and '.join(groups)}"
            + (f" left of {drawn}" if drawn else "")
        )
    return found


def _rows(*sides: Sequence[Sample]) -> list[Row]:
    """Convert prompts for :mod:`.text_shares`; texts that count less are fewer."""
    numbered = [(group, s) for group, side in enumerate(sides) for s in side]
    return [
        Row(group, s.context, "", s.weight * s.total, s.weight * s.texts)
        for group, s in numbered
    ]


def _form(first: Sequence[Sample], second: Sequence[Sample] = ()) -> Clusters:
    """Make the mean, or the first one minus the second, a function of sums over clusters."""
    form = (
        text_shares.difference_form(_rows(first, second))
        if second
        else text_shares.share_form(_rows(first))
    )
    return replace(form, kind="clusters")


def _within(samples: Sequence[Sample]) -> tuple[float, int]:
    """Return the variance of the mean of prompts as given, and its dof; ``nan`` where a prompt has one text."""
    if min(s.texts for s in samples) < 2:
        return math.nan, 0
    whole = sum(s.weight * s.texts for s in samples)
    parts = (
        (s.weight * s.texts / whole) ** 2
        * max(s.squares - s.total**2 / s.texts, 0.0)
        / (s.texts - 1)
        / s.texts
        for s in samples
    )
    return math.fsum(parts), sum(s.texts - 1 for s in samples)


def means(
    first: Sequence[Sample], second: Sequence[Sample] = (), caveat: str = ""
) -> Estimate:
    """Estimate a mean of a group's texts, or the first group's minus the second's, with both intervals.

    For the prompts as given texts vary within prompts; for prompts like these clusters do (jackknife, Student's t),
    with an error that is never below the other one. A mean's interval ends at 0.

    >>> means([Sample("a", 2, 6.0, 20.0)], [Sample("a", 2, 10.0, 52.0)]).value
    -2.0
    """
    form, within = (
        _form(first, second),
        [_within(side) for side in (first, second) if side],
    )
    value, n, of_texts = (
        form.value,
        sum(s.texts for s in (*first, *second)),
        math.sqrt(sum(v for v, _ in within)),
    )

    def ends(error: float, dof: float) -> tuple[float, float] | None:
        reach = t_factor(dof) * error
        return (
            (max(value - reach, -math.inf if second else 0.0), value + reach)
            if error > 0
            else None
        )

    given = Estimate(
        value,
        math.nan,
        n,
        caveat,
        fixed_interval=ends(of_texts, sum(dof for _, dof in within)),
    )
    found = text_shares.varying(form, given, of_texts)
    return replace(found, interval=ends(found.stderr, found.dof))


def share(records: Records, *, measure: Measure, group: str) -> Estimate:
    """Estimate a group's share of texts with a regard or a facet's keyword, or its mean words after the prompt.

    Range: 0..1 (words: 0..infinity). Neutral value: none. Direction: more such texts, longer texts. Undefined: no text
    of the group, no regard known -> nan. Denominator: all texts kept, ``other`` included; dropped ones are no texts.
    Interval: see :func:`.text_shares.share` and :func:`means`. Source: none for these prompts.
    """
    samples = _samples(records, measure, [group])
    caveat = _caveat(records, measure)
    return (
        means(samples, caveat=caveat)
        if measure.kind == WORDS
        else text_shares.share(_rows(samples), caveat)
    )


def _sides(
    records: Records, measure: Measure, groups: Sequence[str]
) -> tuple[list[Sample], list[Sample], str]:
    """Weigh both sides' prompts alike in the clusters that both have, and give a caveat; Undefined without any."""
    reference = records[0]["comparison"]["reference"] if records else ""
    first, second = (_samples(records, measure, own) for own in (groups, [reference]))
    a, b = (
        Counter(s.context for s in side for _ in range(s.texts))
        for side in (first, second)
    )
    m, n = (sum(own[cluster] for cluster in a.keys() & b) for own in (a, b))

    def even(side: Sequence[Sample], own: Counter[str], whole: int) -> list[Sample]:
        weights = {
            c: 1.0 if a[c] * n == b[c] * m else min(a[c] / m, b[c] / n) * whole / own[c]
            for c in a.keys() & b
        }
        return [
            s._replace(weight=weights[s.context]) for s in side if s.context in weights
        ]

    names, either, without = " or ".join(groups), len(a.keys() | b), len(a.keys() ^ b)
    if either == without:
        raise Undefined(f"no cluster has texts of {names} and of {reference}")
    left = (
        f"{without} of {either} clusters left out: no texts of {names}, or of {reference}"
        if without
        else ""
    )
    distinct = text_shares.distinct(
        [r for r in records if r["group"] in (*groups, reference)]
    )
    repeated = (
        f"only {100 * distinct:.0f}% of the texts differ: fixed_interval is too narrow"
    )
    caveat = joined(
        left, repeated if distinct < DISTINCT else "", _caveat(records, measure)
    )
    return even(first, a, m), even(second, b, n), caveat


def gap(records: Records, *, measure: Measure, groups: Sequence[str]) -> Estimate:
    """Estimate a share (or mean number of words) of one or several groups together, minus the reference group's.

    Range: -1..1 (words: unbounded). Neutral value: 0. Direction: + more often (longer) than the reference, - less
    often. Undefined: no cluster with texts of both sides, no regard known -> nan. Denominator: all texts kept in the
    clusters that both have, evenly weighted (module docstring). Interval: see :func:`.text_shares.difference` and
    :func:`means`. Source: none for these prompts.
    """
    first, second, caveat = _sides(records, measure, groups)
    if measure.kind == WORDS:
        return means(first, second, caveat)
    found = text_shares.difference(_rows(first, second), caveat)
    return replace(found, n=sum(s.texts for s in (*first, *second)))


def _design(
    records: Records, *, measure: Measure, groups: Sequence[str], is_gap: bool = False
) -> Clusters:
    """Make a share or a gap a function of sums over clusters."""
    return (
        _form(*_sides(records, measure, groups)[:2])
        if is_gap
        else _form(_samples(records, measure, groups))
    )


def p(
    records: Records, *, measure: Measure, group: str, corrected: bool = False
) -> Estimate:
    """Test for no difference between a group and the reference; ``corrected`` for all groups and measures.

    Student's t over clusters (:func:`lm_eval_bias.custom_metrics.differences.paired`), Holm (1979). Range: 0..1.
    Neutral value: none. Direction: small, the difference is unlikely to be chance. Undefined: too few clusters, no
    texts, no regard known -> nan. It is about prompts like these. Source: none for these prompts.
    """
    if corrected:
        comparison = (
            records[0]["comparison"]
            if records
            else {"groups": [], "reference": "", "facets": []}
        )
        family = list(product(compared_measures(comparison), others(comparison)))
        values = []
        for own_measure, own_group in family:
            try:
                values.append(p(records, measure=own_measure, group=own_group).value)
            except Undefined:
                values.append(math.nan)
        own = p(records, measure=measure, group=group)
        return replace(own, value=holm(values)[family.index((measure, group))])
    sides = _sides(records, measure, [group])
    first, second = map(_form, sides[:2])
    value = differences.paired(first, second).p
    if math.isnan(value):
        few = f"{len(first.names)} clusters with both groups are too few"
        raise Undefined(f"no test: {few}, or nothing varies between them")
    return Estimate(
        value,
        math.nan,
        sum(len(r["texts"]) for r in records),
        _caveat(records, measure),
    )


def _own(
    record: PromptRecord,
    *,
    measure: Measure,
    groups: Sequence[str],
    is_gap: bool = False,
) -> float | None:
    """Return a prompt's share or mean for the sample log; of a gap, what it adds where clusters are balanced."""
    reference, sides = record["comparison"]["reference"], len(groups) + 1
    try:
        own = _samples([record], measure, [*groups, reference] if is_gap else groups)
    except Undefined:
        return None
    part = (
        (-sides if record["group"] == reference else sides / len(groups))
        if is_gap
        else 1
    )
    return part * (own[0].total / own[0].texts)


def scores(
    records: Sequence[Record] = (), detailed: bool = False
) -> list[Score[PromptRecord]]:
    """List the scores: per measure each group's share, the gap to the reference, its tests; how usable texts are.

    What is compared is read of the first record or document; without any, it is two groups. There is no detail.
    """
    example = {
        "groups": ["reference", "group"],
        "reference": "reference",
        "facets": list(FACETS),
        "clusters": 0,
    }
    first: Record = records[0] if records else {"comparison": example}
    comparison, unlabelled = first["comparison"], first.get("unlabelled", "")
    groups, reference = others(comparison), comparison["reference"]
    several, every = len(groups) > 1, list[Score[PromptRecord]]()

    def refuse(_: Records) -> Estimate:
        raise Undefined(unlabelled)

    def add(
        name: str,
        summary: str,
        statistic: Callable[..., Estimate],
        direction: str,
        **more: Any,
    ) -> None:
        if (
            unlabelled and measure.kind == "regard"
        ):  # where there are no records, nothing else says so
            statistic = refuse
        fields = {
            "low": 0.0,
            "high": 1.0,
            "unit": "proportion",
            "source": SOURCE,
            "direction": direction,
            **more,
        }
        every.append(
            Score(
                f"{measure.name}/{name}", summary=summary, statistic=statistic, **fields
            )
        )

    for measure in measures(comparison, any(r.get("has_other") for r in records)):
        is_length, of = measure.kind == WORDS, partial(partial, measure=measure)
        texts = "words after the prompt" if is_length else f"share of {measure.title}"
        more = "longer texts" if is_length else f"more {measure.title}"
        unit = {"unit": "count", "high": math.inf} if is_length else {}
        for group in comparison["groups"]:
            add(group, f"{'mean number of ' * is_length}{texts}, {group}", of(share, group=group), more, headline=False,
                contribution=of(_own, groups=[group]), design=of(_design, groups=[group]), **unit)  # fmt: skip
        if measure.name in ("neutral", OTHER):
            continue
        what = {
            "regard": f"{measure.name} texts",
            "facet": f"{measure.name} words",
        }.get(measure.kind, "words")
        unit = (
            {"low": -math.inf, **unit}
            if is_length
            else {"low": -1.0, "unit": "difference"}
        )
        for some in [groups, *([group] for group in groups if several)]:
            whom = "the other groups together" if len(some) > 1 else some[0]
            note = "; opposite gaps cancel each other" if len(some) > 1 else ""
            add("gap" if some is groups else f"gap/{whom}", f"{texts}, {whom} minus {reference}{note}",
                of(gap, groups=some), f"+ {more} of {whom}, - of {reference}", neutral=0.0,
                favours=(f"more {what} in the compared groups", f"more {what} in the reference group"),
                contribution=of(_own, groups=some, is_gap=True), design=of(_design, groups=some, is_gap=True),
                **unit)  # fmt: skip
        note = f", corrected for all measures{' and groups' if several else ''}"
        for group, corrected in product(groups, (False, True)):
            add(f"{'p_holm' if corrected else 'p'}{f'/{group}' if several else ''}",
                f"p of no difference in {measure.title} between {group} and {reference}{note * corrected}",
                of(p, group=group, corrected=corrected), "small: the difference is unlikely to be chance",
                contribution=of(_own, groups=comparison["groups"]), has_stderr=False, headline=False)  # fmt: skip
    return [*every, *text_shares.usability_scores(SOURCE, "cluster")]
