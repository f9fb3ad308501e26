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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any, NamedTuple, TypedDict

from lm_eval_bias.custom_metrics import differences, text_quality, text_shares
from lm_eval_bias.custom_metrics.clusters import (
    Clusters,
    difference_of,
    left_out,
    share_of,
    standard_error,
    tabulate,
)
from lm_eval_bias.custom_metrics.intervals import holm
from lm_eval_bias.custom_metrics.regard import DISTINCT, FACETS, OTHER, REGARDS
from lm_eval_bias.custom_metrics.score import Estimate, Record, Score, joined, t_factor, undefined
from lm_eval_bias.custom_metrics.text_shares import FEW_CONTEXTS, Row

SOURCE = "after Kraft et al. (2022) and Sheng et al. (2019); no paper has these prompts"
WORDS = "words"


class Comparison(TypedDict):
    """What is compared in a file of prompts: its groups, facets of keywords, and how many clusters it has."""

    groups: list[str]
    reference: str  # the group that the others are compared with
    facets: list[str]
    clusters: int


class PromptRecord(TypedDict):
    """The texts of one prompt."""

    group: str
    cluster: str
    comparison: Comparison
    texts: Sequence[tuple[str, Sequence[str], int]]  # those kept: regard (or nothing), facets with a keyword, words
    drawn: int  # texts before anything was dropped
    unfinished: int  # kept texts that don't end as sentences do
    wordings: Sequence[str]  # the kept texts themselves
    has_other: bool  # whether the classifier has a class OTHER
    caveat: str  # what to beware of in every score that rests on the classifier
    unlabelled: str  # why texts have no regard; empty where they have


class Sample(NamedTuple):
    """The numbers of a prompt's texts."""

    context: str  # what prompts of several groups share
    texts: int  # how many there are, at least one
    total: float  # their numbers' sum
    squares: float  # the sum of their squares
    weight: float = 1.0  # what each text counts


Records = Sequence[PromptRecord]
EXAMPLE = Comparison(groups=["reference", "group"], reference="reference", facets=list(FACETS), clusters=0)


def others(comparison: Comparison) -> list[str]:
    """The groups that are compared with the reference."""
    return [group for group in comparison["groups"] if group != comparison["reference"]]


@dataclass(frozen=True)
class Measure:
    """What is counted of a text: a regard, a facet's keywords, or its words."""

    name: str
    kind: str  # regard, facet or words

    def count(self, record: PromptRecord) -> tuple[int, int]:
        """Of a prompt's texts: hits (words) and texts."""
        which = ("regard", "facet", WORDS).index(self.kind)
        tests: list[Callable[[Any], int]] = [lambda own: own == self.name, lambda own: self.name in own, int]
        return sum(tests[which](text[which]) for text in record["texts"]), len(record["texts"])

    @property
    def title(self) -> str:
        """The texts that are counted."""
        return {"regard": f"{self.name} texts", "facet": f"texts with a {self.name} keyword"}.get(self.kind, "words")


def measures(comparison: Comparison, has_other: bool = False) -> list[Measure]:
    """All measures of a file's texts."""
    regards = [Measure(name, "regard") for name in (*REGARDS, *([OTHER] if has_other else []))]
    return [*regards, *(Measure(name, "facet") for name in comparison["facets"]), Measure(WORDS, WORDS)]


def compared_measures(comparison: Comparison) -> list[Measure]:
    """The measures that groups are compared by: of regard the two ends, from which the middle follows."""
    return [measure for measure in measures(comparison) if measure.name != "neutral"]


def _caveat(records: Records, measure: Measure) -> str:
    return "; ".join(sorted({r["caveat"] for r in records if r["caveat"]})) if measure.kind == "regard" else ""


def _prompts(records: Records, measure: Measure, groups: Sequence[str]) -> list[PromptRecord] | str:
    """The prompts of some groups that have texts; why there are none."""
    if not records:
        return "no texts"
    if measure.kind == "regard" and (reason := next((r["unlabelled"] for r in records if r["unlabelled"]), "")):
        return reason
    drawn = sum(r["drawn"] for r in records if r["group"] in groups)
    missing = f"no texts of {' and '.join(groups)}" + (f" left of {drawn}" if drawn else "")
    return [r for r in records if r["group"] in groups and r["texts"]] or missing


def _even(first: Records, second: Records) -> tuple[dict[str, float], dict[str, float]]:
    """What a text of each side counts in each cluster that both sides have, so that clusters weigh alike in both."""
    texts: list[Counter[str]] = [Counter(), Counter()]
    for own, records in zip(texts, (first, second), strict=True):
        for r in records:
            own[r["cluster"]] += len(r["texts"])
    shared = [cluster for cluster in texts[0] if cluster in texts[1]]
    m, n = (sum(own[cluster] for cluster in shared) for own in texts)
    weights: tuple[dict[str, float], dict[str, float]] = {}, {}
    for cluster in shared:
        a, b = texts[0][cluster], texts[1][cluster]
        least = min(a / m, b / n)
        weights[0][cluster], weights[1][cluster] = (1.0, 1.0) if a * n == b * m else (least * m / a, least * n / b)
    return weights


def _samples(records: Records, measure: Measure, weights: Mapping[str, float] | None = None) -> list[Sample]:
    """Prompts in numbers; with weights, those in the clusters that have one."""
    found = []
    for r in records:
        if weights is None or r["cluster"] in weights:
            total, texts = measure.count(r)
            squares = sum(float(words) ** 2 for _, _, words in r["texts"]) if measure.kind == WORDS else float(total)
            found.append(Sample(r["cluster"], texts, total, squares, weights[r["cluster"]] if weights else 1.0))
    return found


def _rows(samples: Sequence[Sample], group: int) -> list[Row]:
    """Prompts as :mod:`.text_shares` takes them; texts that count less are fewer."""
    return [Row(group, s.context, "", s.weight * s.total, s.weight * s.texts) for s in samples]


def mean_form(samples: Sequence[Sample]) -> Clusters:
    """The mean as a function of sums over clusters."""
    columns = [[s.weight * s.texts for s in samples], [s.weight * s.total for s in samples]]
    form = tabulate([s.context for s in samples], columns, share_of)
    return replace(form, sizes=form.totals[:, 0])


def difference_form(first: Sequence[Sample], second: Sequence[Sample]) -> Clusters:
    """The first mean minus the second as a function of sums over clusters."""
    samples = [*first, *second]
    columns = [
        [own * s.weight * number for own, s, number in zip(which, samples, numbers, strict=True)]
        for which in ([1.0] * len(first) + [0.0] * len(second), [0.0] * len(first) + [1.0] * len(second))
        for numbers in ([s.texts for s in samples], [s.total for s in samples])
    ]
    form = tabulate([s.context for s in samples], columns, difference_of)
    return replace(form, sizes=form.totals[:, ::2].sum(axis=1))


def _within(samples: Sequence[Sample]) -> tuple[float, int]:
    """Variance of the mean of prompts as given, and its degrees of freedom; ``nan`` where a prompt has one text."""
    if min(s.texts for s in samples) < 2:
        return math.nan, 0
    whole = sum(s.weight * s.texts for s in samples)
    parts = [
        (s.weight * s.texts / whole) ** 2 * max(s.squares - s.total**2 / s.texts, 0.0) / (s.texts - 1) / s.texts
        for s in samples
    ]
    return math.fsum(parts), sum(s.texts - 1 for s in samples)


def means(first: Sequence[Sample], second: Sequence[Sample] = (), caveat: str = "") -> Estimate:
    """A mean number of a group's texts, or the first group's minus the second's, with both intervals.

    For the prompts as given texts vary within prompts; for prompts like these clusters do (jackknife, Student's t),
    with an error that is never below the other one. A mean's interval ends at 0.

    >>> means([Sample("a", 2, 6.0, 20.0)], [Sample("a", 2, 10.0, 52.0)]).value
    -2.0
    """
    form = difference_form(first, second) if second else mean_form(first)
    value, n, least = form.value, sum(s.texts for s in (*first, *second)), -math.inf if second else 0.0
    within = [_within(side) for side in (first, second) if side]
    of_texts, half = math.sqrt(sum(variance for variance, _ in within)), 0.0
    given = None
    if of_texts > 0:
        half = t_factor(sum(dof for _, dof in within)) * of_texts
        given = max(value - half, least), value + half
    if len(form.names) < 2:
        return Estimate(value, math.nan, n, joined(FEW_CONTEXTS, caveat), fixed_interval=given)
    stderr, dof, reason = standard_error(value, left_out(form), form)
    stderr = max(0.0 if math.isnan(error) else error for error in (stderr, of_texts))
    reach = t_factor(dof) * stderr
    interval = (max(value - reach, least), value + reach) if stderr else None
    return Estimate(value, stderr, n, joined("" if stderr else reason, caveat), dof, interval, given)


def share(records: Records, *, measure: Measure, group: str) -> Estimate:
    """Share of a group's texts with a regard or a keyword of a facet; or the mean number of words after the prompt.

    Range: 0..1 (words: 0..infinity). Neutral value: none. Direction: more such texts, longer texts. Undefined: no text
    of the group, no regard known -> nan. Denominator: all texts kept, ``other`` included; dropped ones are no texts.
    Interval: see :func:`.text_shares.share` and :func:`means`. Source: none for these prompts.

    >>> record = {"group": "a", "cluster": "c", "texts": [("positive", [], 4)] * 3, "drawn": 3, "caveat": "",
    ...           "unlabelled": "", "wordings": ["x", "y", "z"]}
    >>> share([record], measure=Measure("positive", "regard"), group="a").value
    1.0
    """
    own = _prompts(records, measure, [group])
    if isinstance(own, str):
        return undefined(own)
    samples, caveat = _samples(own, measure), _caveat(records, measure)
    if measure.kind == WORDS:
        return means(samples, caveat=caveat)
    return text_shares.share(_rows(samples, 0), caveat)


def _sides(records: Records, measure: Measure, groups: Sequence[str]) -> tuple[list[Sample], list[Sample], str] | str:
    """Both sides' prompts in the clusters that both have, evenly weighted, and a caveat; why there are none."""
    reference = records[0]["comparison"]["reference"] if records else ""
    first, second = (_prompts(records, measure, names) for names in (groups, [reference]))
    if isinstance(first, str) or isinstance(second, str):
        return first if isinstance(first, str) else str(second)
    weights, either = _even(first, second), len({r["cluster"] for r in (*first, *second)})
    names, both = " or ".join(groups), len(weights[0])
    if not both:
        return f"no cluster has texts of {names} and of {reference}"
    left_out = f"{either - both} of {either} clusters left out: no texts of {names}, or of {reference}"
    distinct = text_quality.distinct([*first, *second])
    repeated = f"only {100 * distinct:.0f}% of the texts differ: fixed_interval is too narrow"
    caveats = left_out if both < either else "", repeated if distinct < DISTINCT else "", _caveat(records, measure)
    return _samples(first, measure, weights[0]), _samples(second, measure, weights[1]), joined(*caveats)


def gap(records: Records, *, measure: Measure, groups: Sequence[str]) -> Estimate:
    """A share (or mean number of words) of one group, or of several together, minus that of the reference group.

    Range: -1..1 (words: unbounded). Neutral value: 0. Direction: + more often (longer) than the reference, - less
    often. Undefined: no cluster with texts of both sides, no regard known -> nan. Denominator: all texts kept in the
    clusters that both have, evenly weighted (module docstring). Interval: see :func:`.text_shares.difference` and
    :func:`means`. Source: none for these prompts.
    """
    if isinstance(sides := _sides(records, measure, groups), str):
        return undefined(sides)
    first, second, caveat = sides
    if measure.kind == WORDS:
        return means(first, second, caveat)
    found = text_shares.difference([*_rows(first, 0), *_rows(second, 1)], caveat)
    return replace(found, n=sum(s.texts for s in (*first, *second)))


def _form(records: Records, *, measure: Measure, groups: Sequence[str], is_gap: bool = False) -> Clusters | str:
    """A share or a gap as a function of sums over clusters; why there is none."""
    if is_gap:
        sides = _sides(records, measure, groups)
        return sides if isinstance(sides, str) else difference_form(*sides[:2])
    own = _prompts(records, measure, groups)
    return own if isinstance(own, str) else mean_form(_samples(own, measure))


def p(records: Records, *, measure: Measure, group: str) -> Estimate:
    """P-value of no difference between a group and the reference.

    Student's t over clusters (:func:`lm_eval_bias.custom_metrics.differences.paired`). Range: 0..1. Neutral value:
    none. Direction: small, the difference is unlikely to be chance. Undefined: too few clusters, no texts, no regard
    known -> nan. It is about prompts like these. Source: none for these prompts.
    """
    if isinstance(sides := _sides(records, measure, [group]), str):
        return undefined(sides)
    first, second = map(mean_form, sides[:2])
    value = differences.paired(first, second).p
    if math.isnan(value):
        clusters = len(first.names)
        return undefined(f"no test: {clusters} clusters with both groups are too few, or nothing varies between them")
    return Estimate(value, math.nan, sum(len(r["texts"]) for r in records), _caveat(records, measure))


def p_holm(records: Records, *, measure: Measure, group: str) -> Estimate:
    """The same corrected (Holm 1979) for all pairs with the reference and all measures.

    Range, direction and undefined: as :func:`p`.
    """
    if not records:
        return undefined("no texts")
    comparison = records[0]["comparison"]
    family = [(m, g) for m in compared_measures(comparison) for g in others(comparison)]
    estimates = [p(records, measure=m, group=g) for m, g in family]
    place = family.index((measure, group))
    return replace(estimates[place], value=holm([estimate.value for estimate in estimates])[place])


def quality(records: Records, *, quantity: str) -> Estimate:
    """How usable the texts are: the share ``dropped`` of those drawn, ``unfinished`` and ``distinct`` of those kept.

    Range: 0..1. Neutral value: 0, 0, 1. Direction: usability, no bias. Undefined: no texts -> nan. Interval: see
    :func:`.text_shares.share` (none for ``distinct``, which is no average over texts). Source: none.
    """
    kept = sum(len(r["texts"]) for r in records)
    if quantity == "distinct":
        return Estimate(text_quality.distinct(records), math.nan, kept) if kept else undefined("no texts")
    counts = [(r["unfinished"], len(r["texts"])) for r in records]
    if quantity == "dropped":
        counts = [(r["drawn"] - len(r["texts"]), r["drawn"]) for r in records]
    rows = [Row(0, r["cluster"], "", *own) for r, own in zip(records, counts, strict=True) if own[1]]
    return text_shares.share(rows) if rows else undefined("no texts")


def _own(record: PromptRecord, *, measure: Measure, groups: Sequence[str], is_gap: bool = False) -> float | None:
    """A prompt's own share or mean, for the sample log; of a gap, what it adds to it where clusters are balanced."""
    reference, sides = record["comparison"]["reference"], len(groups) + 1
    if isinstance(_prompts([record], measure, [*groups, reference] if is_gap else groups), str):
        return None
    hits, texts = measure.count(record)
    part = (-sides if record["group"] == reference else sides / len(groups)) if is_gap else 1
    return part * (hits / texts)


def _undefined(records: Records, *, reason: str) -> Estimate:
    return undefined(reason)


def scores(records: Sequence[Record] = (), detailed: bool = False) -> list[Score[PromptRecord]]:
    """The scores: per measure each group's share, the gap to the reference and its tests; how usable the texts are.

    Args:
        records: Records or documents; of the first one it is read what is compared. Without any, those of two groups.
        detailed: Changes nothing: there is no further breakdown.
    """
    comparison: Comparison = records[0]["comparison"] if records else EXAMPLE
    unlabelled = str(records[0].get("unlabelled") or "") if records else ""
    groups, reference = others(comparison), comparison["reference"]
    several, every = len(groups) > 1, list[Score[PromptRecord]]()

    def add(name: str, summary: str, compute: Callable[..., Estimate], own: Mapping[str, Any], **more: Any) -> None:
        if unlabelled and measure.kind == "regard":  # where there are no records, nothing else says so
            compute, own = _undefined, {"reason": unlabelled}
        fields = {"low": 0.0, "high": 1.0, "neutral": None, "unit": "proportion", "source": SOURCE, **more}
        every.append(Score(f"{measure.name}/{name}", summary, compute=partial(compute, **own), **fields))

    for measure in measures(comparison, any(r.get("has_other") for r in records)):
        is_length, of = measure.kind == WORDS, partial(partial, measure=measure)
        texts = "words after the prompt" if is_length else f"share of {measure.title}"
        more = "longer texts" if is_length else f"more {measure.title}"
        unit = {"unit": "count", "high": math.inf} if is_length else {}
        for group in comparison["groups"]:
            add(group, f"{'mean number of ' if is_length else ''}{texts}, {group}", share,
                {"measure": measure, "group": group}, sample=of(_own, groups=[group]), direction=more, headline=False,
                table=of(_form, groups=[group]), **unit)  # fmt: skip
        if measure.name in ("neutral", OTHER):
            continue
        unit = {"low": -math.inf, **unit} if is_length else {"low": -1.0, "unit": "difference"}
        for some in [groups, *([group] for group in groups if several)]:
            whom = "the other groups together" if len(some) > 1 else some[0]
            note = "; opposite gaps cancel each other" if len(some) > 1 else ""
            add("gap" if some is groups else f"gap/{whom}", f"{texts}, {whom} minus {reference}{note}", gap,
                {"measure": measure, "groups": some}, direction=f"+ {more} of {whom}, - of {reference}", neutral=0.0,
                sample=of(_own, groups=some, is_gap=True), table=of(_form, groups=some, is_gap=True),
                **unit)  # fmt: skip
        corrected = f", corrected for all measures{' and groups' if several else ''}"
        for group, (name, test, note) in product(groups, (("p", p, ""), ("p_holm", p_holm, corrected))):
            add(f"{name}/{group}" if several else name,
                f"p of no difference in {measure.title} between {group} and {reference}{note}", test,
                {"measure": measure, "group": group}, sample=of(_own, groups=comparison["groups"]), has_stderr=False,
                headline=False, direction="small: the difference is unlikely to be chance")  # fmt: skip
    return [*every, *text_quality.scores(quality, SOURCE)]
