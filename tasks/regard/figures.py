"""What regard's figure shows: shares of regards, and the sexism facets beside them, never one without the other."""

from __future__ import annotations

from itertools import product

from lm_eval_bias.custom_metrics.regard import (
    FACETS,
    GENDERS,
    OTHER,
    PEOPLE,
    REGARDS,
    SETS,
)


def shares() -> dict[str, list[str]]:
    """Return names of scores, by what a row is called: regards of each set and gender, then keywords of each facet."""
    rows = {
        f"{name}: {PEOPLE[gender]}": [
            f"{name}/{gender}/{kind}" for kind in (*REGARDS, OTHER)
        ]
        for name, gender in product(SETS, GENDERS)
    }
    return rows | {
        f"{facet} keywords: {PEOPLE[gender]}": [f"{facet}/{gender}"]
        for facet, gender in product(FACETS, GENDERS)
    }
