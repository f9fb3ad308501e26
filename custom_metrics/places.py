"""Where answers stand among the options: shares of letters, or of the first, middle and last place.

A model that goes by the place and not by what stands there has a share far from that of the others. It shows no bias
where every kind of option stands at every place equally often, and no ability either.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from lm_eval_bias.custom_metrics.clusters import Array, Clusters, tabulate
from lm_eval_bias.custom_metrics.score import (
    Documents,
    Record,
    Score,
    Undefined,
    meaning,
    require,
)

PREFIX = "place_"
# names of the places of options without letters
ORDINALS = {2: ("first", "last"), 3: ("first", "middle", "last")}


def _share(weights: Array, totals: Array) -> Array:
    _, taken, here = (weights @ totals).T
    return here / taken


def _place(record: Record, taken: str) -> int | None:
    """Return the place of what an answer takes; ``None`` where that stands at no place."""
    shown = list(record["shown"])
    return shown.index(record[taken]) if record[taken] in shown else None


def _design(
    records: Documents, *, place: int, taken: str, cluster: str, kind: str
) -> Clusters:
    require(records)
    at = [_place(record, taken) for record in records]
    rows = [(1.0, found is not None, found == place) for found in at]
    if at.count(None) == len(at):
        raise Undefined(f"none of {len(at)} answers takes an option")
    clusters = [record[cluster] for record in records]
    return tabulate(clusters, rows, _share, whole=1.0, kind=kind)


def _contribution(record: Record, *, place: int, taken: str) -> float | None:
    at = _place(record, taken)
    return None if at is None else float(at == place)


def scores(
    options: int, lettered: bool, taken: str, cluster: str, kind: str
) -> list[Score]:
    """List the share of each place among the answers that take an option: ``place_a``, or ``place_first``, ...

    Range 0..1. Neutral value: one over the number of options; no direction. Undefined: no answer takes an option ->
    nan. Denominator: answers that take an option. Standard error: jackknife over clusters; interval: Wilson's. Source:
    not in the papers.

    Args:
        options: How many there are, 2 or 3.
        lettered: Whether the prompt gives them letters.
        taken: The field of a record that says what its answer takes, which is looked for in the field ``shown``.
        cluster: The field that is its cluster.
        kind: What the clusters are.

    >>> shown = ["man", "woman", "unknown"]
    >>> records = [{"shown": shown, "taken": who, "template": who} for who in ("man", "man", "woman", "nobody")]
    >>> [round(score.compute(records).value, 2) for score in scores(3, True, "taken", "template", "templates")]
    [0.67, 0.33, 0.0]
    """
    listed = []
    names: Sequence[str] = "abc"[:options] if lettered else ORDINALS[options]
    for place, name in enumerate(names):
        called = name.upper() if lettered else f"the {name} option"
        of = partial(partial, place=place, taken=taken)
        score = Score(
            f"{PREFIX}{name}",
            **meaning("places", "share", option=called),
            neutral=1 / options,
            contribution=of(_contribution),
            design=of(_design, cluster=cluster, kind=kind),
        )
        listed.append(score)
    return listed
