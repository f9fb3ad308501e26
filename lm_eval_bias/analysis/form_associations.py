"""What two forms of asking have in common beyond their scores: the same clusters high, the same items alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lm_eval_bias.analysis.comparisons import Pair
from lm_eval_bias.analysis.differences import Finding
from lm_eval_bias.custom_metrics.designs import Clusters, Design
from lm_eval_bias.custom_metrics.score import joined

if TYPE_CHECKING:
    from lm_eval_bias.custom_metrics.designs import Array

CORRELATION = "correlation"


@dataclass(frozen=True)
class Association:
    """One measure of what two forms have in common.

    Attributes:
        subject: What was asked.
        base: Label of one form.
        other: Label of the other.
        measure: :data:`CORRELATION`, or a name of :data:`lm_eval_bias.custom_metrics.agreement.MEASURES`.
        score: The score whose values by cluster are correlated; empty where items' outcomes are looked at.
        value: ``nan`` where there is none.
        interval: 95%; ``None`` where there is none.
        n: How many clusters (of a correlation) or items it rests on.
        of: How many there are: the others have no value, or no outcome in one form.
        note: Why something is missing, or what to read it with.
    """

    subject: str
    base: str
    other: str
    measure: str
    score: str
    value: float
    interval: tuple[float, float] | None
    n: int
    of: int
    note: str


def find(pairs: Sequence[Pair], findings: Sequence[Finding]) -> list[Association]:
    """The associations of forms: of each score that was compared, then of the items' outcomes.

    Args:
        pairs: The forms.
        findings: What comparing their scores gave.
    """
    associations = []
    for pair in pairs:
        labels = pair.subject, pair.base.label, pair.other.label
        own = [f for f in findings if (f.subject, f.base, f.other) == labels and f.paired]
        associations += [one for finding in own for one in _correlation(pair, finding)]
        if own:
            associations += _agreement(pair)
    return associations


def _correlation(pair: Pair, finding: Finding) -> Iterator[Association]:
    """Spearman's correlation of a score's values by cluster, where both forms have it."""
    import numpy as np

    from lm_eval_bias.custom_metrics.rank_correlations import rank_correlation

    tables = []
    for side, records in zip((pair.base, pair.other), pair.records, strict=True):
        scores = {side.common_name(score.name): score for score in side.benchmark.scores(records, detailed=True)}
        score = scores.get(side.common_name(finding.score.name))
        tables.append(score.table(records) if score and score.table else "no such score")
    values = [_by_cluster(table) for table in tables if not isinstance(table, str)]
    if len(values) < 2 or any(value is None for value in values):
        return
    first, second = (value or {} for value in values)
    shared = [cluster for cluster in first if np.isfinite(first[cluster]) and np.isfinite(second.get(cluster, np.nan))]
    found = rank_correlation(
        [first[cluster] for cluster in shared], [second[cluster] for cluster in shared], pairs="groups of items"
    )
    labels, every = (pair.subject, pair.base.label, pair.other.label), len({**first, **second})
    yield Association(
        *labels, CORRELATION, finding.score.name, found.value, found.interval, found.n, every, found.reason
    )


def _by_cluster(table: Design) -> dict[str, float] | None:
    """A score's value in each cluster, or for each item of a crossed design; ``None`` for what has none there."""
    import numpy as np

    if isinstance(table, Clusters):
        with np.errstate(divide="ignore", invalid="ignore"):
            values: Array = table.of(np.eye(len(table.names)), table.totals)
        return dict(zip(table.names, map(float, values), strict=True))
    if table.correlation:
        return None
    return dict(zip(table.items, map(float, table.cells.mean(axis=1)), strict=True))


def _agreement(pair: Pair) -> list[Association]:
    """Agreement of the items' outcomes, where the benchmark says what these are."""
    from lm_eval_bias.custom_metrics.agreement import agreement

    benchmarks = pair.base.benchmark, pair.other.benchmark
    categories = benchmarks[0].outcomes
    if not categories or categories != benchmarks[1].outcomes:
        return []
    first, second = (
        [benchmark.outcome(record) for record in records]
        for benchmark, records in zip(benchmarks, pair.records, strict=True)
    )
    clusters = [benchmarks[0].clusters(record) for record in pair.records[0]]
    found = agreement(first, second, clusters, categories)
    notes = {"ac1": f"unrelated answers with these shares would give {round(found.by_chance, 2) + 0.0:.2f}"}
    labels = pair.subject, pair.base.label, pair.other.label
    return [
        Association(
            *labels, name, "", one.value, one.interval, one.n, one.n + found.left_out,
            joined(one.reason, notes.get(name, "") if one.n else ""),
        )
        for name, one in found.estimates.items()
    ]  # fmt: skip
