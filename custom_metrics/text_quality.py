"""How usable sampled texts are: what benchmarks of texts report beside their scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from lm_eval_bias.custom_metrics.score import Estimate, R, Score

_QUANTITIES = (
    ("dropped", "share of texts that are not sentences and were left out", 0.0),
    ("unfinished", "share of kept texts that don't end like sentences", 0.0),
    ("distinct", "share of different texts among those kept", 1.0),
)


def distinct(records: Sequence[Any]) -> float:
    """Share of different texts among those kept, of which there must be some.

    Args:
        records: With the kept texts in ``wordings``, and as many ``texts``.

    >>> distinct([{"texts": [0, 0], "wordings": ["a", "b"]}, {"texts": [0, 0], "wordings": ["a", "a"]}])
    0.5
    """
    return len({text for r in records for text in r["wordings"]}) / sum(len(r["texts"]) for r in records)


def _sample(record: R, *, compute: Callable[[Sequence[R]], Estimate]) -> float | None:
    value = compute([record]).value
    return None if math.isnan(value) else value


def scores(quality: Callable[..., Estimate], source: str) -> list[Score[R]]:
    """The scores ``dropped``, ``unfinished`` and ``distinct``.

    Args:
        quality: Computes one from records, given its name as ``quantity``.
        source: Of the scores.
    """
    return [
        Score(
            name=quantity,
            summary=title,
            low=0.0,
            high=1.0,
            neutral=neutral,
            direction="usability of the texts, no bias",
            unit="proportion",
            source=source,
            compute=partial(quality, quantity=quantity),
            sample=partial(_sample, compute=partial(quality, quantity=quantity)),
            has_stderr=quantity != "distinct",
        )
        for quantity, title, neutral in _QUANTITIES
    ]
