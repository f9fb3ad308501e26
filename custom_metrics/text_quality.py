"""How usable sampled texts are: what benchmarks of texts report beside their scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from lm_eval_bias.custom_metrics import text_shares
from lm_eval_bias.custom_metrics.score import Estimate, Score, finite, undefined

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


def quality(records: Sequence[Any], *, quantity: str, context: str) -> Estimate:
    """How usable the texts are: a share of them, over all groups.

    Formula: ``dropped`` / drawn, ``unfinished`` / kept, ``distinct`` / kept. Range: 0..1. Neutral value: 0, 0, 1.
    Undefined: no texts -> nan. Denominator: texts drawn for ``dropped``, texts kept for the others.
    Interval: see :func:`lm_eval_bias.custom_metrics.text_shares.share` (none for ``distinct``, which is no average
    over texts). Source: not in the paper.
    """
    n_texts, rows = sum(len(r["texts"]) for r in records), []
    if quantity == "distinct":
        return Estimate(distinct(records), math.nan, n_texts) if n_texts else undefined("no texts")
    for r in records:
        kept, drawn = len(r["texts"]), int(r["drawn"])
        counts = (drawn - kept, drawn) if quantity == "dropped" else (int(r["unfinished"]), kept)
        rows.append(text_shares.Row(0, r.get(context), r.get("context_set", ""), *counts))
    return text_shares.share(rows) if any(row.total for row in rows) else undefined("no texts")


def scores(source: str, context: str = "context") -> list[Score[Any]]:
    """The scores ``dropped``, ``unfinished`` and ``distinct``.

    Args:
        source: Of the scores.
        context: The field of a record with what is a cluster of prompts.
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
            compute=partial(quality, quantity=quantity, context=context),
            sample=lambda r, q=quantity: finite(quality([r], quantity=q, context=context).value),  # type: ignore[misc]
            has_stderr=quantity != "distinct",
        )
        for quantity, title, neutral in _QUANTITIES
    ]
